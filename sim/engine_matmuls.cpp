// Matmuls and attends of workgroups.
#include "sim/engine_matmuls.hpp"

#include <algorithm>
#include <utility>

#include "model/schedule/op_traits.hpp"
#include "model/schedule/operations.hpp"
#include "sim/engine_matmul_times.hpp"

namespace tritax::engine {

void Matmuls::begin(WorkgroupState& wg, std::uint32_t id, double now) {
  const std::int32_t rank = wg.rank;
  GpuState& gpu = run_.gpus[rank];
  parts_.held_loads.note_store_wait(wg, now);
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
  count_cu(gpu, wg.cu, +1, now);

  const double compute_ns = shape.cost.compute_ns / slowed;
  const std::int32_t sharers = std::max(1, gpu.cus[static_cast<std::size_t>(wg.cu)].matmul_workgroups);
  const double together = std::min(static_cast<double>(sharers), shape.shared_speedup) / sharers;
  const Missed missed = shape.attends ? parts_.attention.begin(wg, id, sharers, now)
                                      : parts_.operands.look_up(rank, die, run_.schedule.ops[wg.pc], inputs,
                                                                shape, compute_ns, now);
  if (parts_.counters.any()) parts_.counters.tell_operands(wg, shape, missed);
  const Coalesced coalesced = shape.attends
                                  ? Coalesced{0, parts_.attention.pace_of(id)}
                                  : parts_.lock_step.coalesce(wg, id, inputs, missed.bits, compute_ns, now);
  wg.l2_fill_gb_per_s = slowed * missed.l2_bytes / shape.cost.compute_ns;
  wg.llc_fill_gb_per_s = slowed * missed.llc_bytes / shape.cost.compute_ns;
  l2.begin_fill(wg.l2_fill_gb_per_s, now);
  gpu.llc.begin_fill(wg.llc_fill_gb_per_s, now);

  const double least_ns = std::max(arrival_ns(shape, sharers, missed.bits), missed.others_ns - now);
  const double held_up_ns = written_first_ns(shape, missed, shape.cost.compute_ns / (clock * together));
  wg.operands_ns = missed.others_ns > now ? missed.others_ns + shape.cost.prologue_ns : 0;
  const double load_ghz = run_.machine.gpu.rate(shape.dtype).load_clock_ghz;
  parts_.clock.begin_draw(wg, shape,
                          load_ghz * (std::max(shape.cost.compute_ns / together, clock * least_ns) +
                                      clock * (shape.cost.prologue_ns + held_up_ns)),
                          missed.llc_bytes);
  if (parts_.clock.update(gpu)) parts_.classes.follow_clock(rank);
  const std::int32_t class_id =
      parts_.classes.class_of(rank, die, shape_id, sharers, missed, coalesced.levels);
  // The time alone is at the clock that all running matmuls leave, at most the clock of a fully busy GPU: a
  // slower run has met contention, not a busier chip.
  const double clock_now = std::min(1.0, Clock::factor(gpu, shape.dtype));
  wg.op_alone_ns = std::max(work_ns(shape, sharers, missed.bits, clock_now), least_ns) +
                   shape.cost.prologue_ns + held_up_ns;
  wg.op_reread_ns = 0;
  wg.op_part = &TimeAccount::compute_ns;
  wg.leads = wg.follows = nullptr;
  if (shape.peer >= 0) {
    join_peer_load(wg, inputs.a_slab, crosses_links(shape, missed.bits), now);
    wg.op_part = &TimeAccount::wire_ns;
    wg.op_compute_ns = work_ns(shape, sharers, missed.bits, clock_now);
    wg.op_lost_ns = run_.fluid.lost_on_links_ns(class_id);
  }
  wg.waiting = Waiting::activity;
  run_.fluid.start(class_id, shape.cost.operand_bytes, coalesced.spread, token_of(id, false), now);
  parts_.outlook.look_ahead(wg, now);
}

bool Matmuls::lacks_operands(std::uint32_t id, double now) {
  WorkgroupState& wg = run_.workgroups[id];
  if (parts_.lock_step.awaits_leader(wg, id) || awaits_peer_load(wg, id)) return true;
  if (!later(wg.operands_ns, now)) return wg.has_sender && parts_.held_loads.holds_up_matmul(id, now);
  wg.waiting = Waiting::time;
  run_.queue.push(wg.operands_ns, {EventKind::resume_workgroup, id});
  return true;
}

// `loads`: it does not find A of a peer in the L2 of its die.
void Matmuls::join_peer_load(WorkgroupState& wg, std::uint32_t slab, bool loads, double now) {
  if (!run_.machine.gpu.l2_keeps_peers) return;
  const std::uint64_t key =
      static_cast<std::uint64_t>(wg.rank) << 48 | static_cast<std::uint64_t>(wg.die) << 32 | slab;
  PeerLoad& load = peer_loads_[key];
  if (!loads) {
    wg.follows = &load;
    wg.leader_ns = load.start_ns;
  } else if (!load.running) {
    load.running = true;
    load.start_ns = now;
    wg.leads = &load;
  }
}

bool Matmuls::awaits_peer_load(WorkgroupState& wg, std::uint32_t id) {
  PeerLoad* const load = std::exchange(wg.follows, nullptr);
  if (load == nullptr || !load->running || load->start_ns != wg.leader_ns) return false;
  wg.next_waiter = load->first_waiter;
  load->first_waiter = id;
  wg.waiting = Waiting::time;
  return true;
}

void Matmuls::end_peer_load(WorkgroupState& wg, double now) {
  PeerLoad* const load = std::exchange(wg.leads, nullptr);
  if (load == nullptr) return;
  load->running = false;
  std::uint32_t id = std::exchange(load->first_waiter, kNobody);
  while (id != kNobody) {
    run_.queue.push(now, {EventKind::resume_workgroup, id});
    id = std::exchange(run_.workgroups[id].next_waiter, kNobody);
  }
}

// What a matmul takes if nothing holds up its operands is computing, the rest of its time alone is the
// wire's.
void Matmuls::charge_computing(WorkgroupState& wg, double now) const {
  if (wg.op_part == &TimeAccount::wire_ns)
    wg.path.charge(&TimeAccount::compute_ns, std::min(now, wg.op_start_ns + wg.op_compute_ns));
}

void Matmuls::end(WorkgroupState& wg, std::uint32_t id, const Op& op, double now) {
  const std::int32_t rank = wg.rank;
  GpuState& gpu = run_.gpus[rank];
  gpu.l2[static_cast<std::size_t>(wg.die)].end_fill(wg.l2_fill_gb_per_s, now);
  gpu.llc.end_fill(wg.llc_fill_gb_per_s, now);
  count_cu(gpu, wg.cu, -1, now);
  end_peer_load(wg, now);
  parts_.clock.end_draw(wg);
  if (parts_.clock.update(gpu)) parts_.classes.follow_clock(rank);
  if (attends(op.kind)) parts_.attention.end(wg, id, now);
  run_.totals.matrix_flops += flops_of(op);
}

void Matmuls::count_cu(GpuState& gpu, std::int32_t cu, std::int32_t change, double now) {
  std::int32_t& running = gpu.cus[static_cast<std::size_t>(cu)].matmuls;
  const bool before = running > 0;
  running += change;
  const std::int32_t more = (running > 0) - before;
  gpu.busy_matrix_cus += more;
  gpu.matrix_busy_ns -= more * now;
}

}  // namespace tritax::engine
