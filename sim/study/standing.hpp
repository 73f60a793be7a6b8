// How far a prediction can be trusted: bands from comparisons with measurements, and faults that are known.
//
// A band b says: nine of ten such times, on a node that nobody calibrated, lie between t / (1 + b) and
// t (1 + b). It comes from comparisons (compared.hpp) of
//
//   the same GPU, workload, and kind of kernels: own ones, a vendor's library, or the ratio of the two
//
//   the same range: dtype (bf16 counts as fp16) and other names, and all numbers within a factor of two of
//   what was compared
//
// of blind sets alone where these have enough. Fewer than 5 comparisons are none: then the band is 0,
// unknown, and a caution says how far off similar questions were. Nothing else makes a band; least of all
// what the fit of a machine's parameters left over.
//
// Nodes differ. Of n sets, each from another node or day, with q the quantile 0.9 + 0.1 / (n + 1) of how far
// they were off,
//
//   b² = q² + (2 / n) (h / t)²
//
// The quantile rises where sets are few, for the next node is one of n + 1. h = 5.1 us is how much hosts of
// nodes differ: 1.645 standard deviations of the median error of what is no kernel in each set on H100 and
// H200, as docs/accuracy.md has them (scripts/make-accuracy). Two nodes differ by √2 as much, and n sets
// already hold some of it. For example four sets with q = 12 % for a run of 30 us: b = sqrt(0.12² + 0.5 ·
// 0.17²) = 17 %; of 300 us: 12.1 %.
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
inline constexpr double kHeld = 0.9;  // of 1: the times that a band holds

// Of one kind of kernels.
struct Band {
  double off = 0;  // q; 0: unknown
  int sets = 0;
  std::int64_t count = 0;  // of comparisons

  bool known() const { return sets > 0; }
  double at(double time_ns) const;  // b; 0: unknown
};

struct Standing {
  Band own;
  Band library;
  Band ratio;                         // own / library
  std::string source;                 // "183 comparisons of own in h200-2-moe, …"; "" for none
  std::vector<std::string> cautions;  // sentences: what was never compared

  // Of the time of a pattern.
  double of(const Pattern& pattern, double time_ns) const;
  // Of the ratio of two times, both of them own or a library's or not. Where no such ratio was compared but
  // times of both sides were, they count as independent.
  double between(const Pattern& a, double a_ns, const Pattern& b, double b_ns) const;
};

// `but`: a set that is left out, so that it can be judged by the others.
Standing standing_of(const Problem& problem, const Machine& machine,
                     const std::vector<ComparedSet>& compared = shipped_comparisons(),
                     std::string_view but = {});

// Whether the band cannot part two times.
bool is_tie(double a_ns, double b_ns, double band);

// For times in rising order the place of the first one, from 1 on, that the band cannot part from each:
// groups begin where it can. `band(i, j)` is that between two of them.
std::vector<int> ranks_with_ties(const std::vector<double>& times_ns,
                                 const std::function<double(std::size_t, std::size_t)>& band);

// What is known to be wrong with the time of a pattern; nullptr if nothing is. Throws UserError for a
// [[doubt]] table with a field that its workload does not have.
const Doubt* doubt_of(const Problem& problem, std::string_view pattern, const Machine& machine);

}  // namespace tritax
