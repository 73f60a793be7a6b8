// Judging what a comparison with the reference has found: how large an error rounding explains. Plain host
// code.
#pragma once

#include <vector>

#include "model/core/dtype.hpp"

namespace tritax::gpu {

// Sums over a comparison; NaN anywhere makes them NaN or raises `unordered`.
struct Comparison {
  double error_squared = 0;
  double reference_squared = 0;
  // Of a non-negative double, which is ordered like the number itself: the largest error of an element, in
  // units of the root mean square of the reference, or of its row where that is larger: what few keys attend
  // to is many times as large as the other rows of an attention, and so is what rounding leaves of it.
  unsigned long long largest_error_bits = 0;
  unsigned long long unordered = 0;  // elements that are NaN or infinite
};

// Comparison of all that is expected of one buffer on one rank.
struct BufferComparison {
  DType dtype = DType::bf16;
  double elements = 0;
  Comparison sums;
};

struct CheckResult {
  // A rank: ‖found − expected‖ / ‖expected‖ over all that is expected of a buffer, the largest; 0: nothing
  // is; infinite or NaN where elements are.
  std::vector<double> relative_error;
  double largest_error = 0;  // of one element, in units of the root mean square of what is expected
  bool passed = false;
};

// ‖found − expected‖ / ‖expected‖; infinite where an element is NaN or infinite, or where all is expected to
// be 0 and is not.
double relative_error_of(const Comparison& sums);

// The largest of errors; NaN if one of them is, which no comparison would keep. 0 of none.
double worst_of(const std::vector<double>& errors);

// `found[rank]` is what was compared on that rank. Passed only if every error is a number and small enough.
CheckResult judge(const std::vector<std::vector<BufferComparison>>& found);

}  // namespace tritax::gpu
