// Groups: operations of a workgroup that start together (model/schedule/group.hpp).
//
// Each operation of a group has a state of its own, a member, with the compute unit and the path of its
// workgroup. A member runs one operation as a workgroup does. The workgroup goes on when the last has ended,
// with the path of that one. Stores and signals that sending waves carry out (engine_sender.hpp) follow each
// other, as everywhere in such kernels.
#include <algorithm>

#include "sim/engine.hpp"

namespace tritax::engine {

bool Engine::begins_group(const WorkgroupState& wg) const {
  return run_.most_together > 1 && wg.pc + 1 < wg.end && run_.schedule.ops[wg.pc + 1].with_previous;
}

void Engine::begin_group(std::uint32_t id, double now) {
  WorkgroupState& wg = run_.workgroups[id];
  const std::uint32_t first = wg.pc;
  std::uint32_t end = first + 1;
  while (end < wg.end && run_.schedule.ops[end].with_previous) ++end;
  wg.pc = end;
  wg.waiting = Waiting::group;
  wg.running = end - first;
  WorkgroupState member = wg;
  member.end = member.pc;
  member.running = 0;
  member.together = static_cast<std::uint16_t>(end - first);
  member.group_of = id;
  member.waiting = Waiting::nothing;
  member.store_in_flight = member.has_sender = member.sender_busy = false;
  // What the members leave unpublished is collected when they end.
  wg.remote_dirty = wg.far_dirty = wg.spine_dirty = false;
  const double known_ns = run_.sender_of(wg).signals_known_ns;
  // All states first: a member may end at once, and its workgroup may go on.
  std::vector<std::uint32_t> members;
  for (std::uint32_t op = first; op < end; ++op) {
    const std::uint32_t place = dispatch_.take_place(member.kernel, member.number);
    run_.workgroups[place] = member;
    run_.workgroups[place].pc = op;
    run_.workgroups[place].end = op + 1;
    run_.senders[place] = {.signals_known_ns = known_ns, .path = {}};
    members.push_back(place);
  }
  for (const std::uint32_t place : members) step(place, now);
}

void Engine::end_member(std::uint32_t id, double now) {
  WorkgroupState& member = run_.workgroups[id];
  const std::uint32_t owner = member.group_of;
  WorkgroupState& wg = run_.workgroups[owner];
  wg.remote_dirty |= member.remote_dirty;
  wg.far_dirty |= member.far_dirty;
  wg.spine_dirty |= member.spine_dirty;
  wg.computed |= member.computed;
  wg.read_since_start |= member.read_since_start;
  double& known_ns = run_.sender_of(wg).signals_known_ns;
  known_ns = std::max(known_ns, run_.sender_of(member).signals_known_ns);
  wg.path = member.path;
  dispatch_.give_back(id);
  if (--wg.running > 0) return;
  wg.waiting = Waiting::nothing;
  step(owner, now);
}

}  // namespace tritax::engine
