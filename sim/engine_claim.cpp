// Work queues: claims that draw items, or skip operations.
//
// A claim takes one trip to the counter, behind those that are on their way to it: a cache adds to one
// address once a clock (NVIDIA's whitepaper on Kepler GK110, "one operation per clock"; assumed of all
// others), and nobody waits for the answers to others. Who has drawn an item goes on with its operations
// (WorkgroupState::pc and end), and at their end comes back to the claim, which it begins as any other
// operation: stores of the item may still be in flight, and the claim waits for the sender if there is one.
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

// The answer is here; the workgroup is behind the claim already.
void Engine::end_claim(WorkgroupState& wg, std::uint32_t id, const Op& op) {
  FlagState& flag = flags_[flag_of(wg.rank, op)];
  --flag.pollers;
  const std::int32_t drawn = flag.value++;
  if (!draws_items(op)) {
    if (drawn >= op.value) wg.pc += static_cast<std::uint32_t>(op.rect.rows);
  } else if (drawn < item_count(op)) {
    draws_[id].claim = wg.pc - 1;
    const Item& item = run_.schedule.kernels[wg.kernel].items[static_cast<std::size_t>(op.k_begin + drawn)];
    go_to(wg, id, item.first_op, item.first_op + item.op_count);
  }
}

// The sender, which is idle, follows.
void Engine::go_to(WorkgroupState& wg, std::uint32_t id, std::uint32_t first, std::uint32_t end) {
  wg.pc = first;
  wg.end = end;
  if (wg.has_sender) run_.senders[id].pc = first;
}

// At the end of its operations: false if they are its own, and not those of an item.
bool Engine::goes_back_to_claim(WorkgroupState& wg, std::uint32_t id) {
  if (draws_.empty() || draws_[id].claim == kNobody) return false;
  const Workgroup& own = run_.schedule.kernels[wg.kernel].workgroups[wg.number];
  go_to(wg, id, draws_[id].claim, own.first_op + own.op_count);
  draws_[id].claim = kNobody;
  return true;
}

// Raises the free signals that the workgroup has passed, as raise_after_store() does where all lie between
// the store and the workgroup's place; false if they do.
bool Engine::raises_passed(WorkgroupState& wg, const Path& path, double now) {
  if (draws_.empty()) return false;
  std::vector<std::uint32_t>& passed = draws_[&wg - run_.workgroups.data()].passed;
  for (const std::uint32_t o : passed) {
    run_.tell_finish(wg, o, now);
    deliver_signal(wg, run_.schedule.ops[o], path, now);
  }
  passed.clear();
  return true;
}

}  // namespace tritax::engine
