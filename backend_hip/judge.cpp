#include "backend_hip/judge.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include "model/schedule/op_traits.hpp"

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

// What a kernel, or a copy by an engine, reads and writes.
struct Step {
  std::set<std::int16_t> reads, writes;

  void add(const Op& op) {
    for_each_read(op, 0, [&](const Region& region) { reads.insert(region.buffer); });
    for_each_write(op, [&](const Region& region, bool) { writes.insert(region.buffer); });
  }
};

std::vector<Step> steps_of(const Schedule& schedule) {
  std::vector<Step> steps;
  for (const Kernel& kernel : schedule.kernels) {
    Step& step = steps.emplace_back();
    for (const auto& programs : {&kernel.workgroups, &kernel.items}) {
      for (const Workgroup& program : *programs) {
        for (const Op& op : ops_of(schedule, program)) step.add(op);
      }
    }
  }
  for (const Op& transfer : schedule.transfers) steps.emplace_back().add(transfer);
  return steps;
}

}  // namespace

DType coarsest_dtype_on_the_way(const Schedule& schedule, std::int16_t buffer) {
  const std::vector<Step> steps = steps_of(schedule);
  const auto is_written = [&](std::int16_t one) {
    return std::any_of(steps.begin(), steps.end(),
                       [&](const Step& step) { return step.writes.contains(one); });
  };
  const auto dtype_of = [&](std::int16_t one) {
    return schedule.buffers[static_cast<std::size_t>(one)].dtype;
  };
  DType coarsest = dtype_of(buffer);
  std::set<std::int16_t> seen{buffer};
  std::vector<std::int16_t> rest{buffer};
  while (!rest.empty()) {
    const std::int16_t to = rest.back();
    rest.pop_back();
    if (relative_tolerance(dtype_of(to)) > relative_tolerance(coarsest)) coarsest = dtype_of(to);
    for (const Step& step : steps) {
      if (!step.writes.contains(to)) continue;
      for (const std::int16_t from : step.reads) {
        if (is_written(from) && seen.insert(from).second) rest.push_back(from);
      }
    }
  }
  return coarsest;
}

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
