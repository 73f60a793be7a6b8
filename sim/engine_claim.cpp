// Work queues: claims that draw items, or skip operations.
//
// A claim takes one trip to the counter, behind the claims on their way: a cache adds to one address once per
// clock (NVIDIA's whitepaper on Kepler GK110, "one operation per clock"; assumed for all other GPUs), and a
// claim does not wait for the answers to others. A workgroup that has drawn an item continues with the item's
// operations (WorkgroupState::pc and end). At their end the workgroup returns to the claim and begins it like
// any other operation: stores of the item may still be in flight, and the claim waits for the sender if there
// is one.
#include "model/schedule/items.hpp"
#include "sim/engine.hpp"

namespace tritax::engine {

void Engine::begin_claim(WorkgroupState& wg, std::uint32_t id, const Op& op, double now) {
  const std::int32_t rank = wg.rank;
  FlagState& flag = flags_[flag_of(rank, op)];
  ++flag.pollers;
  wg.op_part = &TimeAccount::memory_ns;
  wg.waiting = Waiting::time;
  run_.queue.push(
      now + run_.machine.gpu.flag_cross_die_ns + (flag.pollers - 1) / run_.machine.gpu.boost_clock_ghz,
      {EventKind::resume_workgroup, id});
}

// The answer has arrived; the pc of the workgroup is already behind the claim.
void Engine::end_claim(WorkgroupState& wg, std::uint32_t id, const Op& op) {
  FlagState& flag = flags_[flag_of(wg.rank, op)];
  --flag.pollers;
  const std::int32_t drawn = flag.value++;
  if (!draws_items(op)) {
    if (drawn >= op.value) wg.pc += static_cast<std::uint32_t>(op.rect.rows);
  } else if (drawn < item_count(op)) {
    draw_of(id).claim = wg.pc - 1;
    const Item& item = run_.schedule.kernels[wg.kernel].items[static_cast<std::size_t>(op.k_begin + drawn)];
    go_to(wg, id, item.first_op, item.first_op + item.op_count);
  }
}

// The sender is idle; its pc follows.
void Engine::go_to(WorkgroupState& wg, std::uint32_t id, std::uint32_t first, std::uint32_t end) {
  wg.pc = first;
  wg.end = end;
  if (wg.has_sender) run_.senders[id].pc = first;
}

// Called at the end of the operations; false if the operations do not belong to an item.
bool Engine::goes_back_to_claim(WorkgroupState& wg, std::uint32_t id) {
  if (id >= draws_.size() || draws_[id].claim == kNobody) return false;
  const Workgroup& own = run_.schedule.kernels[wg.kernel].workgroups[wg.number];
  go_to(wg, id, draws_[id].claim, own.first_op + own.op_count);
  draws_[id].claim = kNobody;
  return true;
}

// Raises the free signals that the workgroup has passed, if any kernel has items. False otherwise: then all
// passed signals lie between the store and the pc, and raise_after_store() raises them.
bool Engine::raises_passed(WorkgroupState& wg, const Path& path, double now) {
  if (!run_.has_items) return false;
  std::vector<std::uint32_t>& passed =
      draw_of(static_cast<std::uint32_t>(&wg - run_.workgroups.data())).passed;
  for (const std::uint32_t o : passed) {
    run_.tell_finish(wg, o, now);
    deliver_signal(wg, run_.schedule.ops[o], path, now);
  }
  passed.clear();
  return true;
}

}  // namespace tritax::engine
