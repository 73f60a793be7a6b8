// How good choices are over many problems: what a selector picks beside what would have been best.
//
// A table has the time of every option for every problem, whoever found it out. Problems are divided once, by
// their number alone: a tenth is held out, the others train.
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
  std::vector<std::string> numbers;                 // that tell problems apart, for the sieve
  std::vector<std::vector<std::int64_t>> problems;  // their numbers
  std::vector<std::vector<double>> time_ns;         // of every problem by option; kNever: it cannot be built

  // Of equal ones the first.
  std::size_t best(std::size_t problem) const;
};

// Of some problems, for each of which something was picked.
struct PickScore {
  std::size_t problems = 0;
  double within_5 = 0, within_10 = 0, within_20 = 0;  // share of problems, percent beyond the best time
  double mean_ratio = 1;                              // picked time over the best
  double worst_ratio = 1;
  double best_gain = 0;  // most that a pick saves of the time of option 0
};
PickScore score_picks(const ChoiceTable& table, std::span<const std::size_t> problems,
                      std::span<const std::size_t> picks);

struct SieveScore {
  std::size_t trained = 0;
  std::size_t held_out = 0;
  // Over the held-out tenth. Unsuitable: slower than the best by more than the tolerance.
  double eliminated = 0;            // share of the unsuitable pairs of problem and option that go
  double false_positives = 0;       // … that stay
  std::size_t false_negatives = 0;  // problems of which no suitable option stays
  std::size_t best_lost = 0;        // … of which the very best goes
  double unknown = 0;               // share of problems whose finest key no filter has seen
  double left = 0;                  // options that stay, mean
  PickScore fastest;                // the fastest of those that stay, as who times them would pick
  PickScore first;                  // the first of those that stay, timing nothing
  double lookup_ns = 0;             // of one problem, on one core
};

// {those that train, those held out} of so many problems.
std::pair<std::vector<std::size_t>, std::vector<std::size_t>> divided(std::size_t problems);

// A sieve trained on nine tenths, and what it does with the last.
struct TunedSieve {
  BloomSieve sieve;
  SieveScore score;
};
TunedSieve tune_sieve(const ChoiceTable& table, const SieveDesign& design, double tolerance);

}  // namespace tritax
