// Names of slabs, and matmuls of equal cost.
#include <algorithm>
#include <limits>

#include "model/core/error.hpp"
#include "model/cost/attend_backward_cost.hpp"
#include "model/cost/kernel_rates.hpp"
#include "model/cost/matmul_power.hpp"
#include "model/schedule/op_traits.hpp"
#include "sim/engine_operands.hpp"

namespace tritax::engine {

OperandIndex::OperandIndex(Run& run, Operands& operands, Attention& attention)
    : run_(run), operands_(operands), attention_(attention) {
  run_.inputs_of_op.resize(run_.schedule.ops.size());
}

void OperandIndex::begin_kernel(std::uint32_t kernel) {
  kernel_ = kernel;
  shape_ids_.clear();
  last_key_ = {};
  last_shape_ = 0;
}

void OperandIndex::finish() { operands_.overlaps().finish(); }

// Queries stay in registers from one attend to the next of the same tile, and so do keys and values backward.
OperandIndex::AttendForm OperandIndex::form_of(const Op& op) const {
  if (!attends(op.kind)) return AttendForm::none;
  const bool same = before_ != nullptr && before_->kind == op.kind && before_->buffer == op.buffer &&
                    before_->rect.row == op.rect.row && before_->rect.col == op.rect.col;
  return same ? AttendForm::goes_on : AttendForm::begins;
}

std::uint32_t OperandIndex::slab_of(std::int32_t buffer, std::int32_t origin, std::int32_t size, const Op& op,
                                    std::int32_t peer) {
  const auto id = static_cast<std::uint32_t>(slab_ids_.size());
  const SlabKey key{SlabOverlaps::band_of(buffer, origin),
                    static_cast<std::uint64_t>(op.k_begin) << 32 | static_cast<std::uint32_t>(op.k_end), size,
                    peer};
  const auto [entry, added] = slab_ids_.emplace(key, id);
  if (added && op.kind == OpKind::matmul && peer < 0) {
    const Buffer& operand = run_.schedule.buffers[static_cast<std::size_t>(buffer)];
    operands_.overlaps().add(id, key.where, size, op.k_begin, op.k_end,
                             bytes_of(operand, {0, 0, size, op.k_end - op.k_begin}));
  }
  return entry->second;
}

void OperandIndex::add(const Op& op, std::uint32_t index) {
  MatmulInputs& inputs = run_.inputs_of_op[index];
  const bool streams = attends(op.kind);
  inputs.a_slab = streams ? slab_of(op.src_buffer, op.src_col, op.rect.cols, op)
                          : slab_of(op.src_buffer, op.rect.row, op.rect.rows, op, owner_of_a(op, -1));
  inputs.b_slab = slab_of(op.b_buffer, streams ? op.src_col : op.rect.col, op.rect.cols, op);
  if (streams) {
    Op whole = op;
    whole.k_begin = op.b_buffer;
    whole.k_end = -1;
    attention_.name_stream(index, slab_of(op.src_buffer, op.src_col, op.rect.cols, whole));
  }
  inputs.shape = shape_id_of(op);
}

std::uint32_t OperandIndex::shape_id_of(const Op& op) {
  const AttendForm form = form_of(op);
  const auto key =
      std::make_tuple(op.kind, op.rect.rows, op.rect.cols, op.k_end - op.k_begin, form, owner_of_a(op, -1));
  if (key == last_key_) return last_shape_;
  last_key_ = key;
  const auto [entry, added] = shape_ids_.emplace(key, static_cast<std::uint32_t>(run_.shapes.size()));
  last_shape_ = entry->second;
  if (added) run_.shapes.push_back(attends(op.kind) ? attend_shape_of(op, form) : shape_of(op));
  TRITAX_ASSERT(run_.shapes.size() >> (32 - kMissBits) == 0, "keys of classes have room for all shapes");
  return last_shape_;
}

MatmulShape OperandIndex::attend_shape_of(const Op& op, AttendForm form) const {
  const Kernel& kernel = run_.schedule.kernels[kernel_];
  const KernelCosts& costs = run_.costs.of(kernel);
  const Gpu& gpu = run_.machine.gpu;
  MatmulShape shape{
      .kernel = kernel_, .rows = op.rect.rows, .cols = op.rect.cols, .k = op.k_end - op.k_begin};
  shape.profile = kernel.profile;
  shape.attends = true;
  shape.dtype = run_.schedule.buffers[static_cast<std::size_t>(op.src_buffer)].dtype;
  const AttendCost attend =
      attend_cost_of(gpu, costs, shape.dtype, kernel.tile, kernel.resources, op, form == AttendForm::begins);
  shape.cost = attend.cost;
  shape.shared_speedup = attend.shared_speedup;
  const KernelRates& rates = run_.moves.rates(kernel_);
  shape.slowness = rates.time_factor;
  shape.cost.compute_ns /= rates.matmul_share;
  shape.cost.prologue_ns *= shape.slowness;
  shape.work = shape.slowness * matmul_draw(gpu, shape.dtype, shape.cost);
  shape.fetched_ns = attend.stages < attend.steps ? shape.cost.compute_ns * attend.stages / attend.steps
                                                  : std::numeric_limits<double>::infinity();
  shape.wait_ns = attend.wait_ns;
  for (double& wait_ns : shape.wait_ns) wait_ns *= shape.slowness;
  shape.from_llc_ns = shape.slowness * attend.from_llc_ns;
  shape.from_memory_ns = shape.slowness * attend.from_memory_ns;
  return shape;
}

MatmulShape OperandIndex::shape_of(const Op& op) const {
  const Kernel& kernel = run_.schedule.kernels[kernel_];
  const KernelCosts& costs = run_.costs.of(kernel);
  MatmulShape shape{
      .kernel = kernel_, .rows = op.rect.rows, .cols = op.rect.cols, .k = op.k_end - op.k_begin};
  shape.profile = kernel.profile;
  shape.dtype = run_.schedule.buffers[static_cast<std::size_t>(op.src_buffer)].dtype;
  shape.cost =
      matmul_cost(run_.machine.gpu, costs, shape.dtype, kernel.tile, shape.rows, shape.cols, shape.k);
  MatmulTile overlapped = kernel.tile;
  overlapped.pipeline = Pipeline::overlapped;
  const MatmulCost best =
      matmul_cost(run_.machine.gpu, costs, shape.dtype, overlapped, shape.rows, shape.cols, shape.k);
  shape.shared_speedup = shape.cost.compute_ns / best.compute_ns;
  const KernelRates& rates = run_.moves.rates(kernel_);
  shape.slowness = rates.time_factor;
  shape.cost.compute_ns /= rates.matmul_share;
  shape.cost.prologue_ns *= shape.slowness;
  const Gpu& gpu = run_.machine.gpu;
  const std::int32_t stages =
      operand_stages(gpu, costs, shape.dtype, kernel.tile, kernel.resources.lds_bytes);
  MatmulTile step = kernel.tile;
  step.k = step_depth(gpu, costs, shape.dtype, kernel.tile);
  const double steps = matmul_steps(costs, step, shape.k, bytes_of(shape.dtype));
  shape.work = shape.slowness * matmul_draw(gpu, shape.dtype, shape.cost);
  shape.fetched_ns =
      stages < steps ? shape.cost.compute_ns * stages / steps : std::numeric_limits<double>::infinity();
  MatmulTile local = kernel.tile;
  if (fetches_a(op)) local.m = 0;  // B alone comes from the own memory
  const auto from = [&](double latency_ns) {
    return shape.slowness * steps * stage_interval_ns(gpu, shape.dtype, local, stages, latency_ns);
  };
  shape.from_llc_ns = from(gpu.llc_latency_ns);
  shape.from_memory_ns = from(gpu.memory_stage_latency_ns());
  if (fetches_a(op)) add_peer(op, steps, stages, shape);
  return shape;
}

// A is the load of its tile from the peer; see DataTraffic.
void OperandIndex::add_peer(const Op& op, double steps, std::int32_t stages, MatmulShape& shape) const {
  const Kernel& kernel = run_.schedule.kernels[kernel_];
  const Op load = load_of_a(op, kernel.rank);
  const DataMove move = move_of(load, kernel.rank);
  const double round_trip_ns =
      run_.machine.fabric.load_round_trip_ns + 2 * between_nodes_ns(run_.machine, move.rank, move.peer);
  shape.peer = load.rank;
  MatmulTile step = kernel.tile;
  step.k = step_depth(run_.machine.gpu, run_.costs.of(kernel), shape.dtype, kernel.tile);
  shape.of_peer =
      peer_stages(run_.machine.gpu, step, shape.dtype, shape.slowness * steps, stages, shape.cost.a_bytes,
                  run_.moves.workgroup_gb_per_s(kernel_, move.kind), round_trip_ns);
  if (run_.moves.is_message(move)) shape.peer_link_cost = run_.moves.message_cost(load, move, shape.profile);
  shape.cost.prologue_ns += shape.slowness * std::max(0.0, round_trip_ns - run_.machine.gpu.hbm_latency_ns);
}

}  // namespace tritax::engine
