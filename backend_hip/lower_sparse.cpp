// Lowers kernels with sparse products, and kernels that search, one element after the other.
//
// The result of a sparse_product may have many thousand rows, which no register file holds, and kernels write
// a row when it is finished. So the product carries out the stores and additions directly behind it; these
// must write every row once, all to one column. The loads of a search are carried out together, each behind
// the one before.
// together, each behind the one before.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "backend_hip/lowering.hpp"
#include "model/core/error.hpp"
#include "model/schedule/op_traits.hpp"
#include "model/schedule/op_views.hpp"

namespace tritax::gpu {

namespace {

constexpr std::int32_t kMostProbes = 32;  // behind one load: the lanes of the smallest wave hold them

bool is_load(const Op& op) { return op.kind == OpKind::load || op.kind == OpKind::reduce; }

}  // namespace

// A kernel without a product counts too if it loads single elements one after the other and nothing larger.
bool Lowering::runs_sparse(const Kernel& kernel) const {
  bool has_product = false, searches = false, single = true;
  for (std::size_t p = 0; p < program_count(kernel); ++p) {
    bool loads = false;
    for (const Op& op : ops_of(schedule_, program_of(kernel, p))) {
      has_product = has_product || op.kind == OpKind::sparse_product;
      searches = searches || (loads && op.kind == OpKind::load);
      loads = is_load(op);
      if (traits_of(op.kind).accumulator == AccumulatorUse::none) continue;
      single = single && op.rect.rows == 1 && op.rect.cols == 1 && op.buffer >= 0 &&
               schedule_.buffers[static_cast<std::size_t>(op.buffer)].dtype == DType::fp32;
    }
  }
  if (has_product && (tile_ != nullptr || attend_ != nullptr)) {
    throw UserError(fmt::format(
        "schedule '{}', kernel '{}': sparse products beside matmul or attend; GPUs run them in kernels apart",
        schedule_.name, kernel.name));
  }
  return has_product || (searches && single && tile_ == nullptr && attend_ == nullptr);
}

bool Lowering::is_skip_target(std::uint32_t begin, std::uint32_t end) const {
  return std::any_of(skip_targets_.begin(), skip_targets_.end(),
                     [&](std::uint32_t target) { return begin <= target && target < end; });
}

void Lowering::lower_sparse_product(const Op& op, std::uint32_t number, DeviceOp& out) {
  const SparseView view(op);
  const SparseMatrix& matrix = matrix_of(schedule_, op);
  const SparsePlace& structure = heap_.sparse[static_cast<std::size_t>(view.matrix())];
  const std::uint64_t base = heap_base_[static_cast<std::size_t>(rank_)];
  const DType values = schedule_.buffers[static_cast<std::size_t>(view.values())].dtype;
  const DType x = schedule_.buffers[static_cast<std::size_t>(view.x())].dtype;
  if (values != x) {
    refuse(number, fmt::format("values are {} and x is {}; GPUs multiply numbers of one dtype",
                               name_of(values), name_of(x)));
  }
  if (values == DType::fp64)
    refuse(number, "values are fp64; GPUs multiply sparse matrices of up to 4 bytes");
  const LaneSharing sharing = view.sharing();
  const bool grouped = sharing == LaneSharing::vector || sharing == LaneSharing::group;
  if (grouped &&
      (view.lanes() > threads_ || !std::has_single_bit(static_cast<std::uint32_t>(view.lanes())))) {
    refuse(number, fmt::format("{} lanes of {} threads take rows together; powers of two up to the threads "
                               "are possible",
                               view.lanes(), threads_));
  }
  touch({x_of(op, rank_), false}, out);
  if (op.k_end > op.k_begin) touch({nonzeros_of(op, rank_), false}, out);
  const std::uint32_t end = lower_sparse_writes(op, number, out);
  DeviceOp of_values, of_x;
  place(view.values(), 0, 0, rank_, of_values);
  place(view.x(), 0, 0, rank_, of_x);
  out.dtype = static_cast<std::uint8_t>(values);
  out.source = of_values.address;
  out.values = of_x.address;
  out.values_pitch = of_x.pitch;
  out.offsets = base + structure.offsets + static_cast<std::uint64_t>(op.rect.row) * sizeof(std::int32_t);
  out.columns = base + structure.columns;
  out.k_begin = op.k_begin;
  out.k_end = op.k_end;
  out.value = view.sharing_number();
  out.group = view.lanes();
  out.row = row_ends_;
  out.skip = static_cast<std::int32_t>(end - number) - 1;
  TRITAX_ASSERT(op.rect.row + op.rect.rows <= matrix.rows, "the checker refuses rows that are not there");
  done_until_ = end;
  team_wrote_ = true;
  accumulator_ = {};
}

std::uint32_t Lowering::lower_sparse_writes(const Op& op, std::uint32_t number, DeviceOp& out) {
  const Rect& rows = op.rect;
  std::int64_t written = 0;
  const Op* first = nullptr;
  std::uint32_t end = number + 1;
  bool once = true;
  for (; end < program_end_; ++end) {
    const Op& write = schedule_.ops[end];
    if (write.kind != OpKind::store && write.kind != OpKind::atomic_add) break;
    if (first == nullptr) first = &write;
    const Rect& part = write.rect;
    const bool is_first = part.row == rows.row, is_last = part.row + part.rows == rows.row + rows.rows;
    const bool inside = part.row >= rows.row && part.row + part.rows <= rows.row + rows.rows;
    once = once && inside && write.buffer == first->buffer && write.rank == first->rank && part.col == 0;
    if (write.kind == OpKind::atomic_add) {
      once = once && part.rows == 1 && (is_first || is_last);
      if (is_first) out.partial |= kAddsFirstRow;
      if (is_last) out.partial |= kAddsLastRow;
    }
    written += part.rows;
    for (std::uint32_t other = number + 1; other < end; ++other) {
      once = once && !overlap(schedule_.ops[other].rect, part);
    }
  }
  if (!once || written != rows.rows || is_skip_target(number + 1, end)) {
    refuse(
        number,
        "what a sparse product leaves is written on GPUs as it comes: by a store right behind it, and atomic "
        "additions of its first and last row, which together write every row once to one buffer");
  }
  const Buffer& y = schedule_.buffers[static_cast<std::size_t>(first->buffer)];
  if (y.dtype != DType::fp32) {
    refuse(number, fmt::format("sums go to buffer '{}' of {}; fp32 is possible", y.name, name_of(y.dtype)));
  }
  place(first->buffer, rows.row, 0, first->rank, out);
  touch({{first->buffer, first->rank, {rows.row, 0, rows.rows, 1}}, true}, out);
  return end;
}

void Lowering::lower_probes(const Op& op, std::uint32_t number, DeviceOp& out) {
  const auto is_single = [&](const Op& one) {
    return one.rect.rows == 1 && one.rect.cols == 1 &&
           schedule_.buffers[static_cast<std::size_t>(one.buffer)].dtype == DType::fp32;
  };
  if (!is_single(op)) {
    refuse(number, "loads more than one element of fp32 in a kernel of sparse products");
  }
  place(op.buffer, op.rect.row, op.rect.col, op.rank, out);
  touch({tile_of(op), false}, out);
  if (op.kind == OpKind::load || accumulator_.empty) out.bits |= kFresh;
  accumulator_ = {.empty = false, .stored = false, .staged = false};
  out.row = static_cast<std::int32_t>(program_.probes.size());
  std::uint32_t end = number + 1;
  for (; end < program_end_ && out.skip < kMostProbes; ++end) {
    const Op& next = schedule_.ops[end];
    if (next.kind != OpKind::load || next.buffer != op.buffer || next.rank != op.rank || !is_single(next))
      break;
    if (is_skip_target(end, end + 1) || conflicts({tile_of(next), false})) break;
    DeviceOp at;
    place(next.buffer, next.rect.row, next.rect.col, next.rank, at);
    const auto bytes = static_cast<std::int64_t>(at.address - out.address);
    if (bytes < INT32_MIN || bytes > INT32_MAX) break;
    program_.probes.push_back(static_cast<std::int32_t>(bytes));
    accesses_.push_back({tile_of(next), false});
    ++out.skip;
  }
  done_until_ = end;
}

void Lowering::lower_single_write(const Op& op, std::uint32_t number, DeviceOp& out) {
  if (accumulator_.empty) {
    refuse(number, "writes out what a sparse product has left, but not right behind it");
  }
  const Buffer& buffer = write_to(op, number, out);
  if (op.rect.rows != 1 || op.rect.cols != 1 || buffer.dtype != DType::fp32) {
    refuse(number, "stores more than one element of fp32 in a kernel of sparse products");
  }
  accumulator_.stored = true;
  team_wrote_ = true;
}

}  // namespace tritax::gpu
