// Work queues: claims that draw items, or skip operations.
//
// A claim takes one trip to the counter, behind the claims on their way: a cache adds to one address once per
// clock (NVIDIA's whitepaper on Kepler GK110, "one operation per clock"; assumed for all other GPUs), and a
// claim does not wait for the answers to others. A workgroup that has drawn an item continues with the item's
// operations (WorkgroupState::pc and end). At their end the workgroup returns to the claim and begins it like
// any other operation: stores of the item may still be in flight, and the claim waits for the sender if there
// is one.
#include "sim/engine_claim.hpp"

#include "model/schedule/items.hpp"

namespace tritax::engine {

void WorkQueues::begin_claim(WorkgroupState& wg, std::uint32_t id, const Op& op, double now) {
  const std::int32_t rank = wg.rank;
  const std::int32_t claims = flags_.begin_claim(flags_.flag_of(rank, op));
  wg.op_part = &TimeAccount::memory_ns;
  wg.waiting = Waiting::time;
  run_.queue.push(now + run_.machine.gpu.flag_cross_die_ns + (claims - 1) / run_.machine.gpu.boost_clock_ghz,
                  {EventKind::resume_workgroup, id});
}

// The answer has arrived; the pc of the workgroup is already behind the claim.
void WorkQueues::end_claim(WorkgroupState& wg, std::uint32_t id, const Op& op) {
  const std::int32_t drawn = flags_.end_claim(flags_.flag_of(wg.rank, op));
  if (!draws_items(op)) {
    if (drawn >= op.value) wg.pc += static_cast<std::uint32_t>(op.rect.rows);
  } else if (drawn < item_count(op)) {
    state_of(id).claim = wg.pc - 1;
    const Item& item = run_.schedule.kernels[wg.kernel].items[static_cast<std::size_t>(op.k_begin + drawn)];
    go_to(wg, id, item.first_op, item.first_op + item.op_count);
  }
}

// The sender is idle; its pc follows.
void WorkQueues::go_to(WorkgroupState& wg, std::uint32_t id, std::uint32_t first, std::uint32_t end) {
  wg.pc = first;
  wg.end = end;
  if (wg.has_sender) run_.senders[id].pc = first;
}

// Called at the end of the operations; false if the operations do not belong to an item.
bool WorkQueues::goes_back_to_claim(WorkgroupState& wg, std::uint32_t id) {
  if (id >= states_.size() || states_[id].claim == kNobody) return false;
  const Workgroup& own = run_.schedule.kernels[wg.kernel].workgroups[wg.number];
  go_to(wg, id, states_[id].claim, own.first_op + own.op_count);
  states_[id].claim = kNobody;
  return true;
}

// Raises the free signals that the workgroup has passed while its store was in flight.
void WorkQueues::raise_passed(WorkgroupState& wg, std::uint32_t id, double lost_ns, double now) {
  Path path = wg.path;
  charge_store(path, wg, lost_ns, now);
  if (run_.has_items) {
    std::vector<std::uint32_t>& passed = state_of(id).passed;
    for (const std::uint32_t o : passed) {
      run_.tell_finish(wg, o, now);
      flags_.deliver(wg, run_.schedule.ops[o], path, now);
    }
    passed.clear();
    return;
  }
  // All passed signals lie between the store and the pc.
  for (std::uint32_t o = wg.store_op + 1; o < wg.pc; ++o) {
    const Op& op = run_.schedule.ops[o];
    if (op.kind != OpKind::signal || !run_.is_free(op)) continue;
    run_.tell_finish(wg, o, now);
    flags_.deliver(wg, op, path, now);
  }
}

}  // namespace tritax::engine
