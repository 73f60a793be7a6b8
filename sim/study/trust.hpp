// How far a prediction can be trusted: bands from comparisons with measurements, and known faults.
//
// A band b says: nine of ten such times, on a node without its own calibration, lie between t / (1 + b) and
// t (1 + b). It comes from comparisons (compared.hpp) of
//
//   the same GPU, workload, and kind of kernels: own, a vendor's library, or the ratio of the two
//
//   the same range: dtype (bf16 counts as fp16) and other names, and all numbers within a factor of two of
//   the compared numbers
//
// If the blind sets alone have enough comparisons, only blind sets count. Fewer than 5 comparisons are too
// few: then the band is 0, unknown, and a caution gives the errors of similar questions. No other source
// makes a band; in particular, the residual of a machine's fit does not.
//
// Nodes differ. For n sets, each from another node or day, let q be the quantile 0.9 + 0.1 / (n + 1) of their
// errors:
//
//   b² = q² + (2 / n) (h / t)²
//
// The quantile is higher for few sets, because the next node is one of n + 1. h = 5.1 us is the difference
// between the hosts of nodes: 1.645 standard deviations of each set's median error outside of kernels on H100
// and H200, as in docs/accuracy.md (scripts/make-accuracy). Two nodes differ by √2 as much, and n sets
// already contain some of the difference. For example four sets with q = 12 % for a run of 30 us: b =
// sqrt(0.12² + 0.5 · 0.17²) = 17 %; of 300 us: 12.1 %.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "model/machine/machine.hpp"
#include "model/workload/workload.hpp"
#include "sim/study/compared.hpp"

namespace tritax {

inline constexpr std::int64_t kFewestCompared = 5;
inline constexpr double kHeld = 0.9;  // share of the times that a band holds

// The band of one kind of kernels.
struct Band {
  double off = 0;  // q; 0: unknown
  int sets = 0;
  std::int64_t count = 0;  // of comparisons

  bool known() const { return sets > 0; }
  double at(double time_ns) const;  // b; 0: unknown
};

struct Trust {
  Band own;
  Band library;
  Band ratio;                         // own / library
  std::string source;                 // "183 comparisons of own in h200-2-moe, …"; "" without comparisons
  std::vector<std::string> cautions;  // sentences: properties that were never compared

  // Band of the time of a pattern.
  double of(const Pattern& pattern, double time_ns) const;
  // Band of the ratio of two times, of own patterns or libraries. If no such ratio was compared but times of
  // both sides were, the two times count as independent.
  double between(const Pattern& a, double a_ns, const Pattern& b, double b_ns) const;
};

// `but`: a set that is left out, so that the other sets can judge it.
Trust trust_of(const Problem& problem, const Machine& machine,
               const std::vector<ComparedSet>& compared = shipped_comparisons(), std::string_view but = {});

// Whether the band cannot separate two times.
bool is_tie(double a_ns, double b_ns, double band);

// For each of the times, in rising order, the first place, from 1 on, that the band cannot separate from it.
// A group begins where the band can. `band(i, j)` is the band between two times.
std::vector<int> ranks_with_ties(const std::vector<double>& times_ns,
                                 const std::function<double(std::size_t, std::size_t)>& band);

// The known fault of the time of a pattern; nullptr if there is none. Throws UserError for a [[doubt]] table
// with a field that its workload does not have.
const Doubt* doubt_of(const Problem& problem, std::string_view pattern, const Machine& machine);

}  // namespace tritax
