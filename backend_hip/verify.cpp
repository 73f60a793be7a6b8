#include "backend_hip/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "model/core/error.hpp"

namespace tritax::gpu {

namespace {

std::int16_t buffer_named(const Schedule& schedule, const std::string& name) {
  for (std::size_t i = 0; i < schedule.buffers.size(); ++i) {
    if (schedule.buffers[i].name == name) return static_cast<std::int16_t>(i);
  }
  throw UserError(fmt::format(
      "schedule '{}' has no buffer '{}', so that there is nothing to check it against", schedule.name, name));
}

// Largest error of one element, in units of the reference's root mean square, that rounding to the dtype
// explains: half a unit in the last place of a value that is six times the root mean square, and as much
// again for the sum.
double element_tolerance(DType dtype) {
  switch (dtype) {
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

// Of a whole result, relative to its norm: two to five times what rounding each element to nearest leaves of
// random values, 0.42 units of 2^-(digits of the significand): 2.1e-4 of fp16, 1.7e-3 of bf16, 0.027 of fp8,
// as scenarios/measured/h100-2-random-8.csv has it. In fp32 it is the order of the sum that differs.
double relative_tolerance(DType dtype) {
  switch (dtype) {
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

}  // namespace

ProductView product_of(const Schedule& schedule, const HeapLayout& heap) {
  if (schedule.result_buffer < 0) {
    throw UserError(
        fmt::format("schedule '{}' names no result, so that there is nothing to check", schedule.name));
  }
  const auto a = static_cast<std::size_t>(buffer_named(schedule, "A"));
  const auto b = static_cast<std::size_t>(buffer_named(schedule, "B"));
  const auto c = static_cast<std::size_t>(schedule.result_buffer);
  const Buffer& result = schedule.buffers[c];
  ProductView product;
  product.workload = {result.rows, result.cols, schedule.buffers[a].cols, result.dtype, schedule.ranks};
  product.a = heap.buffers[a];
  product.b = heap.buffers[b];
  product.c = heap.buffers[c];
  product.operand_dtype = schedule.buffers[a].dtype;
  product.result_dtype = result.dtype;
  return product;
}

DeviceMemory reference_block(const ProductView& product, int rank, const unsigned char* heap) {
  const auto rows = static_cast<std::int32_t>(product.workload.m);
  const auto cols = static_cast<std::int32_t>(owned_columns(product.workload, rank).size());
  DeviceMemory block(rank, static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols) * sizeof(float));
  launch_reference(product.operand_dtype, heap + product.a.offset, product.a.pitch, heap + product.b.offset,
                   product.b.pitch, rows, cols, static_cast<std::int32_t>(product.workload.k),
                   block.as<float>(), nullptr);
  TRITAX_GPU_CHECK(hipDeviceSynchronize());
  return block;
}

Comparison compare_with_reference(const ProductView& product, int rank, const unsigned char* heap,
                                  const std::vector<DeviceMemory>& blocks) {
  const DeviceMemory sums = upload(rank, std::vector<Comparison>(1));
  for (std::size_t q = 0; q < blocks.size(); ++q) {
    const ColumnRange columns = owned_columns(product.workload, static_cast<int>(q));
    const std::int64_t first = columns.begin * bytes_of(product.result_dtype);
    launch_compare(product.result_dtype, heap + product.c.offset + first, product.c.pitch,
                   static_cast<std::int32_t>(product.workload.m), static_cast<std::int32_t>(columns.size()),
                   blocks[q].as<float>(), sums.as<Comparison>(), nullptr);
  }
  Comparison sum;
  TRITAX_GPU_CHECK(hipMemcpy(&sum, sums.get(), sizeof(sum), hipMemcpyDeviceToHost));
  return sum;
}

CheckResult judge(const ProductView& product, const std::vector<Comparison>& sums) {
  CheckResult check;
  check.passed = true;
  const double elements = static_cast<double>(product.workload.m) * static_cast<double>(product.workload.n);
  for (const Comparison& sum : sums) {
    double largest = 0;
    std::memcpy(&largest, &sum.largest_error_bits, sizeof(largest));
    const double relative = std::sqrt(sum.error_squared / sum.reference_squared);
    largest /= std::sqrt(sum.reference_squared / elements);
    if (sum.unordered > 0) largest = std::numeric_limits<double>::infinity();
    check.relative_error.push_back(relative);
    check.largest_error = std::max(check.largest_error, largest);
    // Written so that NaN fails.
    check.passed = check.passed && relative <= relative_tolerance(product.result_dtype) &&
                   largest <= element_tolerance(product.result_dtype);
  }
  return check;
}

}  // namespace tritax::gpu
