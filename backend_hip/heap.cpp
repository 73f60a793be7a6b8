// Layout of the symmetric heap; see lower.hpp.
#include <fmt/format.h>

#include "backend_hip/lower.hpp"
#include "model/core/error.hpp"

namespace tritax::gpu {

namespace {

constexpr std::size_t kObjectAlignment = 1024;  // of buffers and flag arrays in the heap
constexpr std::int32_t kRowAlignment = 128;     // bytes; the copy engines need 16

std::size_t round_up(std::size_t value, std::size_t step) { return (value + step - 1) / step * step; }

std::int32_t padded_pitch(std::int32_t cols, DType dtype) {
  const std::int64_t bytes = std::int64_t{cols} * bytes_of(dtype);
  const std::int64_t pitch = (bytes + kRowAlignment - 1) / kRowAlignment * kRowAlignment;
  if (pitch > INT32_MAX)
    throw UserError(fmt::format("rows of {} bytes are longer than this backend addresses", bytes));
  return static_cast<std::int32_t>(pitch);
}

// Buffers that some matmul reads as B.
std::vector<bool> operands_b(const Schedule& schedule) {
  std::vector<bool> used(schedule.buffers.size(), false);
  for (const Op& op : schedule.ops) {
    if (op.kind == OpKind::matmul) used[static_cast<std::size_t>(op.b_buffer)] = true;
  }
  return used;
}

}  // namespace

HeapLayout lay_out_heap(const Schedule& schedule, const DeviceTraits& device) {
  HeapLayout heap;
  const std::vector<bool> is_b = operands_b(schedule);
  for (std::size_t i = 0; i < schedule.buffers.size(); ++i) {
    const Buffer& buffer = schedule.buffers[i];
    BufferPlace at;
    at.offset = heap.bytes;
    at.pitch = padded_pitch(buffer.cols, buffer.dtype);
    heap.bytes += round_up(static_cast<std::size_t>(at.pitch) * static_cast<std::size_t>(buffer.rows),
                           kObjectAlignment);
    if (is_b[i] && buffer.dtype == DType::fp8 && device.fp8_b_transposed) {
      at.transposed_offset = heap.bytes;
      at.transposed_pitch = padded_pitch(buffer.rows, buffer.dtype);
      heap.bytes +=
          round_up(static_cast<std::size_t>(at.transposed_pitch) * static_cast<std::size_t>(buffer.cols),
                   kObjectAlignment);
    }
    heap.buffers.push_back(at);
  }
  heap.flags_begin = heap.bytes;
  for (const FlagArray& flags : schedule.flags) {
    heap.flag_offsets.push_back(heap.bytes);
    heap.bytes += round_up(static_cast<std::size_t>(flags.count) * sizeof(std::uint32_t), kObjectAlignment);
  }
  heap.flags_end = heap.bytes;
  return heap;
}

}  // namespace tritax::gpu
