// Stores beside the matmuls of their workgroup.
//
// If the GPU has asynchronous tile stores (Gpu::async_tile_store), a workgroup of a matmul kernel puts a
// finished tile into a staging area in LDS, once for all ranks it goes to. Separate waves, the sender, store
// the tile from there and raise the flags, in program order, while the matrix cores continue. The sender
// therefore follows the workgroup through the same list of operations: it has stored and signalled everything
// before SenderState::pc. The staging area holds one tile, so the next tile waits until the sender has stored
// the last one; all other operations wait until the sender is idle.
#include "sim/engine_sender.hpp"

#include "model/schedule/op_traits.hpp"

namespace tritax::engine {

bool Sender::staging_in_use(const WorkgroupState& wg) const {
  if (!wg.sender_busy) return false;
  for (std::uint32_t i = run_.sender_of(wg).pc; i < wg.pc; ++i) {
    if (run_.schedule.ops[i].kind == OpKind::store) return true;
  }
  return false;
}

bool Sender::keeps_waiting(const WorkgroupState& wg, const Op& op) const {
  const bool own_store = wg.store_in_flight && !wg.sender_busy;  // of the computing waves: a copy, an atomic
  switch (op.kind) {
    case OpKind::matmul:
    case OpKind::attend:
      return false;
    case OpKind::signal:
      return own_store && !is_relaxed(op);
    case OpKind::barrier:  // its fence holds until stores are performed
      return wg.sender_busy || own_store;
    case OpKind::store:
      return own_store || (wg.computed && staging_in_use(wg));
    case OpKind::wait:
      if (run_.is_free(op)) return false;
      [[fallthrough]];
    default:
      return wg.sender_busy || transfers_.waits_for_store(wg, op);
  }
}

// The computing waves convert a new tile into the staging area. They pass by the next operations of the
// sender, but the fetch of the operation behind these has just begun. True if this takes time.
bool Sender::stages_or_passes(std::uint32_t id, const Op& op, double now) {
  WorkgroupState& wg = run_.workgroups[id];
  const KernelCosts& costs = run_.costs_of(wg);
  double time = op.kind == OpKind::signal && run_.is_free(op) ? 0 : costs.passed_op_ns;
  if (op.kind == OpKind::store && wg.computed) {
    time = costs.stage_op_ns;
    const Buffer& buffer = run_.schedule.buffers[static_cast<std::size_t>(op.buffer)];
    const double rate = stage_rate_gb_per_s(run_.machine.gpu, costs, buffer.dtype);
    if (rate > 0) time += bytes_of(buffer, op.rect) / rate;
  }
  if (time <= 0) return false;
  wg.waiting = Waiting::time;
  run_.queue.push(now + time, {EventKind::tile_staged, id});
  return true;
}

void Sender::tile_staged(std::uint32_t id, double now) {
  WorkgroupState& wg = run_.workgroups[id];
  wg.path.charge(&TimeAccount::memory_ns, now);
  wg.waiting = Waiting::nothing;
  hand_over(id, now);
}

// The workgroup leaves its current operation to the sender and goes on.
void Sender::hand_over(std::uint32_t id, double now) {
  WorkgroupState& wg = run_.workgroups[id];
  wg.computed = false;
  ++wg.pc;
  if (wg.sender_busy) return;
  run_.senders[id].path = wg.path;
  start_next(id, now);
}

// Starts the next operation of the sender.
void Sender::start_next(std::uint32_t id, double now) {
  WorkgroupState& wg = run_.workgroups[id];
  SenderState& sender = run_.senders[id];
  for (; sender.pc < wg.pc; ++sender.pc) {
    const Op& op = run_.schedule.ops[sender.pc];
    if (!is_sent(op)) continue;
    wg.sender_busy = true;
    ++run_.totals.tile_operations;
    if (run_.options.observer) run_.options.observer->op_started(run_.place_of(wg, sender.pc), now);
    if (op.kind == OpKind::store) {
      transfers_.begin(wg, id, sender.pc, now);
    } else {
      const double raised =
          now + flags_.begin_signal(wg, op, now) + (run_.is_free(op) ? 0 : run_.costs_of(wg).sent_signal_ns);
      run_.queue.push(raised, {EventKind::resume_sender, id});
    }
    return;
  }
  wg.sender_busy = false;
}

bool Sender::signal_ended(std::uint32_t id, double now) {
  WorkgroupState& wg = run_.workgroups[id];
  SenderState& sender = run_.senders[id];
  const Op& op = run_.schedule.ops[sender.pc];
  sender.path.charge(op.rank == wg.rank ? &TimeAccount::memory_ns : &TimeAccount::wire_ns, now);
  run_.tell_finish(wg, sender.pc, now);
  flags_.deliver(wg, op, sender.path, now);
  return progressed(id, now);
}

bool Sender::store_ended(std::uint32_t id, double lost_ns, double now) {
  WorkgroupState& wg = run_.workgroups[id];
  charge_store(run_.senders[id].path, wg, lost_ns, now);
  transfers_.end_store(wg, now);
  run_.tell_finish(wg, run_.senders[id].pc, now);
  return progressed(id, now);
}

bool Sender::progressed(std::uint32_t id, double now) {
  WorkgroupState& wg = run_.workgroups[id];
  ++run_.senders[id].pc;
  start_next(id, now);
  if (wg.waiting == Waiting::loads) held_loads_.resume_loads(id, now);
  if (wg.waiting != Waiting::store) return false;
  wg.waiting = Waiting::nothing;
  if (later(run_.senders[id].path.time_ns, wg.path.time_ns)) wg.path = run_.senders[id].path;
  return true;
}

}  // namespace tritax::engine
