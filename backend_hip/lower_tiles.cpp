// Lowers operations on tiles: their reads and writes, and the contents of the kernel's accumulator.
#include <fmt/format.h>

#include <algorithm>

#include "backend_hip/lowering.hpp"
#include "model/core/error.hpp"
#include "model/schedule/op_traits.hpp"
#include "model/schedule/op_views.hpp"

namespace tritax::gpu {

namespace {

constexpr std::int32_t kBoxAlignment =
    16;                                 // bytes; a box of the copy engine starts at a multiple within a row
constexpr std::int32_t kGroupCols = 8;  // as in tile_vector.hpp

bool aligned_for_boxes(DType dtype, std::int32_t col) { return col * bytes_of(dtype) % kBoxAlignment == 0; }

}  // namespace

bool Lowering::fed_by_boxes() const {
  return tile_ != nullptr && device_.tensor_maps && tile_->store_cols > 0;
}

bool Lowering::goes_to_senders(const Op& store) const {
  return fed_by_boxes() && schedule_.buffers[static_cast<std::size_t>(store.buffer)].dtype == tile_->dtype;
}

void Lowering::lower_matmul(const Op& op, std::uint32_t number, DeviceOp& out) {
  if (tile_ == nullptr) refuse(number, "multiplies in a kernel that attends; GPUs run them in kernels apart");
  const auto a = static_cast<std::size_t>(op.src_buffer);
  const auto b = static_cast<std::size_t>(op.b_buffer);
  const Buffer& buffer_a = schedule_.buffers[a];
  const Buffer& buffer_b = schedule_.buffers[b];
  if (buffer_a.dtype != tile_->dtype || buffer_b.dtype != tile_->dtype) {
    refuse(number, fmt::format("operands are {} and {}; the kernel's tiles are {}", name_of(buffer_a.dtype),
                               name_of(buffer_b.dtype), name_of(tile_->dtype)));
  }
  require_fits(op, number);
  const bool transposed = heap_.buffers[b].transposed_pitch > 0;
  out.value = 0;
  place(op.src_buffer, op.rect.row, op.k_begin, owner_of_a(op, rank_), out);
  const DeviceOp at_a = out;
  DeviceOp at_b = out;
  place(op.b_buffer, op.k_begin, op.rect.col, rank_, at_b);
  out.source = at_b.address;
  out.source_pitch = at_b.pitch;
  out.width = std::min(width_of(at_a.address, at_a.pitch), width_of(at_b.address, at_b.pitch));
  out.k_begin = op.k_begin;
  out.k_end = op.k_end;
  out.row = op.rect.row;
  out.col = op.rect.col;
  if (accumulator_.empty || accumulator_.stored) out.bits |= kFresh;
  if (conflicts({a_of(op, rank_), false}) || conflicts({b_of(op, rank_), false})) {
    out.bits |= kJoin;
    all_waves_meet();
  }
  if (fed_by_boxes()) {
    require_aligned(buffer_a, op.k_begin, number, "k range of A");
    require_aligned(buffer_b, transposed ? op.k_begin : op.rect.col, number, "place in B");
    add_operand_maps(op, transposed, out);
  }
  accumulator_ = {.empty = false, .stored = false, .staged = false};
}

void Lowering::require_aligned(const Buffer& buffer, std::int32_t at, std::uint32_t number,
                               const char* what) const {
  if (aligned_for_boxes(buffer.dtype, at)) return;
  refuse(number, fmt::format("{} starts at element {}; the copy engine of {} takes multiples of {}", what, at,
                             device_.name, kBoxAlignment / bytes_of(buffer.dtype)));
}

void Lowering::add_operand_maps(const Op& op, bool transposed, DeviceOp& out) {
  const Buffer& a = schedule_.buffers[static_cast<std::size_t>(op.src_buffer)];
  const Buffer& b = schedule_.buffers[static_cast<std::size_t>(op.b_buffer)];
  const std::int32_t panel = kPanelBytes / bytes_of(a.dtype);  // elements of a swizzled row, and the K step
  const bool whole_steps = (op.k_end - op.k_begin) % panel == 0;
  const std::int32_t k_limit = whole_steps ? a.cols : op.k_end;
  const BufferPlace& place_a = heap_.buffers[static_cast<std::size_t>(op.src_buffer)];
  const BufferPlace& place_b = heap_.buffers[static_cast<std::size_t>(op.b_buffer)];
  const std::uint64_t base = heap_base_[static_cast<std::size_t>(rank_)];
  const std::uint64_t base_a = heap_base_[static_cast<std::size_t>(owner_of_a(op, rank_))];
  out.tensor_map = map_index(
      {a.dtype, base_a + place_a.offset, k_limit, a.rows + tile_->m, place_a.pitch, panel, box_rows_of_a_});
  if (transposed) {
    out.tensor_map_b = map_index({b.dtype, base + place_b.transposed_offset, k_limit, b.cols + tile_->n,
                                  place_b.transposed_pitch, panel, tile_->n});
  } else {
    const std::int32_t padded_cols = place_b.pitch / bytes_of(b.dtype);
    out.tensor_map_b = map_index({b.dtype, base + place_b.offset, padded_cols, std::min(k_limit, b.rows),
                                  place_b.pitch, panel, panel});
  }
}

// Queries, keys and values are loaded 16 bytes at a time.
void Lowering::lower_attend(const Op& op, std::uint32_t number, DeviceOp& out) {
  if (attend_ == nullptr)
    refuse(number, "attends in a kernel that multiplies; GPUs run them in kernels apart");
  require_fits(op, number);
  const Buffer& queries = schedule_.buffers[static_cast<std::size_t>(op.buffer)];
  if (queries.dtype != attend_->dtype) {
    refuse(number, fmt::format("queries are {}; the kernel attends in {}", name_of(queries.dtype),
                               name_of(attend_->dtype)));
  }
  DeviceOp keys = out, values = out;
  const AttendView view(op);
  place(view.keys(), op.k_begin, view.column(), rank_, keys);
  place(view.values(), op.k_begin, view.column(), rank_, values);
  place(op.buffer, op.rect.row, op.rect.col, rank_, out);
  out.source = keys.address;
  out.source_pitch = keys.pitch;
  out.values = values.address;
  out.values_pitch = values.pitch;
  out.width = std::min({width_of(out.address, out.pitch), width_of(keys.address, keys.pitch),
                        width_of(values.address, values.pitch)});
  if (out.width < kBoxAlignment) {
    refuse(number,
           fmt::format("a head starts at column {} of its queries and {} of its keys; multiples of {} "
                       "are possible",
                       op.rect.col, view.column(), kBoxAlignment / bytes_of(queries.dtype)));
  }
  out.k_begin = op.k_begin;
  out.k_end = op.k_end;
  out.group = std::max(view.rows_alike(), 1);
  for (const Region& region : {tile_of(op), keys_of(op, rank_), values_of(op, rank_)}) {
    touch({region, false}, out);
  }
  if (accumulator_.empty || accumulator_.stored) out.bits |= kFresh;
  accumulator_ = {.empty = false, .stored = false, .staged = false, .cols = op.rect.cols};
}

// After a store the workgroup's partial stays in the accumulator, and further partials are merged into it.
void Lowering::lower_combine(const Op& op, std::uint32_t number, DeviceOp& out) {
  if (tile_ != nullptr) refuse(number, "combines partials in a kernel that multiplies");
  if (sparse_)
    refuse(number, "combines partials in a kernel of sparse products; GPUs run them in kernels apart");
  accumulator_.cols = op.rect.cols - 1;
  require_fits(op, number);
  require_partial_type(schedule_.buffers[static_cast<std::size_t>(op.buffer)], number);
  place(op.buffer, op.rect.row, op.rect.col, op.rank, out);
  set_width(out, false);
  touch({tile_of(op), false}, out);
  if (accumulator_.empty) out.bits |= kFresh;
  accumulator_ = {.empty = false, .stored = false, .staged = false, .cols = op.rect.cols - 1};
}

void Lowering::require_partial_type(const Buffer& buffer, std::uint32_t number) const {
  if (buffer.dtype == DType::fp32) return;
  refuse(number, fmt::format("log-sum-exps in buffer '{}' of {}; fp32 is possible", buffer.name,
                             name_of(buffer.dtype)));
}

void Lowering::lower_store(const Op& op, std::uint32_t number, DeviceOp& out) {
  require_content(number);
  require_fits(op, number);
  const Buffer& buffer = write_to(op, number, out);
  set_width(out, false);
  if (accumulator_.cols > 0 && op.rect.cols == accumulator_.cols + 1) {
    require_partial_type(buffer, number);
    out.partial = 1;
  } else if (attend_ != nullptr && buffer.dtype != DType::fp32 && out.width < 4) {
    refuse(number, "stores what attention has left at an odd element; pairs of 16-bit elements are stored");
  }
  accumulator_.stored = true;
  if (!goes_to_senders(op)) {
    team_wrote_ = true;
    return;
  }
  if (accumulator_.staged) {
    out.bits |= kStaged;
    program_.ops[last_staged_store_].bits |= kKeep;
  }
  accumulator_.staged = true;
  last_staged_store_ = program_.ops.size();
  if (op.rank != rank_) out.bits |= kRemote;
  // The copy engine clips a partial tile at the end of its map, but writes 16 bytes at a time: the bytes
  // behind the tile belong to the row's padding only behind the last column.
  const std::int32_t rows = op.rect.rows == tile_->m ? buffer.rows : op.rect.row + op.rect.rows;
  const std::int32_t cols = op.rect.cols == tile_->n ? buffer.cols : op.rect.col + op.rect.cols;
  if (!aligned_for_boxes(buffer.dtype, op.rect.col)) return;
  if (cols != buffer.cols && !aligned_for_boxes(buffer.dtype, cols)) return;
  const BufferPlace& at = heap_.buffers[static_cast<std::size_t>(op.buffer)];
  out.bits |= kTensor;
  out.row = op.rect.row;
  out.col = op.rect.col;
  out.tensor_map = map_index({buffer.dtype, heap_base_[static_cast<std::size_t>(op.rank)] + at.offset, cols,
                              rows, at.pitch, tile_->store_cols, tile_->store_rows});
}

void Lowering::lower_atomic_add(const Op& op, std::uint32_t number, DeviceOp& out) {
  require_content(number);
  require_fits(op, number);
  if (attend_ != nullptr) refuse(number, "adds what a kernel that attends holds to memory");
  const Buffer& buffer = write_to(op, number, out);
  if (buffer.dtype == DType::fp8) refuse(number, "GPUs have no atomic addition of fp8 values");
  set_width(out, false);
  accumulator_.stored = true;
  team_wrote_ = true;
}

void Lowering::lower_copy(const Op& op, std::uint32_t number, DeviceOp& out) {
  const Buffer& target = write_to(op, number, out);
  const Buffer& source = schedule_.buffers[static_cast<std::size_t>(op.src_buffer)];
  if (source.dtype != target.dtype) {
    refuse(number, fmt::format("copies {} into {}; a copy does not convert", name_of(source.dtype),
                               name_of(target.dtype)));
  }
  team_wrote_ = true;
  touch({source_of(op), false}, out);
  DeviceOp from;
  place(op.src_buffer, op.src_row, op.src_col, op.src_rank, from);
  out.source = from.address;
  out.source_pitch = from.pitch;
  set_width(out, true);
}

const Buffer& Lowering::write_to(const Op& op, std::uint32_t number, DeviceOp& out) {
  const auto index = static_cast<std::size_t>(op.buffer);
  if (heap_.buffers[index].transposed_pitch > 0) {
    refuse(number, "writes to an fp8 buffer that matmul reads as B; its transposed copy would go stale");
  }
  place(op.buffer, op.rect.row, op.rect.col, op.rank, out);
  touch({tile_of(op), true}, out);
  return schedule_.buffers[index];
}

void Lowering::place(std::int16_t buffer, std::int32_t row, std::int32_t col, int rank, DeviceOp& out) const {
  const auto index = static_cast<std::size_t>(buffer);
  const BufferPlace& at = heap_.buffers[index];
  const DType dtype = schedule_.buffers[index].dtype;
  out.dtype = static_cast<std::uint8_t>(dtype);
  out.pitch = at.pitch;
  out.address = heap_base_[static_cast<std::size_t>(rank)] + at.offset +
                static_cast<std::uint64_t>(row) * static_cast<std::uint64_t>(at.pitch) +
                static_cast<std::uint64_t>(col) * static_cast<std::uint64_t>(bytes_of(dtype));
}

std::uint8_t Lowering::width_of(std::uint64_t address, std::int32_t pitch) {
  const std::uint64_t all = address | static_cast<std::uint64_t>(pitch) | 16;
  return static_cast<std::uint8_t>(all & (~all + 1));
}

void Lowering::set_width(DeviceOp& out, bool with_source) {
  out.width = width_of(out.address, out.pitch);
  if (with_source) out.width = std::min(out.width, width_of(out.source, out.source_pitch));
}

void Lowering::require_content(std::uint32_t number) const {
  if (accumulator_.empty) refuse(number, "writes the accumulator, but nothing was put into it");
}

void Lowering::require_fits(const Op& op, std::uint32_t number) const {
  const bool partial = (op.kind == OpKind::store || op.kind == OpKind::combine) && accumulator_.cols > 0 &&
                       op.rect.cols == accumulator_.cols + 1;
  const std::int32_t cols = partial ? op.rect.cols - 1 : op.rect.cols;
  if (attend_ != nullptr) {
    const DType dtype = schedule_.buffers[static_cast<std::size_t>(op.buffer)].dtype;
    if (dtype != attend_->dtype && dtype != DType::fp32) {
      refuse(number, fmt::format("{} data in a kernel that attends in {}; {} and fp32 are possible",
                                 name_of(dtype), name_of(attend_->dtype), name_of(attend_->dtype)));
    }
    if (op.rect.rows <= attend_->m && cols <= attend_->depth && cols % kGroupCols == 0) return;
    refuse(number,
           fmt::format("attention of {} queries and {} columns; up to {} and {} are possible, columns "
                       "in multiples of {}",
                       op.rect.rows, cols, attend_->m, attend_->depth, kGroupCols));
  }
  if (tile_ != nullptr) {
    const DType dtype =
        schedule_.buffers[static_cast<std::size_t>(op.buffer >= 0 ? op.buffer : op.src_buffer)].dtype;
    const bool takes_fp32 = tile_->dtype != DType::fp64;
    if (dtype != tile_->dtype && !(takes_fp32 && dtype == DType::fp32)) {
      refuse(number,
             fmt::format("{} data in a kernel of {} tiles; {}{} possible", name_of(dtype),
                         name_of(tile_->dtype), name_of(tile_->dtype), takes_fp32 ? " and fp32 are" : " is"));
    }
    if (op.rect.rows <= tile_->m && op.rect.cols <= tile_->n) return;
    refuse(number, fmt::format("{}x{} elements are more than the kernel's {}x{} tile", op.rect.rows,
                               op.rect.cols, tile_->m, tile_->n));
  }
  if (schedule_.buffers[static_cast<std::size_t>(op.buffer)].dtype == DType::fp64) {
    refuse(number, "fp64 data in a kernel that does not multiply in fp64; others only copy it");
  }
  const std::int64_t groups = std::int64_t{op.rect.rows} * ((cols + kGroupCols - 1) / kGroupCols);
  const std::int64_t capacity = std::int64_t{threads_ > 512 ? 2 : threads_ > 256 ? 4 : 8} * threads_;
  if (groups > capacity) {
    refuse(number, fmt::format("{}x{} elements are more than the accumulator of {} threads holds ({})",
                               op.rect.rows, op.rect.cols, threads_, capacity * kGroupCols));
  }
}

std::int32_t Lowering::map_index(const TensorMapSpec& spec) {
  const auto [at, added] = maps_.try_emplace(spec, static_cast<std::int32_t>(program_.tensor_maps.size()));
  if (added) program_.tensor_maps.push_back(spec);
  return at->second;
}

}  // namespace tritax::gpu
