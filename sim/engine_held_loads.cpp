// Operand loads that wait behind stores.
#include "sim/engine_held_loads.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace tritax::engine {

// Requests of a compute unit leave through one queue: until a store to a peer has left, on a full link or at
// its own pace, few of the operand loads behind it get through, and the matmul waits for them once it has
// used up the data in LDS. Measured on 2 H200 (`tritax-gpu run --timeline` of fused schedules in which every
// store to the peer is repeated into two further buffers), 9856x4032x7296 per GPU, tiles of 128x128: matmuls
// of 43 us took 49 us beside stores of 7 us, and 63 us beside stores that the link kept for 23 us. A store to
// memory has this effect only while it waits.
bool HeldLoads::keeps_loads_waiting(const WorkgroupState& wg) const {
  return run_.machine.gpu.loads_queue_behind_stores && wg.store_in_flight && wg.store_rank != wg.rank;
}

namespace {
// Share of the loads that get through beside the store. Measured in the same way: with K = 1152 and the link
// always full, matmuls of 8.6 us end 3.6 us behind stores of 30 us instead of 6.2, with tiles of 128x256
// matmuls of 13.7 us end 7.6 us behind stores of 60 us instead of 11.
constexpr double kLoadsBesideStores = 0.1;
}  // namespace

void HeldLoads::note_store_wait(WorkgroupState& wg, double now) {
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

bool HeldLoads::holds_up_matmul(std::uint32_t id, double now) {
  WorkgroupState& wg = run_.workgroups[id];
  note_store_wait(wg, now);
  if (wg.held_up_ns <= 0) return false;
  if (!keeps_loads_waiting(wg)) {
    load_the_rest(id, now);
    return true;
  }
  wg.waiting = Waiting::loads;
  run_.queue.push(now + wg.held_up_ns / kLoadsBesideStores, {EventKind::delayed_loads_arrived, id});
  return true;
}

void HeldLoads::delayed_loads_arrived(std::uint32_t id, double now) {
  WorkgroupState& wg = run_.workgroups[id];
  if (wg.waiting != Waiting::loads) return;
  note_store_wait(wg, now);
  if (!later(now + wg.held_up_ns / kLoadsBesideStores, now)) load_the_rest(id, now);
}

// No store delays the loads of the matmul any longer; it gets all of them.
void HeldLoads::load_the_rest(std::uint32_t id, double now) {
  WorkgroupState& wg = run_.workgroups[id];
  wg.waiting = Waiting::time;
  run_.queue.push(now + std::max(0.0, wg.held_up_ns), {EventKind::resume_workgroup, id});
  wg.held_up_ns = -std::numeric_limits<double>::infinity();
}

void HeldLoads::resume_loads(std::uint32_t id, double now) {
  const WorkgroupState& wg = run_.workgroups[id];
  if (!keeps_loads_waiting(wg) || wg.held_up_ns <= 0) load_the_rest(id, now);
}

}  // namespace tritax::engine
