// The taxonomy of a workload as numbers: every pattern with the taxes that it pays, at one size or along a
// sweep of sizes, and the places in the sweep where the best pattern changes.
//
// A crossover lies between two neighbouring values of the sweep with different best patterns, A and then B.
// Between the two values, times are modelled as powers of the value, straight lines on logarithmic axes, so
// both are equal at
//
//   v = v1 (v2 / v1)^s,   s = ln(B1 / A1) / (ln(B1 / A1) + ln(A2 / B2))
//
// For example A takes 10 us and B 12 at 64, 20 and 15 at 128: s = 0.182 / (0.182 + 0.288) = 0.39, v = 84. For
// each side, tie_before and tie_after say whether the two times differ by less than the model's band
// (sim/study/trust.hpp): then the model cannot tell A from B there.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "sim/study/advise.hpp"
#include "sim/study/trust.hpp"

namespace tritax {

// Result at one value of a sweep.
struct SweepPoint {
  std::optional<double> value;                         // above 0; empty if the value is not a number
  const std::vector<Candidate>* candidates = nullptr;  // best first; empty without an answer
  const Trust* trust = nullptr;                        // of the predictions
};

struct Crossover {
  std::size_t before = 0;  // indices of the two points in the sweep; points between them have no answer
  std::size_t after = 0;
  const Pattern* from = nullptr;  // the best pattern before …
  const Pattern* to = nullptr;    // … and after
  std::optional<double> at;       // value at which both take equally long, interpolated
  bool tie_before = false;        // the band cannot separate the two there
  bool tie_after = false;
};

// In the order of the sweep.
std::vector<Crossover> crossovers_of(const std::vector<SweepPoint>& sweep);

}  // namespace tritax
