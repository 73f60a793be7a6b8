// Tile operations of workgroups.
#include "model/core/error.hpp"
#include "model/schedule/op_traits.hpp"
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
    if (wg.has_sender ? sender_.keeps_waiting(wg, op) : transfers_.waits_for_store(wg, op)) {
      wg.waiting = Waiting::store;
      return;
    }
    if (wg.has_sender && is_sent(op)) {
      if (sender_.stages_or_passes(id, op, now)) return;
      sender_.hand_over(id, now);
      continue;
    }
    if (begins_group(wg)) {
      begin_group(id, now);
      return;
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
  if (wg.group_of != kNobody) {
    end_member(id, now);
  } else {
    finish_workgroup(id, now);
  }
}

// Starts one operation; true if the workgroup has to wait for it.
bool Engine::begin_op(std::uint32_t id, const Op& op, double now) {
  WorkgroupState& wg = run_.workgroups[id];
  switch (op.kind) {
    case OpKind::matmul:
    case OpKind::attend:
    case OpKind::attend_backward:
      matmuls_.begin(wg, id, now);
      return true;
    case OpKind::sparse_product:
      sparse_products_.begin(wg, id, now);
      return true;
    case OpKind::load:
    case OpKind::reduce:
    case OpKind::combine:
    case OpKind::rms_norm:
    case OpKind::row_dot:
      transfers_.begin(wg, id, wg.pc, now);
      return true;
    case OpKind::store:
    case OpKind::copy:
    case OpKind::atomic_add:
      if (op.by_engine) {
        transfers_.note_posted(wg, wg.pc, now);
        copies_.post(id, op, now);
      } else {
        transfers_.begin(wg, id, wg.pc, now);
      }
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

// A timed operation has ended.
void Engine::resume(std::uint32_t id, double now) {
  WorkgroupState& wg = run_.workgroups[id];
  const Op& op = run_.schedule.ops[wg.pc];
  const std::int32_t rank = wg.rank;
  if (multiplies(op.kind)) {
    if (matmuls_.lacks_operands(id, now)) return;
    matmuls_.charge_computing(wg, now);
    charge_activity(wg.path, wg.op_start_ns, 0, wg.op_alone_ns, wg.op_part, 0, now);
    matmuls_.end(wg, id, op, now);
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

// The store in flight has ended, or the copy that the workgroup has posted, which has a path of its own.
void Engine::go_on_after_store(std::uint32_t id, double lost_ns, const Path* posted, double now) {
  WorkgroupState& wg = run_.workgroups[id];
  run_.tell_finish(wg, wg.store_op, now);
  if (run_.free_flag >= 0) queues_.raise_passed(wg, id, lost_ns, now);
  if (wg.waiting == Waiting::loads) held_loads_.resume_loads(id, now);
  if (wg.waiting != Waiting::store) return;
  wg.waiting = Waiting::nothing;
  if (posted != nullptr) {
    wg.path = *posted;
  } else {
    charge_store(wg.path, wg, lost_ns, now);
  }
  step(id, now);
}

void Engine::completed(const FluidNetwork::Completion& completion, double now) {
  ++run_.totals.events;
  if (is_transfer(completion.token)) {
    const CopyQueues::Ended ended =
        copies_.end(completion.token & ~kTransferToken, completion.lost_on_links_ns, now);
    if (ended.workgroup == kNobody) {
      hosts_.work_ended(ended.rank, ended.stream, ended.path, now);
    } else {
      WorkgroupState& wg = run_.workgroups[ended.workgroup];
      wg.store_in_flight = false;
      wg.store_alone_ns = now - wg.store_start_ns;
      go_on_after_store(ended.workgroup, 0, &ended.path, now);
    }
    return;
  }
  const std::uint32_t id = workgroup_of(completion.token);
  WorkgroupState& wg = run_.workgroups[id];
  if (completion.token & 1u) {
    if (wg.sender_busy) {
      if (sender_.store_ended(id, completion.lost_on_links_ns, now)) step(id, now);
      return;
    }
    transfers_.end_store(wg, now);
    go_on_after_store(id, completion.lost_on_links_ns, nullptr, now);
    return;
  }
  const Op& op = run_.schedule.ops[wg.pc];
  if (multiplies(op.kind)) {
    if (op.kind == OpKind::matmul) lock_step_.release_followers(wg, id, now);
    if (matmuls_.lacks_operands(id, now)) return;
    matmuls_.charge_computing(wg, now);
  }
  charge_activity(wg.path, wg.op_start_ns, wg.op_reread_ns, wg.op_alone_ns, wg.op_part,
                  completion.lost_on_links_ns - wg.op_lost_ns, now);
  if (multiplies(op.kind)) matmuls_.end(wg, id, op, now);
  wg.waiting = Waiting::nothing;
  run_.tell_finish(wg, wg.pc, now);
  ++wg.pc;
  step(id, now);
}

}  // namespace tritax::engine
