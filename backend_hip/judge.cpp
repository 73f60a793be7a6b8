#include "backend_hip/judge.hpp"

#include <cmath>
#include <cstring>
#include <limits>

namespace tritax::gpu {

namespace {

// Largest error of one element that rounding to the dtype explains, in units of the root mean square of the
// reference or of its row: half a unit in the last place of a value that is six times the root mean square,
// and as much again for the sum.
double element_tolerance(DType dtype) {
  switch (dtype) {
    case DType::fp64:
      return 1e-11;
    case DType::fp32:
      return 1e-3;
    case DType::fp16:
      return 0.01;
    case DType::bf16:
      return 0.05;
    case DType::fp8:
      return 0.6;
  }
  return 0;
}

// Tolerance of a whole result, relative to its norm: two to five times the error of rounding each random
// element to nearest, 0.42 units of 2^-(digits of the significand): 2.1e-4 for fp16, 1.7e-3 for bf16, 0.027
// for fp8, as in scenarios/measured/h100-2-random-8.csv. For fp32 and fp64 the order of the sum decides.
double relative_tolerance(DType dtype) {
  switch (dtype) {
    case DType::fp64:
      return 1e-12;
    case DType::fp32:
      return 1e-4;
    case DType::fp16:
      return 1e-3;
    case DType::bf16:
      return 5e-3;
    case DType::fp8:
      return 0.05;
  }
  return 0;
}

// In units of the root mean square of the expected elements; infinite where an element is NaN or infinite.
double largest_error_of(const Comparison& sums) {
  if (sums.unordered > 0) return std::numeric_limits<double>::infinity();
  double largest = 0;
  std::memcpy(&largest, &sums.largest_error_bits, sizeof(largest));
  return largest;
}

}  // namespace

double relative_error_of(const Comparison& sums) {
  if (sums.unordered > 0) return std::numeric_limits<double>::infinity();
  if (sums.error_squared == 0) return 0;  // all expected elements may be zero
  return std::sqrt(sums.error_squared / sums.reference_squared);
}

double worst_of(const std::vector<double>& errors) {
  double worst = 0;
  for (const double error : errors) {
    if (!(error <= worst)) worst = error;
    if (std::isnan(worst)) break;
  }
  return worst;
}

CheckResult judge(const std::vector<std::vector<BufferComparison>>& found) {
  CheckResult check;
  check.passed = true;
  std::vector<double> largest;
  for (const std::vector<BufferComparison>& rank : found) {
    std::vector<double> relative;
    for (const BufferComparison& one : rank) {
      relative.push_back(relative_error_of(one.sums));
      largest.push_back(largest_error_of(one.sums));
      // Both comparisons are false for NaN.
      check.passed = check.passed && relative.back() <= relative_tolerance(one.dtype) &&
                     largest.back() <= element_tolerance(one.dtype);
    }
    check.relative_error.push_back(worst_of(relative));
  }
  check.largest_error = worst_of(largest);
  return check;
}

}  // namespace tritax::gpu
