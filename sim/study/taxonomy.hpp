// The taxonomy of a workload as numbers: every pattern with the taxes that it pays, at one size or along a
// sweep of sizes, and where along the sweep the best pattern changes.
//
// A crossover lies between two neighbouring values of the sweep whose best patterns differ, A and then B.
// Between them times are taken for powers of the value, straight lines on logarithmic axes, so that both are
// equal at
//
//   v = v1 (v2 / v1)^s,   s = ln(B1 / A1) / (ln(B1 / A1) + ln(A2 / B2))
//
// For example A takes 10 us and B 12 at 64, 20 and 15 at 128: s = 0.182 / (0.182 + 0.288) = 0.39, v = 84.
// Whether the model can tell A from B there at all is said for each side: it cannot where the two times
// differ by less than its band (sim/study/standing.hpp).
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "sim/study/advise.hpp"
#include "sim/study/standing.hpp"

namespace tritax {

// What was found at one value of a sweep.
struct SweepPoint {
  std::optional<double> value;                         // above 0; none of what is no number
  const std::vector<Candidate>* candidates = nullptr;  // best first; empty where there is no answer
  const Standing* standing = nullptr;                  // of the predictions
};

struct Crossover {
  std::size_t before = 0;  // places of the two points in the sweep; those between them have no answer
  std::size_t after = 0;
  const Pattern* from = nullptr;  // the best before …
  const Pattern* to = nullptr;    // … and after
  std::optional<double> at;       // the value where both take equally long, interpolated
  bool tie_before = false;        // the band cannot part the two there
  bool tie_after = false;
};

// In the order of the sweep.
std::vector<Crossover> crossovers_of(const std::vector<SweepPoint>& sweep);

}  // namespace tritax
