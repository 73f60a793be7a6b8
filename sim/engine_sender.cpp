// Stores beside the matmuls of their workgroup.
//
// If the GPU has asynchronous tile stores (Gpu::async_tile_store), a workgroup of a matmul kernel puts a
// finished tile into a staging area in LDS, once for all ranks it goes to. Separate waves, the sender, store
// the tile from there and raise the flags, in program order, while the matrix cores continue. The sender
// therefore follows the workgroup through the same list of operations: it has stored and signalled everything
// before SenderState::pc. The staging area holds one tile, so the next tile waits until the sender has stored
// the last one; all other operations wait until the sender is idle.
#include <algorithm>
#include <limits>
#include <utility>

#include "model/schedule/op_traits.hpp"
#include "sim/engine.hpp"

namespace tritax::engine {

bool Engine::staging_in_use(const WorkgroupState& wg) const {
  if (!wg.sender_busy) return false;
  for (std::uint32_t i = run_.sender_of(wg).pc; i < wg.pc; ++i) {
    if (run_.schedule.ops[i].kind == OpKind::store) return true;
  }
  return false;
}

bool Engine::waits_for_sender(const WorkgroupState& wg, const Op& op) const {
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
      return wg.sender_busy || waits_for_store(wg, op);
  }
}

// Requests of a compute unit leave through one queue: until a store to a peer has left, on a full link or at
// its own pace, few of the operand loads behind it get through, and the matmul waits for them once it has
// used up the data in LDS. Measured on 2 H200 (`tritax-gpu run --timeline` of fused schedules in which every
// store to the peer is repeated into two further buffers), 9856x4032x7296 per GPU, tiles of 128x128: matmuls
// of 43 us took 49 us beside stores of 7 us, and 63 us beside stores that the link kept for 23 us. A store to
// memory has this effect only while it waits.
bool Engine::keeps_loads_waiting(const WorkgroupState& wg) const {
  return run_.machine.gpu.loads_queue_behind_stores && wg.store_in_flight && wg.store_rank != wg.rank;
}

// Share of the loads that get through beside the store. Measured in the same way: with K = 1152 and the link
// always full, matmuls of 8.6 us end 3.6 us behind stores of 30 us instead of 6.2, with tiles of 128x256
// matmuls of 13.7 us end 7.6 us behind stores of 60 us instead of 11.
constexpr double kLoadsBesideStores = 0.1;

void Engine::note_store_wait(WorkgroupState& wg, double now) {
  if (!run_.machine.gpu.loads_queue_behind_stores || !wg.store_in_flight) return;
  const bool keeps = keeps_loads_waiting(wg);
  const double waited = std::max(0.0, now - wg.store_start_ns - (keeps ? 0 : wg.store_alone_ns));
  const double more = waited - std::exchange(run_.sender_of(wg).waited_ns, waited);
  if (wg.waiting == Waiting::loads) {
    wg.held_up_ns -= kLoadsBesideStores * more;
  } else {
    wg.held_up_ns += (keeps ? 1 - kLoadsBesideStores : 1) * more;
  }
}

// A matmul has all operands except those that stores held up; true if waiting for them takes time.
bool Engine::holds_up_matmul(std::uint32_t id, double now) {
  WorkgroupState& wg = run_.workgroups[id];
  note_store_wait(wg, now);
  if (wg.held_up_ns <= 0) return false;
  if (!keeps_loads_waiting(wg)) {
    load_the_rest(id, now);
    return true;
  }
  wg.waiting = Waiting::loads;
  run_.queue.push(now + wg.held_up_ns / kLoadsBesideStores, {EventKind::loads_trickled, id});
  return true;
}

// The loads of the waiting matmul have come beside the stores, unless stores left before.
void Engine::loads_trickled(std::uint32_t id, double now) {
  WorkgroupState& wg = run_.workgroups[id];
  if (wg.waiting != Waiting::loads) return;
  note_store_wait(wg, now);
  if (!later(now + wg.held_up_ns / kLoadsBesideStores, now)) load_the_rest(id, now);
}

// No store delays the loads of the matmul any longer; it gets all of them.
void Engine::load_the_rest(std::uint32_t id, double now) {
  WorkgroupState& wg = run_.workgroups[id];
  wg.waiting = Waiting::time;
  run_.queue.push(now + std::max(0.0, wg.held_up_ns), {EventKind::resume_workgroup, id});
  wg.held_up_ns = -std::numeric_limits<double>::infinity();
}

// The store that delayed the loads of a matmul has left, and another may have begun.
void Engine::resume_loads(std::uint32_t id, double now) {
  const WorkgroupState& wg = run_.workgroups[id];
  if (!keeps_loads_waiting(wg) || wg.held_up_ns <= 0) load_the_rest(id, now);
}

// The computing waves convert a new tile into the staging area. They pass by the next operations of the
// sender, but the fetch of the operation behind these has just begun. True if this takes time.
bool Engine::stages_or_passes(std::uint32_t id, const Op& op, double now) {
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

void Engine::tile_staged(std::uint32_t id, double now) {
  WorkgroupState& wg = run_.workgroups[id];
  wg.path.charge(&TimeAccount::memory_ns, now);
  wg.waiting = Waiting::nothing;
  hand_over(id, now);
  step(id, now);
}

// The workgroup leaves its current operation to the sender and goes on.
void Engine::hand_over(std::uint32_t id, double now) {
  WorkgroupState& wg = run_.workgroups[id];
  wg.computed = false;
  ++wg.pc;
  if (wg.sender_busy) return;
  run_.senders[id].path = wg.path;
  run_sender(id, now);
}

// Starts the next operation of the sender.
void Engine::run_sender(std::uint32_t id, double now) {
  WorkgroupState& wg = run_.workgroups[id];
  SenderState& sender = run_.senders[id];
  for (; sender.pc < wg.pc; ++sender.pc) {
    const Op& op = run_.schedule.ops[sender.pc];
    if (!is_sent(op)) continue;
    wg.sender_busy = true;
    ++run_.totals.tile_operations;
    if (run_.options.observer) run_.options.observer->op_started(run_.place_of(wg, sender.pc), now);
    if (op.kind == OpKind::store) {
      begin_transfer(wg, id, sender.pc, now);
    } else {
      const double raised =
          now + flags_.begin_signal(wg, op, now) + (run_.is_free(op) ? 0 : run_.costs_of(wg).sent_signal_ns);
      run_.queue.push(raised, {EventKind::resume_sender, id});
    }
    return;
  }
  wg.sender_busy = false;
}

// The release of a signal has ended.
void Engine::resume_sender(std::uint32_t id, double now) {
  WorkgroupState& wg = run_.workgroups[id];
  SenderState& sender = run_.senders[id];
  const Op& op = run_.schedule.ops[sender.pc];
  sender.path.charge(op.rank == wg.rank ? &TimeAccount::memory_ns : &TimeAccount::wire_ns, now);
  run_.tell_finish(wg, sender.pc, now);
  flags_.deliver(wg, op, sender.path, now);
  sender_progressed(id, now);
}

// A store has drained.
void Engine::sent(std::uint32_t id, double lost_ns, double now) {
  WorkgroupState& wg = run_.workgroups[id];
  note_store_wait(wg, now);
  wg.store_in_flight = false;
  charge_store(run_.senders[id].path, wg, lost_ns, now);
  tiles_.end_write(wg, now);
  run_.tell_finish(wg, run_.senders[id].pc, now);
  sender_progressed(id, now);
}

void Engine::sender_progressed(std::uint32_t id, double now) {
  WorkgroupState& wg = run_.workgroups[id];
  ++run_.senders[id].pc;
  run_sender(id, now);
  if (wg.waiting == Waiting::loads) resume_loads(id, now);
  if (wg.waiting != Waiting::store) return;
  wg.waiting = Waiting::nothing;
  if (later(run_.senders[id].path.time_ns, wg.path.time_ns)) wg.path = run_.senders[id].path;
  step(id, now);
}

}  // namespace tritax::engine
