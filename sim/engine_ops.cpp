// Tile operations of workgroups.
#include <algorithm>
#include <cmath>

#include "model/core/error.hpp"
#include "model/schedule/op_traits.hpp"
#include "model/schedule/operations.hpp"
#include "sim/engine.hpp"

namespace tritax::engine {

// Runs operations of a workgroup until one takes time.
void Engine::step(std::uint32_t id, double now) {
  WorkgroupState& wg = run_.workgroups[id];
  while (wg.pc < wg.end || (!wg.sender_busy && queues_.goes_back_to_claim(wg, id))) {
    const Op& op = run_.schedule.ops[wg.pc];
    // One workgroup of thousands: its next operation leaves the caches before the next event.
    __builtin_prefetch(&op + 1);
    if (op.kind == OpKind::signal && run_.is_free(op) && wg.store_in_flight && !wg.has_sender) {
      ++run_.totals.tile_operations;
      run_.tell_start(wg, now);
      queues_.pass_signal(wg, id);
      ++wg.pc;  // the end of the store raises it
      continue;
    }
    if (wg.has_sender ? waits_for_sender(wg, op) : waits_for_store(wg, op)) {
      wg.waiting = Waiting::store;
      return;
    }
    if (wg.has_sender && is_sent(op)) {
      if (stages_or_passes(id, op, now)) return;
      hand_over(id, now);
      continue;
    }
    wg.computed = wg.computed || loads(op.kind);
    wg.op_start_ns = now;
    ++run_.totals.tile_operations;
    run_.tell_start(wg, now);
    if (begin_op(id, op, now)) return;
    ++wg.pc;
  }
  if (wg.sender_busy || wg.store_in_flight) {
    wg.waiting = Waiting::store;
    return;
  }
  wg.waiting = Waiting::nothing;
  finish_workgroup(id, now);
}

// A workgroup has one store in flight at a time, and none behind a barrier, which all waves reach once their
// stores can be read. If loads go out behind stores, or return in one order with them, so does the load that
// polls a flag. Operands of a matmul that only queue behind stores are held up for as long as the stores
// wait, see engine_sender.cpp.
bool Engine::waits_for_store(const WorkgroupState& wg, const Op& op) const {
  if (!wg.store_in_flight || (op.kind == OpKind::wait && run_.is_free(op))) return false;
  if (drains(op) || (run_.machine.gpu.loads_wait_for_stores && loads(op.kind))) return true;
  return run_.machine.gpu.loads_queue_behind_stores && loads(op.kind) && !multiplies(op.kind);
}

// Starts one operation; true if the workgroup has to wait for it.
bool Engine::begin_op(std::uint32_t id, const Op& op, double now) {
  WorkgroupState& wg = run_.workgroups[id];
  switch (op.kind) {
    case OpKind::matmul:
    case OpKind::attend:
      begin_matmul(wg, id, now);
      return true;
    case OpKind::sparse_product:
      begin_sparse_product(wg, id, now);
      return true;
    case OpKind::load:
    case OpKind::reduce:
    case OpKind::combine:
    case OpKind::rms_norm:
      begin_transfer(wg, id, wg.pc, now);
      return true;
    case OpKind::store:
    case OpKind::copy:
    case OpKind::atomic_add:
      begin_transfer(wg, id, wg.pc, now);
      return false;
    case OpKind::signal:
      wg.op_part = op.rank == wg.rank ? &TimeAccount::memory_ns : &TimeAccount::wire_ns;
      wg.waiting = Waiting::time;
      run_.queue.push(now + flags_.begin_signal(wg, op, now), {EventKind::resume_workgroup, id});
      return true;
    case OpKind::wait:
      flags_.begin_wait(wg, id, op, now);
      return true;
    case OpKind::barrier:
      if (!wg.has_sender || run_.costs_of(wg).meet_ns <= 0) {
        run_.tell_finish(wg, wg.pc, now);
        return false;
      }
      wg.op_part = &TimeAccount::memory_ns;
      wg.waiting = Waiting::time;
      run_.queue.push(now + run_.costs_of(wg).meet_ns, {EventKind::resume_workgroup, id});
      return true;
    case OpKind::claim:
      queues_.begin_claim(wg, id, op, now);
      return true;
  }
  TRITAX_ASSERT(false, "an operation of a known kind");
}

void Engine::begin_matmul(WorkgroupState& wg, std::uint32_t id, double now) {
  const std::int32_t rank = wg.rank;
  GpuState& gpu = run_.gpus[rank];
  note_store_wait(wg, now);
  const std::int32_t die = wg.die;
  ReuseCache& l2 = gpu.l2[static_cast<std::size_t>(die)];
  const MatmulInputs& inputs = run_.inputs_of_op[wg.pc];
  const std::uint32_t shape_id = inputs.shape;
  const MatmulShape& shape = run_.shapes[shape_id];
  const double clock = Clock::factor(gpu, shape.dtype);
  const double slowed = std::min(1.0, clock);
  // Earlier waiting of stores does not delay this matmul; its first operands were fetched before the stores
  // of the previous tile.
  wg.held_up_ns = -shape.fetched_ns / slowed;
  count_matrix_cu(gpu, wg.cu, +1, now);

  const double compute_ns = shape.cost.compute_ns / slowed;
  const std::int32_t sharers = std::max(1, gpu.cus[static_cast<std::size_t>(wg.cu)].matmul_workgroups);
  const double together = std::min(static_cast<double>(sharers), shape.shared_speedup) / sharers;
  const Missed missed =
      shape.attends ? attention_.begin(wg, id, sharers, now)
                    : operands_.look_up(rank, die, run_.schedule.ops[wg.pc], inputs, shape, compute_ns, now);
  if (counters_.any()) counters_.tell_operands(wg, shape, missed);
  const Coalesced coalesced = shape.attends
                                  ? Coalesced{0, attention_.pace_of(id)}
                                  : lock_step_.coalesce(wg, id, inputs, missed.bits, compute_ns, now);
  wg.l2_fill_gb_per_s = slowed * missed.l2_bytes / shape.cost.compute_ns;
  wg.llc_fill_gb_per_s = slowed * missed.llc_bytes / shape.cost.compute_ns;
  l2.begin_fill(wg.l2_fill_gb_per_s, now);
  gpu.llc.begin_fill(wg.llc_fill_gb_per_s, now);

  const double least_ns = std::max(arrival_ns(shape, missed.bits), missed.others_ns - now);
  const double held_up_ns = written_first_ns(shape, missed, shape.cost.compute_ns / (clock * together));
  wg.operands_ns = missed.others_ns > now ? missed.others_ns + shape.cost.prologue_ns : 0;
  const double load_ghz = run_.machine.gpu.rate(shape.dtype).load_clock_ghz;
  clock_.begin_draw(wg, shape,
                    load_ghz * (std::max(shape.cost.compute_ns / together, clock * least_ns) +
                                clock * (shape.cost.prologue_ns + held_up_ns)),
                    missed.llc_bytes);
  if (clock_.update(gpu)) matmul_classes_.follow_clock(gpu);
  const std::int32_t class_id =
      matmul_classes_.class_of(rank, die, shape_id, sharers, missed, coalesced.levels);
  // The time alone is at the clock that all running matmuls leave, at most the clock of a fully busy GPU: a
  // slower run has met contention, not a busier chip.
  const double clock_now = std::min(1.0, Clock::factor(gpu, shape.dtype));
  wg.op_alone_ns = std::max(work_ns(shape, sharers, missed.bits, clock_now), least_ns) +
                   shape.cost.prologue_ns + held_up_ns;
  wg.op_reread_ns = 0;
  wg.op_part = &TimeAccount::compute_ns;
  wg.waiting = Waiting::activity;
  run_.fluid.start(class_id, shape.cost.operand_bytes, coalesced.spread, token_of(id, false), now);
  outlook_.look_ahead(wg, now);
}

// A finished matmul may still lack operands that another matmul fetches, or that stores hold up; true if
// waiting for them takes time.
bool Engine::lacks_operands(std::uint32_t id, double now) {
  WorkgroupState& wg = run_.workgroups[id];
  if (lock_step_.awaits_leader(wg, id)) return true;
  if (!later(wg.operands_ns, now)) return wg.has_sender && holds_up_matmul(id, now);
  wg.waiting = Waiting::time;
  run_.queue.push(wg.operands_ns, {EventKind::resume_workgroup, id});
  return true;
}

void Engine::finish_matmul(WorkgroupState& wg, std::uint32_t id, const Op& op, double now) {
  const std::int32_t rank = wg.rank;
  GpuState& gpu = run_.gpus[rank];
  gpu.l2[static_cast<std::size_t>(wg.die)].end_fill(wg.l2_fill_gb_per_s, now);
  gpu.llc.end_fill(wg.llc_fill_gb_per_s, now);
  count_matrix_cu(gpu, wg.cu, -1, now);
  clock_.end_draw(wg);
  if (clock_.update(gpu)) matmul_classes_.follow_clock(gpu);
  if (op.kind == OpKind::attend) attention_.end(wg, id, now);
  run_.totals.matrix_flops += flops_of(op);
}

void Engine::count_matrix_cu(GpuState& gpu, std::int32_t cu, std::int32_t change, double now) {
  std::int32_t& running = gpu.cus[static_cast<std::size_t>(cu)].matmuls;
  const bool before = running > 0;
  running += change;
  const std::int32_t more = (running > 0) - before;
  gpu.busy_matrix_cus += more;
  gpu.matrix_busy_ns -= more * now;
}

// Extra time of a lone copy beside matmuls, by the number of compute units with a running matmul. In eighths
// of the compute units: every other value is another class of transfers.
void Engine::find_busy_copies() {
  constexpr double kParts = 8;
  for (std::int32_t cus = 0; cus <= run_.machine.gpu.cu_count(); ++cus) {
    const double busy = static_cast<double>(cus) / run_.machine.gpu.cu_count();
    busy_copy_share_.push_back(std::round(kParts * busy) / kParts);
  }
}

// The rate of one workgroup in a transfer that nothing holds up.
double Engine::transfer_cap(const WorkgroupState& wg, std::uint32_t op_index, const DataPath& path) const {
  const KernelCosts& costs = run_.costs_of(wg);
  const GpuState& gpu = run_.gpus[path.rank];
  const bool multiplies = gpu.busy_matrix_cus > 0;
  MoveConditions met{.gb_per_s = path.cap_gb_per_s, .read_ns = tiles_.read_latency_ns(path)};
  met.lone = (costs.knows_guarded_copies() || (costs.busy_copy_ns > 0 && multiplies)) &&
             run_.is_lone_copy(wg, op_index, path);
  met.probes = run_.is_next_probe(wg, op_index);
  met.busy_share = busy_copy_share_[static_cast<std::size_t>(gpu.busy_matrix_cus)];
  // Compute units issue at a clock that is lower while matrix cores are busy.
  if (multiplies) met.clock_share = gpu.clock_share;
  return run_.moves.gb_per_s_alone(run_.schedule.kernels[wg.kernel], run_.schedule.ops[op_index], path, met);
}

void Engine::begin_transfer(WorkgroupState& wg, std::uint32_t id, std::uint32_t op_index, double now) {
  const Op& op = run_.schedule.ops[op_index];
  DataPath path = traffic_.path_of(wg, op, now);
  if (counters_.any()) counters_.tell_transfer(wg, op_index, path);
  const double bytes = path.bytes;
  const bool asynchronous = is_asynchronous(op.kind);
  path.cap_gb_per_s = transfer_cap(wg, op_index, path);
  const bool counts = crowds_.counts(wg, path);
  if (counts) crowds_.join(path);
  const std::int32_t class_id = traffic_.class_of(path);
  const double alone = bytes / path.cap_gb_per_s;
  // A load only fetches its tile, a copy waits for its first bytes.
  const double reread = !path.rereads  ? 0
                        : asynchronous ? std::min(alone, tiles_.read_latency_ns(path))
                                       : alone;
  const bool remote = path.peer != path.rank;
  double TimeAccount::*part = remote ? &TimeAccount::wire_ns : &TimeAccount::memory_ns;
  if (asynchronous) {
    wg.store_in_flight = true;
    wg.store_start_ns = now;
    if (run_.machine.gpu.loads_queue_behind_stores) run_.sender_of(wg).waited_ns = 0;
    wg.store_alone_ns = alone;
    wg.store_reread_ns = reread;
    wg.store_part = part;
    wg.store_op = op_index;
    wg.store_rank = op.rank;
    wg.store_crowds = counts;
    wg.store_bytes = bytes;
    tiles_.begin_write(wg, op);
    wg.remote_dirty = wg.remote_dirty || remote;
    const double between_ns = between_nodes_ns(run_.machine, path.rank, path.peer);
    wg.far_dirty = wg.far_dirty || between_ns > 0;
    wg.spine_dirty = wg.spine_dirty || between_ns > run_.machine.fabric.network_latency_ns;
  } else {
    wg.op_alone_ns = alone;
    wg.op_reread_ns = reread;
    wg.op_part = part;
    wg.waiting = Waiting::activity;
  }
  // A transfer that has a link for itself gets its full rate. A class has one level for all its activities,
  // so this is decided once, when the transfer starts.
  const bool common = path.kind == MoveKind::remote_store && wg.has_sender && lock_step_.coalesces(wg);
  const double weight = !run_.fluid.contended(class_id) ? 1
                        : common                        ? lock_step_.weight_in_port(wg, op_index)
                                                        : luck_.service_weight(wg, op_index);
  run_.fluid.start(class_id, bytes, weight, token_of(id, asynchronous), now);
  (asynchronous ? wg.store_lost_ns : wg.op_lost_ns) = run_.fluid.lost_on_links_ns(class_id);
  if (op_index == wg.pc) outlook_.look_ahead(wg, now);
}

// A timed operation has ended.
void Engine::resume(std::uint32_t id, double now) {
  WorkgroupState& wg = run_.workgroups[id];
  const Op& op = run_.schedule.ops[wg.pc];
  const std::int32_t rank = wg.rank;
  if (multiplies(op.kind)) {
    if (lacks_operands(id, now)) return;
    charge_activity(wg.path, wg.op_start_ns, 0, wg.op_alone_ns, wg.op_part, 0, now);
    finish_matmul(wg, id, op, now);
  }
  wg.path.charge(wg.op_part, now);
  wg.waiting = Waiting::nothing;
  run_.tell_finish(wg, wg.pc, now);
  ++wg.pc;
  if (op.kind == OpKind::signal) {
    flags_.deliver(wg, op, wg.path, now);
  } else if (op.kind == OpKind::wait) {
    GpuState& gpu = run_.gpus[rank];
    if (run_.machine.gpu.acquire_drops_l2 && op.scope != Scope::workgroup && !run_.is_free(op)) {
      gpu.l2[static_cast<std::size_t>(wg.die)].drop(now);
    }
  } else if (op.kind == OpKind::claim) {
    queues_.end_claim(wg, id, op);
  }
  step(id, now);
}

void Engine::completed(const FluidNetwork::Completion& completion, double now) {
  ++run_.totals.events;
  if (is_transfer(completion.token)) {
    const CopyQueues::Ended ended =
        copies_.end(completion.token & ~kTransferToken, completion.lost_on_links_ns, now);
    hosts_.work_ended(ended.rank, ended.stream, ended.path, now);
    return;
  }
  const std::uint32_t id = workgroup_of(completion.token);
  WorkgroupState& wg = run_.workgroups[id];
  if (completion.token & 1u) {
    if (wg.sender_busy) {
      sent(id, completion.lost_on_links_ns, now);
      return;
    }
    note_store_wait(wg, now);
    wg.store_in_flight = false;
    if (wg.store_crowds) crowds_.leave(wg);
    tiles_.end_write(wg, now);
    run_.tell_finish(wg, wg.store_op, now);
    if (run_.free_flag >= 0) queues_.raise_passed(wg, id, completion.lost_on_links_ns, now);
    if (wg.waiting == Waiting::loads) resume_loads(id, now);
    if (wg.waiting != Waiting::store) return;
    wg.waiting = Waiting::nothing;
    charge_store(wg.path, wg, completion.lost_on_links_ns, now);
    step(id, now);
    return;
  }
  const Op& op = run_.schedule.ops[wg.pc];
  if (multiplies(op.kind)) {
    if (op.kind == OpKind::matmul) lock_step_.release_followers(wg, id, now);
    if (lacks_operands(id, now)) return;
  }
  charge_activity(wg.path, wg.op_start_ns, wg.op_reread_ns, wg.op_alone_ns, wg.op_part,
                  completion.lost_on_links_ns - wg.op_lost_ns, now);
  if (multiplies(op.kind)) finish_matmul(wg, id, op, now);
  wg.waiting = Waiting::nothing;
  run_.tell_finish(wg, wg.pc, now);
  ++wg.pc;
  step(id, now);
}

}  // namespace tritax::engine
