#include "backend_hip/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "backend_hip/kernels.hpp"
#include "model/core/error.hpp"

namespace tritax::gpu {

namespace {

// Bytes of a row of contiguous values.
std::int32_t pitch_of(const Rect& rect) { return rect.cols * static_cast<std::int32_t>(sizeof(double)); }

// Index of the first element of `part` among the values of `rect`, row by row.
std::size_t place_in(const Rect& rect, const Rect& part) {
  return static_cast<std::size_t>(part.row - rect.row) * static_cast<std::size_t>(rect.cols) +
         static_cast<std::size_t>(part.col - rect.col);
}

// Values that are still unknown: NaN.
DeviceMemory values_for(const Rect& rect, int device) {
  DeviceMemory values(device, static_cast<std::size_t>(pitch_of(rect)) * static_cast<std::size_t>(rect.rows));
  TRITAX_GPU_CHECK(hipMemset(values.get(), 0xff, values.bytes()));
  return values;
}

// Writes the numbers of an input to `values`, which belong to `region`.
void make_input(const Input& input, DType dtype, std::uint64_t seed, const Region& region,
                const DeviceMemory& values, int device) {
  const Rect& filled = input.region.rect;
  const Rect part = common_part(filled, region.rect);
  double* to = values.as<double>() + place_in(region.rect, part);
  if (input.values == InputValues::zero) {
    TRITAX_GPU_CHECK(hipMemset2D(to, static_cast<std::size_t>(pitch_of(region.rect)), 0,
                                 static_cast<std::size_t>(pitch_of(part)),
                                 static_cast<std::size_t>(part.rows)));
    return;
  }
  const std::int32_t pitch = filled.cols * bytes_of(dtype);
  const DeviceMemory numbers(device, static_cast<std::size_t>(pitch) * static_cast<std::size_t>(filled.rows));
  launch_fill_random(dtype, numbers.get(), filled.rows, filled.cols, pitch, nullptr, 0,
                     seed_of(input, seed, region.rank), nullptr);
  launch_widen(dtype, numbers.as<unsigned char>() + place_in(filled, part) * bytes_of(dtype), pitch,
               part.rows, part.cols, to, region.rect.cols, false, nullptr);
  TRITAX_GPU_CHECK(hipDeviceSynchronize());
}

}  // namespace

ReferenceOnGpus::ReferenceOnGpus(const Schedule& schedule, std::uint64_t seed, int devices)
    : schedule_(schedule), seed_(seed), devices_(devices), values_(schedule.reference.size()) {
  const std::vector<ReferenceOp>& ops = schedule.reference;
  if (ops.empty()) {
    throw UserError(
        fmt::format("schedule '{}' has no reference, so that there is nothing to check", schedule.name));
  }
  for (std::size_t i = 0; i < ops.size(); ++i) {
    std::size_t level = 0;
    for (const Region& operand : operands_of(ops[i])) {
      for (std::size_t before = 0; before < i; ++before) {
        if (overlap(ops[before].to, operand)) level = std::max(level, level_of_[before] + 1);
      }
    }
    level_of_.push_back(level);
    levels_ = std::max(levels_, level + 1);
    const int spread = static_cast<int>(i % static_cast<std::size_t>(schedule.ranks));
    rank_of_.push_back(ops[i].to.rank >= 0 ? ops[i].to.rank : ops[i].a.rank >= 0 ? ops[i].a.rank : spread);
  }
}

void ReferenceOnGpus::evaluate(std::size_t level, int rank) {
  for (std::size_t op = 0; op < values_.size(); ++op) {
    if (level_of_[op] == level && rank_of_[op] == rank) values_[op] = value_of(op, rank % devices_);
  }
}

DeviceMemory ReferenceOnGpus::value_of(std::size_t index, int device) const {
  const ReferenceOp& op = schedule_.reference[index];
  DeviceMemory value;
  switch (op.kind) {
    case ReferenceKind::product:
      value = product_of(op, index, device);
      break;
    case ReferenceKind::attention:
      value = attention_of(op, index, device);
      break;
    case ReferenceKind::sparse_product:
      value = sparse_product_of(op, index, device);
      break;
    case ReferenceKind::rms_norm:
      value = rms_norm_of(op, index, device);
      break;
    case ReferenceKind::row_dot:
    case ReferenceKind::attention_backward:
      throw UserError(
          fmt::format("schedule '{}': reference operation {} ({}) is not computed on GPUs; leave it out, "
                      "or execute the schedule functionally",
                      schedule_.name, index, kReferenceKindNames[static_cast<std::size_t>(op.kind)]));
    case ReferenceKind::copy:
      value = read(op.a, op.a.rank, index, device);
      break;
    case ReferenceKind::sum:
      value = read(op.a, 0, index, device);
      for (int rank = 1; rank < schedule_.ranks; ++rank) add(op.a, rank, index, device, value);
      break;
  }
  // The operation adds onto the same values on every rank.
  if (op.add) add(op.to, std::max(op.to.rank, 0), index, device, value);
  return value;
}

DeviceMemory ReferenceOnGpus::product_of(const ReferenceOp& op, std::size_t index, int device) const {
  const Rect& to = op.to.rect;
  DeviceMemory product = values_for(to, device);
  const DeviceMemory a = read(op.a, op.a.rank, index, device);
  const DeviceMemory b = read(op.b, op.b.rank, index, device);
  launch_reference(DType::fp64, a.get(), pitch_of(op.a.rect), b.get(), pitch_of(op.b.rect), to.rows, to.cols,
                   op.a.rect.cols, product.as<double>(), nullptr);
  TRITAX_GPU_CHECK(hipDeviceSynchronize());
  return product;
}

DeviceMemory ReferenceOnGpus::attention_of(const ReferenceOp& op, std::size_t index, int device) const {
  const Rect& to = op.to.rect;
  DeviceMemory result = values_for(to, device);
  const DeviceMemory queries = read(op.a, op.a.rank, index, device);
  const DeviceMemory keys = read_below_each_other(op.b, index, device);
  const DeviceMemory values = read_below_each_other(op.c, index, device);
  const std::int32_t parts = op.b.rank >= 0 ? 1 : schedule_.ranks;
  launch_attention_reference({.queries = queries.as<double>(),
                              .keys = keys.as<double>(),
                              .values = values.as<double>(),
                              .query_count = to.rows,
                              .key_count = op.b.rect.rows * parts,
                              .depth = to.cols,
                              .limit = op.limit,
                              .group = op.group},
                             result.as<double>(), nullptr);
  TRITAX_GPU_CHECK(hipDeviceSynchronize());
  return result;
}

DeviceMemory ReferenceOnGpus::sparse_product_of(const ReferenceOp& op, std::size_t index, int device) const {
  const SparseMatrix& matrix = *schedule_.sparse[static_cast<std::size_t>(op.index)];
  DeviceMemory product = values_for(op.to.rect, device);
  const DeviceMemory offsets = upload(device, matrix.offsets);
  const DeviceMemory columns = upload(device, matrix.columns);
  const DeviceMemory values = read(op.a, op.a.rank, index, device);
  const DeviceMemory x = read(op.b, op.b.rank, index, device);
  launch_sparse_reference({offsets.as<std::int32_t>(), columns.as<std::int32_t>(), values.as<double>(),
                           x.as<double>(), matrix.rows},
                          product.as<double>(), nullptr);
  TRITAX_GPU_CHECK(hipDeviceSynchronize());
  return product;
}

DeviceMemory ReferenceOnGpus::rms_norm_of(const ReferenceOp& op, std::size_t index, int device) const {
  DeviceMemory normalised = values_for(op.to.rect, device);
  const DeviceMemory a = read(op.a, op.a.rank, index, device);
  const DeviceMemory weights = read(op.b, op.b.rank, index, device);
  launch_norm_reference(a.as<double>(), weights.as<double>(), op.to.rect.rows, op.to.rect.cols,
                        normalised.as<double>(), nullptr);
  TRITAX_GPU_CHECK(hipDeviceSynchronize());
  return normalised;
}

// Values of one rank, or of all ranks one below the other.
DeviceMemory ReferenceOnGpus::read_below_each_other(const Region& region, std::size_t before,
                                                    int device) const {
  if (region.rank >= 0) return read(region, region.rank, before, device);
  Rect all = region.rect;
  all.rows *= schedule_.ranks;
  DeviceMemory values = values_for(all, device);
  for (int rank = 0; rank < schedule_.ranks; ++rank) {
    const DeviceMemory part = read(region, rank, before, device);
    launch_widen(DType::fp64, part.get(), pitch_of(region.rect), region.rect.rows, region.rect.cols,
                 values.as<double>() + static_cast<std::size_t>(rank) *
                                           static_cast<std::size_t>(region.rect.rows) *
                                           static_cast<std::size_t>(region.rect.cols),
                 region.rect.cols, false, nullptr);
    TRITAX_GPU_CHECK(hipDeviceSynchronize());
  }
  return values;
}

// Contents of the region on a rank before an operation; NaN where unknown.
DeviceMemory ReferenceOnGpus::read(const Region& region, int rank, std::size_t before, int device) const {
  DeviceMemory values = values_for(region.rect, device);
  const Region own{region.buffer, rank, region.rect};
  const DType dtype = schedule_.buffers[static_cast<std::size_t>(region.buffer)].dtype;
  for (const Input& input : schedule_.inputs) {
    if (overlap(input.region, own)) make_input(input, dtype, seed_, own, values, device);
  }
  for (std::size_t i = 0; i < before; ++i) {
    const Region& to = schedule_.reference[i].to;
    if (!overlap(to, own)) continue;
    const Rect part = common_part(to.rect, own.rect);
    launch_widen(DType::fp64, values_[i].as<double>() + place_in(to.rect, part), pitch_of(to.rect), part.rows,
                 part.cols, values.as<double>() + place_in(own.rect, part), own.rect.cols, false, nullptr);
  }
  TRITAX_GPU_CHECK(hipDeviceSynchronize());
  return values;
}

void ReferenceOnGpus::add(const Region& region, int rank, std::size_t before, int device,
                          const DeviceMemory& sum) const {
  const DeviceMemory more = read(region, rank, before, device);
  launch_widen(DType::fp64, more.get(), pitch_of(region.rect), region.rect.rows, region.rect.cols,
               sum.as<double>(), region.rect.cols, true, nullptr);
  TRITAX_GPU_CHECK(hipDeviceSynchronize());
}

std::vector<BufferComparison> ReferenceOnGpus::compare(int rank, const HeapLayout& heap,
                                                       const unsigned char* base) const {
  std::map<std::int16_t, BufferComparison> of_buffer;
  const std::size_t buffers = schedule_.buffers.size();
  const DeviceMemory sums = upload(rank % devices_, std::vector<Comparison>(buffers));
  const std::vector<ExpectedPart> parts = expected_on(schedule_, rank);
  for (const ExpectedPart& part : parts) {
    const Region& to = schedule_.reference[part.op].to;
    const auto buffer = static_cast<std::size_t>(to.buffer);
    launch_squares(part.rect.rows, part.rect.cols,
                   values_[part.op].as<double>() + place_in(to.rect, part.rect), to.rect.cols,
                   sums.as<Comparison>() + buffer, nullptr);
    BufferComparison& one = of_buffer[to.buffer];
    if (one.elements == 0) one.dtype = coarsest_dtype_on_the_way(schedule_, to.buffer);
    one.elements += static_cast<double>(part.rect.rows) * part.rect.cols;
  }
  for (const ExpectedPart& part : parts) {
    const Region& to = schedule_.reference[part.op].to;
    const auto buffer = static_cast<std::size_t>(to.buffer);
    const BufferPlace& place = heap.buffers[buffer];
    const DType dtype = schedule_.buffers[buffer].dtype;
    launch_compare(dtype, base + place_of(place, dtype, part.rect), place.pitch, part.rect.rows,
                   part.rect.cols, values_[part.op].as<double>() + place_in(to.rect, part.rect), to.rect.cols,
                   of_buffer.at(to.buffer).elements, sums.as<Comparison>() + buffer, nullptr);
  }
  const std::vector<Comparison> found = download<Comparison>(sums);
  std::vector<BufferComparison> comparisons;
  for (auto& [buffer, one] : of_buffer) {
    one.sums = found[static_cast<std::size_t>(buffer)];
    comparisons.push_back(one);
  }
  return comparisons;
}

}  // namespace tritax::gpu
