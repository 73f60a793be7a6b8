// How good choices are over many problems: the picks of a selector against the best options.
//
// A table has the time of every option for every problem, from any source. The problem's number alone decides
// its part: a tenth of the problems is held out, the others train.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "model/select/bloom_sieve.hpp"

namespace tritax {

struct ChoiceTable {
  std::vector<std::string> options;                 // at most kMostSievedPolicies
  std::vector<std::string> numbers;                 // features that tell problems apart, for the sieve
  std::vector<std::vector<std::int64_t>> problems;  // values of `numbers`
  std::vector<std::vector<double>> time_ns;  // by problem and option; kNever: the option cannot be built

  // The fastest option; the first of equal options.
  std::size_t best(std::size_t problem) const;
};

// Score of one pick per problem.
struct PickScore {
  std::size_t problems = 0;
  double within_5 = 0, within_10 = 0, within_20 = 0;  // share of problems by percent over the best time
  double mean_ratio = 1;                              // time of the pick / best time
  double worst_ratio = 1;
  double best_gain = 0;  // largest share of the time of option 0 that a pick saves
};
PickScore score_picks(const ChoiceTable& table, std::span<const std::size_t> problems,
                      std::span<const std::size_t> picks);

struct SieveScore {
  std::size_t trained = 0;
  std::size_t held_out = 0;
  // Over the held-out tenth. An option is unsuitable if it is slower than the best by more than the
  // tolerance.
  double eliminated = 0;       // share of the unsuitable pairs of problem and option that the sieve removes
  double false_positives = 0;  // … that stay
  std::size_t false_negatives = 0;  // problems without a remaining suitable option
  std::size_t best_lost = 0;        // … whose best option is removed
  double unknown = 0;               // share of problems with a finest key that no filter has seen
  double left = 0;                  // mean number of remaining options
  PickScore fastest;                // picks the fastest remaining option, as after timing them all
  PickScore first;                  // picks the first remaining option, without timing
  double lookup_ns = 0;             // per problem, on one core
};

// {training problems, held-out problems} of `problems` problems.
std::pair<std::vector<std::size_t>, std::vector<std::size_t>> divided(std::size_t problems);

// A sieve trained on nine tenths of the problems, and its score on the last tenth.
struct TunedSieve {
  BloomSieve sieve;
  SieveScore score;
};
TunedSieve tune_sieve(const ChoiceTable& table, const SieveDesign& design, double tolerance);

}  // namespace tritax
