// Judges a comparison with the reference: the largest error that rounding explains. Plain host code.
#pragma once

#include <vector>

#include "model/core/dtype.hpp"
#include "model/schedule/schedule.hpp"

namespace tritax::gpu {

// Sums over a comparison; a NaN anywhere makes them NaN or raises `unordered`.
struct Comparison {
  double error_squared = 0;
  double reference_squared = 0;
  // Bits of a non-negative double, which are ordered as the numbers: the largest error of an element, in
  // units of the root mean square of the reference, or of its row where that is larger. A row of attention
  // with few keys is many times as large as other rows, and so is its rounding error.
  unsigned long long largest_error_bits = 0;
  unsigned long long unordered = 0;  // elements that are NaN or infinite
};

// The dtype with the fewest digits that the values of a buffer were rounded to: its own, or that of a buffer
// that the schedule writes and reads again on the way to it. A norm in fp32 of a sum that was stored in bf16
// has the digits of bf16.
DType coarsest_dtype_on_the_way(const Schedule& schedule, std::int16_t buffer);

// Comparison of all expected elements of one buffer on one rank.
struct BufferComparison {
  DType dtype = DType::bf16;  // coarsest_dtype_on_the_way()
  double elements = 0;
  Comparison sums;
};

struct CheckResult {
  // Per rank: ‖found − expected‖ / ‖expected‖ over all expected elements of a buffer, the largest over the
  // buffers; 0 without expected elements; infinite or NaN where elements are.
  std::vector<double> relative_error;
  double largest_error = 0;  // of one element, in units of the root mean square of the expected elements
  bool passed = false;
};

// ‖found − expected‖ / ‖expected‖; infinite where an element is NaN or infinite, or where all expected
// elements are 0 and the found ones are not.
double relative_error_of(const Comparison& sums);

// The largest error; NaN if one of them is NaN, which a plain comparison would drop. 0 for no errors.
double worst_of(const std::vector<double>& errors);

// `found[rank]`: comparisons on that rank. Passed only if every error is a number and small enough.
CheckResult judge(const std::vector<std::vector<BufferComparison>>& found);

}  // namespace tritax::gpu
