// Copy engines.
//
// A transfer takes its turn in its stream as a kernel does. Then the first free engine of its GPU takes it,
// first come, first served. The engine first works on the packet and moves no data (launch tax); then it
// moves the bytes over the links, ports and memories that a workgroup would use, at most at the rate of the
// engine. No compute unit, L2 or issue limit takes part.
#include "sim/engine_copies.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/core/error.hpp"
#include "model/machine/check_machine.hpp"
#include "model/schedule/op_traits.hpp"

namespace tritax::engine {

CopyQueues::CopyQueues(Run& run, DataTraffic& traffic, TileRecords& tiles, const Counters& counters)
    : run_(run),
      traffic_(traffic),
      tiles_(tiles),
      counters_(counters),
      packet_ns_(run.options.counterfactual.free_launches ? 0 : run.machine.copy_engine.packet_ns),
      queues_(run.gpus.size()) {
  if (run_.schedule.transfers.empty() && !run_.posts_copies) return;
  require_copy_engines(run_.machine, fmt::format("schedule '{}'", run_.schedule.name));
  for (Queue& queue : queues_) {
    queue.last_end.resize(static_cast<std::size_t>(run_.machine.copy_engine.engines));
    queue.busy.assign(static_cast<std::size_t>(run_.machine.copy_engine.engines), 0);
  }
}

std::uint32_t CopyQueues::add(std::int32_t rank, const HostOp& op, std::uint32_t host_op) {
  Transfer transfer;
  transfer.op = &run_.schedule.transfers[static_cast<std::size_t>(op.transfer)];
  transfer.rank = rank;
  transfer.host_op = host_op;
  transfer.stream = op.stream;
  transfers_.push_back(transfer);
  TRITAX_ASSERT(transfers_.size() < kTransferToken, "tokens have room for all transfers");
  return static_cast<std::uint32_t>(transfers_.size()) - 1;
}

void CopyQueues::post(std::uint32_t workgroup, const Op& op, double now) {
  Transfer transfer;
  transfer.op = &op;
  transfer.rank = run_.workgroups[workgroup].rank;
  transfer.workgroup = workgroup;
  transfer.path = run_.workgroups[workgroup].path;
  transfers_.push_back(transfer);
  TRITAX_ASSERT(transfers_.size() < kTransferToken, "tokens have room for all transfers");
  begin(static_cast<std::uint32_t>(transfers_.size()) - 1, now);
}

void CopyQueues::begin(std::uint32_t id, double now) {
  Transfer& transfer = transfers_[id];
  transfer.path.charge(&TimeAccount::launch_ns, now);
  Queue& queue = queue_of(transfer);
  const auto idle = std::find(queue.busy.begin(), queue.busy.end(), 0);
  if (idle == queue.busy.end()) {
    queue.waiting.push_back(id);
  } else {
    take_engine(id, static_cast<std::int32_t>(idle - queue.busy.begin()), now);
  }
}

void CopyQueues::take_engine(std::uint32_t id, std::int32_t engine, double now) {
  Transfer& transfer = transfers_[id];
  Queue& queue = queue_of(transfer);
  queue.busy[static_cast<std::size_t>(engine)] = 1;
  transfer.engine = engine;
  // A transfer that has waited for the engine continues with the path of the transfer before it.
  const Path& last_end = queue.last_end[static_cast<std::size_t>(engine)];
  if (later(last_end.time_ns, transfer.path.time_ns)) transfer.path = last_end;
  if (run_.options.observer && transfer.workgroup == kNobody)
    run_.options.observer->copy_started(transfer.rank, transfer.host_op, engine, now);
  run_.queue.push(now + packet_ns_, {EventKind::transfer_moves, id});
}

void CopyQueues::move(std::uint32_t id, double now) {
  Transfer& transfer = transfers_[id];
  transfer.path.charge(&TimeAccount::launch_ns, now);
  const DataPath path = traffic_.path_of_copy(*transfer.op, transfer.rank);
  if (counters_.any() && transfer.workgroup == kNobody) {
    counters_.tell_copy(transfer.rank, transfer.host_op, *transfer.op, path);
  } else if (counters_.any()) {
    const WorkgroupState& wg = run_.workgroups[transfer.workgroup];
    counters_.tell_transfer(wg, wg.store_op, path);
  }
  const std::int32_t class_id = traffic_.class_of(path);
  transfer.begin_ns = now;
  transfer.alone_ns = path.bytes / path.cap_gb_per_s;
  transfer.part = path.peer != path.rank ? &TimeAccount::wire_ns : &TimeAccount::memory_ns;
  run_.fluid.start(class_id, path.bytes, 1, kTransferToken | id, now);
  transfer.lost_ns = run_.fluid.lost_on_links_ns(class_id);
}

CopyQueues::Ended CopyQueues::end(std::uint32_t id, double lost_ns, double now) {
  Transfer& transfer = transfers_[id];
  charge_activity(transfer.path, transfer.begin_ns, 0, transfer.alone_ns, transfer.part,
                  lost_ns - transfer.lost_ns, now);
  tiles_.note_copied(*transfer.op, transfer.path, now);
  if (run_.options.observer && transfer.workgroup == kNobody)
    run_.options.observer->copy_finished(transfer.rank, transfer.host_op, now);
  Queue& queue = queue_of(transfer);
  queue.busy[static_cast<std::size_t>(transfer.engine)] = 0;
  queue.last_end[static_cast<std::size_t>(transfer.engine)] = transfer.path;
  if (queue.head < queue.waiting.size()) take_engine(queue.waiting[queue.head++], transfer.engine, now);
  return {transfer.rank, transfer.stream, transfer.path, transfer.workgroup};
}

}  // namespace tritax::engine
