// Transfers of workgroups.
#include "sim/engine_transfers.hpp"

#include <algorithm>
#include <cmath>

#include "model/schedule/op_traits.hpp"

namespace tritax::engine {

// Extra time of a lone copy beside matmuls, by the number of compute units with a running matmul. In eighths
// of the compute units: every other value is another class of transfers.
Transfers::Transfers(Run& run, const Parts& parts) : run_(run), parts_(parts) {
  constexpr double kParts = 8;
  for (std::int32_t cus = 0; cus <= run_.machine.gpu.cu_count(); ++cus) {
    const double busy = static_cast<double>(cus) / run_.machine.gpu.cu_count();
    busy_copy_share_.push_back(std::round(kParts * busy) / kParts);
  }
}

// A workgroup has one store in flight at a time, and none behind a barrier, which all waves reach once their
// stores can be read. If loads go out behind stores, or return in one order with them, so does the load that
// polls a flag. Operands of a matmul that only queue behind stores are held up for as long as the stores
// wait, see engine_sender.cpp.
bool Transfers::waits_for_store(const WorkgroupState& wg, const Op& op) const {
  if (!wg.store_in_flight || (op.kind == OpKind::wait && run_.is_free(op))) return false;
  if (drains(op) || (run_.machine.gpu.loads_wait_for_stores && loads(op.kind))) return true;
  return run_.machine.gpu.loads_queue_behind_stores && loads(op.kind) && !multiplies(op.kind);
}

// The rate of one workgroup in a transfer that nothing holds up.
double Transfers::cap_of(const WorkgroupState& wg, std::uint32_t op_index, const DataPath& path) const {
  const KernelCosts& costs = run_.costs_of(wg);
  const GpuState& gpu = run_.gpus[path.rank];
  const bool multiplies = gpu.busy_matrix_cus > 0;
  MoveConditions met{.gb_per_s = path.cap_gb_per_s, .read_ns = parts_.tiles.read_latency_ns(path)};
  met.together = run_.schedule.ops[op_index].multimem ? 1 : wg.together;
  met.lone = (costs.knows_guarded_copies() || (costs.busy_copy_ns > 0 && multiplies)) &&
             run_.is_lone_copy(wg, op_index, path);
  met.probes = run_.is_next_probe(wg, op_index);
  met.busy_share = busy_copy_share_[static_cast<std::size_t>(gpu.busy_matrix_cus)];
  // Compute units issue at a clock that is lower while matrix cores are busy.
  if (multiplies) met.clock_share = gpu.clock_share;
  return run_.moves.gb_per_s_alone(run_.schedule.kernels[wg.kernel], run_.schedule.ops[op_index], path, met);
}

void Transfers::begin(WorkgroupState& wg, std::uint32_t id, std::uint32_t op_index, double now) {
  const Op& op = run_.schedule.ops[op_index];
  DataPath path = parts_.traffic.path_of(wg, op, now);
  if (parts_.counters.any()) parts_.counters.tell_transfer(wg, op_index, path);
  const double bytes = path.bytes;
  const bool asynchronous = is_asynchronous(op.kind);
  path.cap_gb_per_s = cap_of(wg, op_index, path);
  const bool counts = parts_.crowds.counts(wg, path);
  if (counts) parts_.crowds.join(path);
  const std::int32_t class_id = parts_.traffic.class_of(path);
  const double alone = bytes / path.cap_gb_per_s;
  // A load only fetches its tile, a copy waits for its first bytes.
  const double reread = !path.rereads  ? 0
                        : asynchronous ? std::min(alone, parts_.tiles.read_latency_ns(path))
                                       : alone;
  const bool remote = path.peer != path.rank || path.fan > 1;
  double TimeAccount::*part = remote ? &TimeAccount::wire_ns : &TimeAccount::memory_ns;
  if (asynchronous) {
    note_store(wg, op_index, path);
    wg.store_start_ns = now;
    wg.store_alone_ns = alone;
    wg.store_reread_ns = reread;
    wg.store_part = part;
    wg.store_crowds = counts;
  } else {
    wg.op_alone_ns = alone;
    wg.op_reread_ns = reread;
    wg.op_part = part;
    wg.waiting = Waiting::activity;
  }
  // A transfer that has a link for itself gets its full rate. A class has one level for all its activities,
  // so this is decided once, when the transfer starts.
  const bool common =
      path.kind == DataMoveKind::remote_store && wg.has_sender && parts_.lock_step.coalesces(wg);
  const double weight = !run_.fluid.contended(class_id) ? 1
                        : common                        ? parts_.lock_step.weight_in_port(wg, op_index)
                                                        : parts_.luck.service_weight(wg, op_index);
  run_.fluid.start(class_id, bytes, weight, token_of(id, asynchronous), now);
  (asynchronous ? wg.store_lost_ns : wg.op_lost_ns) = run_.fluid.lost_on_links_ns(class_id);
  if (op_index == wg.pc) parts_.outlook.look_ahead(wg, now);
}

// Notes the store that begins, up to its times.
void Transfers::note_store(WorkgroupState& wg, std::uint32_t op_index, const DataPath& path) {
  if (run_.machine.gpu.loads_queue_behind_stores) run_.sender_of(wg).waited_ns = 0;
  note_in_flight(wg, op_index, path, path.bytes);
  parts_.tiles.begin_write(wg, run_.schedule.ops[op_index]);
}

// Notes the copy that the workgroup posts to a copy engine.
void Transfers::note_posted(WorkgroupState& wg, std::uint32_t op_index, double now) {
  const Op& op = run_.schedule.ops[op_index];
  const DataMove move = move_of(op, wg.rank);
  note_in_flight(wg, op_index, move, tile_bytes(run_.schedule, op));
  wg.store_start_ns = now;
  wg.store_reread_ns = wg.store_lost_ns = 0;
  wg.store_crowds = false;
  wg.store_part = move.peer != move.rank ? &TimeAccount::wire_ns : &TimeAccount::memory_ns;
  if (op_index == wg.pc) parts_.outlook.look_ahead(wg, now);
}

void Transfers::note_in_flight(WorkgroupState& wg, std::uint32_t op_index, const DataMove& move,
                               double bytes) const {
  wg.store_in_flight = true;
  wg.store_op = op_index;
  wg.store_rank = run_.schedule.ops[op_index].rank;
  wg.store_bytes = bytes;
  const double between_ns = between_nodes_ns(run_.machine, move.rank, move.peer);
  wg.remote_dirty = wg.remote_dirty || move.peer != move.rank;
  wg.far_dirty = wg.far_dirty || between_ns > 0;
  wg.spine_dirty = wg.spine_dirty || between_ns > run_.machine.fabric.network_latency_ns;
}

void Transfers::end_store(WorkgroupState& wg, double now) {
  parts_.held_loads.note_store_wait(wg, now);
  wg.store_in_flight = false;
  if (wg.store_crowds) parts_.crowds.leave(wg);
  parts_.tiles.end_write(wg, now);
}

}  // namespace tritax::engine
