// Layout of the symmetric heap; see lower.hpp.
#include <fmt/format.h>

#include <algorithm>

#include "backend_hip/lower.hpp"
#include "model/core/error.hpp"
#include "model/schedule/items.hpp"
#include "model/schedule/op_traits.hpp"

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

// Buffers that some matmul reads as operand `which`.
std::vector<bool> operands(const Schedule& schedule, std::int16_t Op::*which) {
  std::vector<bool> used(schedule.buffers.size(), false);
  for (const Op& op : schedule.ops) {
    if (op.kind == OpKind::matmul) used[static_cast<std::size_t>(op.*which)] = true;
  }
  return used;
}

// Columns x and y of sparse products, which no kernel with matrix tiles uses.
std::vector<bool> packed_columns(const Schedule& schedule) {
  std::vector<bool> packed(schedule.buffers.size(), false), tiled = packed;
  if (schedule.sparse.empty()) return packed;
  for (const Kernel& kernel : schedule.kernels) {
    for (std::size_t p = 0; p < program_count(kernel); ++p) {
      for (const Op& op : ops_of(schedule, program_of(kernel, p))) {
        std::vector<bool>& found = kernel.tile.m > 0 ? tiled : packed;
        for_each_read(op, kernel.rank,
                      [&](const Region& region) { found[static_cast<std::size_t>(region.buffer)] = true; });
        for_each_write(
            op, [&](const Region& region, bool) { found[static_cast<std::size_t>(region.buffer)] = true; });
      }
    }
  }
  for (std::size_t i = 0; i < packed.size(); ++i) {
    packed[i] = packed[i] && !tiled[i] && schedule.buffers[i].cols == 1;
  }
  return packed;
}

// Rows behind the last row of an operand that a box of the copy engine can read.
std::size_t rows_behind(const DeviceTraits& device) {
  std::int32_t rows = 0;
  if (!device.tensor_maps) return 0;
  for (const TileTraits& tile : device.tiles) rows = std::max({rows, tile.m, tile.n});
  return static_cast<std::size_t>(rows);
}

}  // namespace

HeapLayout lay_out_heap(const Schedule& schedule, const DeviceTraits& device) {
  HeapLayout heap;
  const std::vector<bool> is_a = operands(schedule, &Op::src_buffer);
  const std::vector<bool> is_b = operands(schedule, &Op::b_buffer);
  const std::vector<bool> packed = packed_columns(schedule);
  std::size_t read_up_to = 0;  // by boxes that no map clips; see add_operand_maps in lower.cpp
  const auto room_behind = [&](std::size_t end, std::int32_t pitch) {
    read_up_to = std::max(read_up_to, end + rows_behind(device) * static_cast<std::size_t>(pitch));
  };
  for (std::size_t i = 0; i < schedule.buffers.size(); ++i) {
    const Buffer& buffer = schedule.buffers[i];
    if (buffer.codec != Codec::same) {
      throw UserError(
          fmt::format("buffer '{}' is held as {}; this backend holds elements as they are (knob wire: same)",
                      buffer.name, name_of(buffer.codec)));
    }
    BufferPlace at;
    at.offset = heap.bytes;
    at.pitch = packed[i] ? bytes_of(buffer.dtype) : padded_pitch(buffer.cols, buffer.dtype);
    heap.bytes += round_up(static_cast<std::size_t>(at.pitch) * static_cast<std::size_t>(buffer.rows),
                           kObjectAlignment);
    if (is_a[i]) room_behind(heap.bytes, at.pitch);
    if (is_b[i] && buffer.dtype == DType::fp8 && device.fp8_b_transposed) {
      at.transposed_offset = heap.bytes;
      at.transposed_pitch = padded_pitch(buffer.rows, buffer.dtype);
      heap.bytes +=
          round_up(static_cast<std::size_t>(at.transposed_pitch) * static_cast<std::size_t>(buffer.cols),
                   kObjectAlignment);
      room_behind(heap.bytes, at.transposed_pitch);
    }
    heap.buffers.push_back(at);
  }
  const auto room_for = [&](const std::vector<std::int32_t>& numbers) {
    const std::size_t offset = heap.bytes;
    heap.bytes += round_up(numbers.size() * sizeof(std::int32_t), kObjectAlignment);
    return offset;
  };
  for (const auto& matrix : schedule.sparse) {
    heap.sparse.push_back({room_for(matrix->offsets), room_for(matrix->columns)});
  }
  heap.flags_begin = heap.bytes;
  for (const FlagArray& flags : schedule.flags) {
    heap.flag_offsets.push_back(heap.bytes);
    heap.bytes += round_up(static_cast<std::size_t>(flags.count) * sizeof(std::uint32_t), kObjectAlignment);
  }
  heap.flags_end = heap.bytes;
  heap.bytes = std::max(heap.bytes, round_up(read_up_to, kObjectAlignment));
  return heap;
}

}  // namespace tritax::gpu
