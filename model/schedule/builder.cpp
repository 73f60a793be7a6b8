#include "model/schedule/builder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "model/core/error.hpp"
#include "model/schedule/op_traits.hpp"

namespace tritax {

namespace {

// Indices of the schedule have 16 bits to keep operations small; a wrapped index would name another object.
std::int16_t narrow(std::int64_t value) {
  TRITAX_ASSERT(
      value >= std::numeric_limits<std::int16_t>::min() && value <= std::numeric_limits<std::int16_t>::max(),
      "ranks, buffers and flag arrays are numbered with 16 bits");
  return static_cast<std::int16_t>(value);
}

Op copy_of(std::int16_t buffer, Rect rect, int rank, std::int16_t src_buffer, std::int32_t src_row,
           std::int32_t src_col, int src_rank) {
  Op op;
  op.kind = OpKind::copy;
  op.rank = narrow(rank);
  op.buffer = buffer;
  op.rect = rect;
  op.src_rank = narrow(src_rank);
  op.src_buffer = src_buffer;
  op.src_row = src_row;
  op.src_col = src_col;
  return op;
}

// Sorts the operations by kernels, workgroups and items, for callers that returned to an earlier kernel, or
// from items to workgroups.
void order_by_kernel(Schedule& schedule) {
  std::uint32_t expected = 0;
  bool ordered = true;
  for (const Kernel& kernel : schedule.kernels) {
    for (const auto* programs : {&kernel.workgroups, &kernel.items}) {
      for (const Workgroup& program : *programs) {
        ordered = ordered && program.first_op == expected;
        expected = program.first_op + program.op_count;
      }
    }
  }
  if (ordered) {
    return;
  }
  std::vector<Op> ops;
  ops.reserve(schedule.ops.size());
  for (Kernel& kernel : schedule.kernels) {
    for (auto* programs : {&kernel.workgroups, &kernel.items}) {
      for (Workgroup& program : *programs) {
        const auto begin = schedule.ops.begin() + program.first_op;
        program.first_op = static_cast<std::uint32_t>(ops.size());
        ops.insert(ops.end(), begin, begin + program.op_count);
      }
    }
  }
  schedule.ops = std::move(ops);
}

thread_local std::vector<Op> recycled;  // only its memory is used

}  // namespace

void recycle(Schedule&& schedule) {
  if (schedule.ops.capacity() > recycled.capacity()) recycled = std::move(schedule.ops);
}

ScheduleBuilder::ScheduleBuilder(std::string name, int ranks) {
  TRITAX_ASSERT(ranks >= 1, "a schedule has at least one rank");
  schedule_.ops = std::exchange(recycled, {});
  schedule_.ops.clear();
  schedule_.name = std::move(name);
  schedule_.ranks = narrow(ranks);
  schedule_.host.resize(static_cast<std::size_t>(ranks));
}

std::int16_t ScheduleBuilder::buffer(Buffer buffer) {
  schedule_.buffers.push_back(std::move(buffer));
  return narrow(static_cast<std::int64_t>(schedule_.buffers.size()) - 1);
}

std::int16_t ScheduleBuilder::flags(std::string name, std::int32_t count) {
  schedule_.flags.push_back({std::move(name), count});
  return narrow(static_cast<std::int64_t>(schedule_.flags.size()) - 1);
}

void ScheduleBuilder::reserve(std::size_t operations) {
  schedule_.ops.reserve(std::min(operations, kMostScheduled));
}

void ScheduleBuilder::require_room(std::size_t count, std::string_view what) const {
  if (count <= kMostScheduled) return;
  throw UserError(
      fmt::format("pattern {} on {} GPUs: {} {} are too many to schedule, at most {} are; use fewer GPUs, "
                  "compute units or "
                  "channels, or larger tiles",
                  schedule_.name, schedule_.ranks, count, what, kMostScheduled));
}

std::int32_t ScheduleBuilder::kernel(Kernel kernel) {
  TRITAX_ASSERT(kernel.workgroups.empty(), "workgroups are added with workgroup()");
  schedule_.kernels.push_back(std::move(kernel));
  return static_cast<std::int32_t>(schedule_.kernels.size()) - 1;
}

void ScheduleBuilder::result(std::int16_t buffer) { schedule_.result_buffer = buffer; }

Region ScheduleBuilder::whole(std::int16_t buffer, int rank) const {
  const Buffer& whole = schedule_.buffers.at(static_cast<std::size_t>(buffer));
  return {buffer, rank, {0, 0, whole.rows, whole.cols}};
}

void ScheduleBuilder::input(Region region, InputValues values) {
  schedule_.inputs.push_back({region, static_cast<std::int32_t>(schedule_.inputs.size()), values});
}

void ScheduleBuilder::expect_product(Region to, Region a, Region b, bool add) {
  schedule_.reference.push_back({ReferenceKind::product, add, to, a, b});
}

void ScheduleBuilder::expect_copy(Region to, Region a, bool add) {
  schedule_.reference.push_back({ReferenceKind::copy, add, to, a, {}});
}

void ScheduleBuilder::expect_sum(Region to, Region a, bool add) {
  schedule_.reference.push_back({ReferenceKind::sum, add, to, a, {}});
}

void ScheduleBuilder::expect_attention(Region to, Region q, Region k, Region v, std::int32_t limit,
                                       std::int32_t group) {
  schedule_.reference.push_back({ReferenceKind::attention, false, to, q, k, v, limit, group});
}

void ScheduleBuilder::expect_attention_backward(Region to, Region q, Region kv, Region d_out,
                                                Region statistics, std::int32_t limit, bool add) {
  ReferenceOp op{ReferenceKind::attention_backward, add, to, q, kv, d_out, limit};
  op.d = statistics;
  schedule_.reference.push_back(op);
}

void ScheduleBuilder::expect_row_dot(Region to, Region a, Region b) {
  schedule_.reference.push_back({ReferenceKind::row_dot, false, to, a, b});
}

void ScheduleBuilder::expect_rms_norm(Region to, Region a, Region weights) {
  schedule_.reference.push_back({ReferenceKind::rms_norm, false, to, a, weights});
}

void ScheduleBuilder::expect_sparse_product(Region to, std::int16_t sparse, Region values, Region x) {
  ReferenceOp op{ReferenceKind::sparse_product, false, to, values, x};
  op.index = sparse;
  schedule_.reference.push_back(op);
}

std::int16_t ScheduleBuilder::sparse(std::shared_ptr<const SparseMatrix> matrix) {
  schedule_.sparse.push_back(std::move(matrix));
  return static_cast<std::int16_t>(schedule_.sparse.size() - 1);
}

void ScheduleBuilder::sparse_product(std::int16_t sparse, std::int16_t values, std::int16_t x,
                                     SparseRange range, LaneSharing sharing, std::int32_t lanes) {
  Op& op = add(OpKind::sparse_product);
  op.index = sparse;
  op.src_buffer = values;
  op.b_buffer = x;
  op.rect = {range.row, 0, range.rows, 1};
  op.k_begin = range.k_begin;
  op.k_end = range.k_end;
  op.src_row = static_cast<std::int32_t>(sharing);
  op.value = lanes;
  op.src_col = schedule_.sparse.at(static_cast<std::size_t>(sparse))->cols;
}

void ScheduleBuilder::expect_column_blocks(std::int16_t a, std::int16_t b, std::int16_t c) {
  tritax::expect_column_blocks(schedule_, a, b, c);
}

void ScheduleBuilder::expect_gathered_rows(std::int16_t shard, std::int16_t gathered) {
  input(whole(shard));
  for (std::int32_t rank = 0; rank < schedule_.ranks; ++rank) {
    const Region own = whole(shard, rank);
    expect_copy({gathered, kEveryRank, {rank * own.rect.rows, 0, own.rect.rows, own.rect.cols}}, own);
  }
}

void ScheduleBuilder::workgroup(std::int32_t kernel) {
  TRITAX_ASSERT(kernel >= 0 && static_cast<std::size_t>(kernel) < schedule_.kernels.size(), "unknown kernel");
  schedule_.kernels[static_cast<std::size_t>(kernel)].workgroups.push_back(
      {static_cast<std::uint32_t>(schedule_.ops.size()), 0});
  current_kernel_ = kernel;
  require_room(++workgroups_, "workgroups and more");
  in_item_ = false;
}

std::int32_t ScheduleBuilder::item(std::int32_t kernel) {
  TRITAX_ASSERT(kernel >= 0 && static_cast<std::size_t>(kernel) < schedule_.kernels.size(), "unknown kernel");
  std::vector<Item>& items = schedule_.kernels[static_cast<std::size_t>(kernel)].items;
  items.push_back({static_cast<std::uint32_t>(schedule_.ops.size()), 0});
  current_kernel_ = kernel;
  in_item_ = true;
  return static_cast<std::int32_t>(items.size()) - 1;
}

Op& ScheduleBuilder::add(OpKind kind) {
  TRITAX_ASSERT(current_kernel_ >= 0, "workgroup() or item() comes before its operations");
  Kernel& kernel = schedule_.kernels[static_cast<std::size_t>(current_kernel_)];
  ++(in_item_ ? kernel.items : kernel.workgroups).back().op_count;
  Op& op = schedule_.ops.emplace_back();
  if (schedule_.ops.size() > kMostScheduled) [[unlikely]]
    require_room(schedule_.ops.size(), "tile operations and more");
  op.kind = kind;
  op.rank = narrow(kernel.rank);
  return op;
}

void ScheduleBuilder::matmul(std::int16_t a, std::int16_t b, Rect rect, std::int32_t k_begin,
                             std::int32_t k_end) {
  Op& op = add(OpKind::matmul);
  op.src_buffer = a;
  op.b_buffer = b;
  op.rect = rect;
  op.k_begin = k_begin;
  op.k_end = k_end;
}

void ScheduleBuilder::matmul_of(int owner, std::int16_t a, std::int16_t b, Rect rect, std::int32_t k_begin,
                                std::int32_t k_end) {
  matmul(a, b, rect, k_begin, k_end);
  Op& op = schedule_.ops.back();
  op.value = owner_value(owner, op.rank);
}

void ScheduleBuilder::attend(std::int16_t q, Rect rect, std::int16_t k, std::int16_t v, std::int32_t column,
                             std::int32_t k_begin, std::int32_t k_end, Mask mask) {
  Op& op = add(OpKind::attend);
  op.buffer = q;
  op.rect = rect;
  op.src_buffer = k;
  op.b_buffer = v;
  op.src_col = column;
  op.k_begin = k_begin;
  op.k_end = k_end;
  op.value = mask.limit;
  op.index = mask.group;
}

void ScheduleBuilder::attend_backward(const BackwardBuffers& buffers, Rect rect, std::int32_t column,
                                      std::int32_t k_begin, std::int32_t k_end, std::int32_t limit) {
  Op& op = add(OpKind::attend_backward);
  op.buffer = buffers.kv;
  op.rect = rect;
  op.src_buffer = buffers.q;
  op.b_buffer = buffers.d_out;
  op.index = buffers.statistics;
  op.src_row = buffers.d_q;
  op.src_col = column;
  op.k_begin = k_begin;
  op.k_end = k_end;
  op.value = limit;
}

void ScheduleBuilder::combine(std::int16_t buffer, Rect rect, int rank) {
  add_tile(OpKind::combine, buffer, rect, rank);
}

void ScheduleBuilder::load(std::int16_t buffer, Rect rect, int rank) {
  add_tile(OpKind::load, buffer, rect, rank);
}

void ScheduleBuilder::store(std::int16_t buffer, Rect rect, int rank) {
  add_tile(OpKind::store, buffer, rect, rank);
}

void ScheduleBuilder::reduce(std::int16_t buffer, Rect rect, int rank) {
  add_tile(OpKind::reduce, buffer, rect, rank);
}

void ScheduleBuilder::rms_norm(std::int16_t weights, Rect rect, int rank) {
  add_tile(OpKind::rms_norm, weights, rect, rank);
}

void ScheduleBuilder::row_dot(std::int16_t buffer, Rect rect, int rank) {
  add_tile(OpKind::row_dot, buffer, rect, rank);
}

void ScheduleBuilder::atomic_add(std::int16_t buffer, Rect rect, int rank) {
  add_tile(OpKind::atomic_add, buffer, rect, rank);
}

Op& ScheduleBuilder::add_tile(OpKind kind, std::int16_t buffer, Rect rect, int rank) {
  Op& op = add(kind);
  op.buffer = buffer;
  op.rect = rect;
  op.rank = narrow(rank);
  return op;
}

void ScheduleBuilder::copy(std::int16_t buffer, Rect rect, int rank, std::int16_t src_buffer,
                           std::int32_t src_row, std::int32_t src_col, int src_rank) {
  add(OpKind::copy) = copy_of(buffer, rect, rank, src_buffer, src_row, src_col, src_rank);
}

void ScheduleBuilder::signal(std::int16_t flag, std::int32_t index, std::int32_t value, int rank, Scope scope,
                             LockProtocol protocol, MemoryOrder order) {
  Op& op = add(OpKind::signal);
  op.flag = flag;
  op.index = index;
  op.value = value;
  op.rank = narrow(rank);
  op.scope = scope;
  op.protocol = protocol;
  op.order = order;
}

void ScheduleBuilder::set_flag(std::int16_t flag, std::int32_t index, std::int32_t value, int rank,
                               Scope scope, LockProtocol protocol, MemoryOrder order) {
  signal(flag, index, value, rank, scope, protocol, order);
  schedule_.ops.back().change = FlagChange::set;
}

void ScheduleBuilder::wait(std::int16_t flag, std::int32_t index, std::int32_t value, Scope scope,
                           LockProtocol protocol) {
  Op& op = add(OpKind::wait);
  op.flag = flag;
  op.index = index;
  op.value = value;
  op.scope = scope;
  op.protocol = protocol;
}

void ScheduleBuilder::barrier() { add(OpKind::barrier); }

void ScheduleBuilder::claim(std::int16_t flag, std::int32_t index, std::int32_t limit,
                            std::int32_t skip_operations) {
  Op& op = add(OpKind::claim);
  op.flag = flag;
  op.index = index;
  op.value = limit;
  op.rect.rows = skip_operations;
}

void ScheduleBuilder::claim_items(std::int16_t flag, std::int32_t index, std::int32_t first,
                                  std::int32_t count) {
  Op& op = add(OpKind::claim);
  op.flag = flag;
  op.index = index;
  op.k_begin = first;
  op.k_end = first + count;
}

void ScheduleBuilder::launch(int rank, std::int32_t kernel, std::int32_t stream) {
  schedule_.host.at(static_cast<std::size_t>(rank)).push_back({HostOpKind::launch, kernel, stream, -1});
}

void ScheduleBuilder::graph_launch(int rank, Graph graph) {
  schedule_.graphs.push_back(std::move(graph));
  const auto index = static_cast<std::int32_t>(schedule_.graphs.size()) - 1;
  schedule_.host.at(static_cast<std::size_t>(rank)).push_back({HostOpKind::graph_launch, -1, 0, index});
}

void ScheduleBuilder::host(int rank, HostOpKind kind, std::int32_t stream) { add_host(rank, kind, stream); }

HostOp& ScheduleBuilder::add_host(int rank, HostOpKind kind, std::int32_t stream) {
  return schedule_.host.at(static_cast<std::size_t>(rank)).emplace_back(HostOp{kind, -1, stream, -1});
}

void ScheduleBuilder::host_work(int rank, std::string_view label, double duration_ns) {
  HostOp& op = add_host(rank, HostOpKind::host_work, 0);
  op.label = label;
  op.duration_ns = duration_ns;
}

void ScheduleBuilder::host_copy(int rank, std::int32_t stream, std::int16_t buffer, Rect rect, int to_rank,
                                std::int16_t src_buffer, std::int32_t src_row, std::int32_t src_col,
                                int from_rank) {
  schedule_.transfers.push_back(copy_of(buffer, rect, to_rank, src_buffer, src_row, src_col, from_rank));
  add_host(rank, HostOpKind::copy, stream).transfer =
      static_cast<std::int32_t>(schedule_.transfers.size()) - 1;
}

void ScheduleBuilder::record_event(int rank, std::int32_t event, std::int32_t stream) {
  add_host(rank, HostOpKind::event_record, stream).event = event;
}

void ScheduleBuilder::wait_event(int rank, std::int32_t event, std::int32_t stream) {
  add_host(rank, HostOpKind::event_wait, stream).event = event;
}

Schedule ScheduleBuilder::finish() {
  order_by_kernel(schedule_);
  current_kernel_ = -1;
  return std::exchange(schedule_, Schedule{});
}

}  // namespace tritax
