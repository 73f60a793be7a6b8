// Copy engines and events.
//
// A transfer takes its turn in its stream as a kernel does. Then the first free engine of its GPU takes it,
// first come, first served. The engine first works on the packet and moves no data (launch tax); then it
// moves the bytes over the links, ports and memories that a workgroup would use, at most at the rate of the
// engine. No compute unit, L2 or issue limit takes part. A record of an event and a wait for it are points of
// a stream that take no time.
#include <fmt/format.h>

#include <algorithm>

#include "model/core/error.hpp"
#include "model/machine/check_machine.hpp"
#include "model/schedule/op_traits.hpp"
#include "sim/engine.hpp"

namespace tritax::engine {

void Engine::index_copy_engines() {
  engine_queues_.resize(run_.gpus.size());
  if (run_.schedule.transfers.empty()) return;
  require_copy_engines(run_.machine, fmt::format("schedule '{}'", run_.schedule.name));
  if (run_.options.counterfactual.free_launches) copy_engines_.packet_ns = 0;
  for (EngineQueue& queue : engine_queues_) {
    queue.last_end.resize(static_cast<std::size_t>(copy_engines_.engines));
    queue.busy.assign(static_cast<std::size_t>(copy_engines_.engines), 0);
  }
}

void Engine::post_copy(std::int32_t rank, const HostOp& op, std::uint32_t host_op, double now) {
  TransferState transfer;
  transfer.op = static_cast<std::uint32_t>(op.transfer);
  transfer.rank = rank;
  transfer.host_op = host_op;
  transfer.stream = op.stream;
  transfers_.push_back(transfer);
  TRITAX_ASSERT(transfers_.size() < kTransferToken, "tokens have room for all transfers");
  post(rank, op.stream, {StreamState::Kind::copy, static_cast<std::uint32_t>(transfers_.size()) - 1, now});
}

void Engine::post_record(std::int32_t rank, const HostOp& op, double now) {
  const auto record = static_cast<std::uint32_t>(event_records_.size());
  event_records_.emplace_back();
  hosts_[static_cast<std::size_t>(rank)].last_record[static_cast<std::size_t>(op.event)] = record;
  post(rank, op.stream, {StreamState::Kind::record, record, now});
}

void Engine::post_wait(std::int32_t rank, const HostOp& op, double now) {
  const std::uint32_t record =
      hosts_[static_cast<std::size_t>(rank)].last_record[static_cast<std::size_t>(op.event)];
  if (record == kNobody) {
    throw UserError(fmt::format("schedule '{}': rank {} waits for event {}, which it has not recorded",
                                run_.schedule.name, rank, op.event));
  }
  post(rank, op.stream, {StreamState::Kind::wait, record, now});
}

// Passes a record or a wait whose turn in its stream has come; false if the event has not happened yet. The
// stream continues with the later of its own path and the path of the event.
bool Engine::pass_point(StreamState& stream, const StreamState::Pending& pending) {
  EventRecord& record = event_records_[pending.item];
  const bool records = pending.kind == StreamState::Kind::record;
  if (!records && !record.happened) return false;
  if (!stream.used || later(pending.launch.time_ns, stream.last_end.time_ns))
    stream.last_end = pending.launch;
  stream.used = true;
  if (records) {
    record.path = stream.last_end;
    record.happened = true;
  } else if (later(record.path.time_ns, stream.last_end.time_ns)) {
    stream.last_end = record.path;
  }
  return true;
}

// The transfer's turn in its stream has come.
void Engine::begin_copy(std::uint32_t id, double now) {
  TransferState& transfer = transfers_[id];
  transfer.path.charge(&TimeAccount::launch_ns, now);
  EngineQueue& queue = engine_queues_[static_cast<std::size_t>(transfer.rank)];
  const auto idle = std::find(queue.busy.begin(), queue.busy.end(), 0);
  if (idle == queue.busy.end()) {
    queue.waiting.push_back(id);
  } else {
    take_engine(id, static_cast<std::int32_t>(idle - queue.busy.begin()), now);
  }
}

void Engine::take_engine(std::uint32_t id, std::int32_t engine, double now) {
  TransferState& transfer = transfers_[id];
  EngineQueue& queue = engine_queues_[static_cast<std::size_t>(transfer.rank)];
  queue.busy[static_cast<std::size_t>(engine)] = 1;
  transfer.engine = engine;
  // A transfer that has waited for the engine continues with the path of the transfer before it.
  const Path& last_end = queue.last_end[static_cast<std::size_t>(engine)];
  if (later(last_end.time_ns, transfer.path.time_ns)) transfer.path = last_end;
  if (run_.options.observer)
    run_.options.observer->copy_started(transfer.rank, transfer.host_op, engine, now);
  run_.queue.push(now + copy_engines_.packet_ns, {EventKind::transfer_moves, id});
}

void Engine::move_copy(std::uint32_t id, double now) {
  TransferState& transfer = transfers_[id];
  transfer.path.charge(&TimeAccount::launch_ns, now);
  const Op& op = run_.schedule.transfers[transfer.op];
  const DataPath path = traffic_.path_of_copy(op, transfer.rank);
  if (counters_.any()) counters_.tell_copy(transfer.rank, transfer.host_op, op, path);
  const std::int32_t class_id = traffic_.class_of(path);
  transfer.begin_ns = now;
  transfer.alone_ns = path.bytes / path.cap_gb_per_s;
  transfer.part = path.peer != path.rank ? &TimeAccount::wire_ns : &TimeAccount::memory_ns;
  run_.fluid.start(class_id, path.bytes, 1, kTransferToken | id, now);
  transfer.lost_ns = run_.fluid.lost_on_links_ns(class_id);
}

void Engine::finish_copy(std::uint32_t id, double lost_ns, double now) {
  TransferState& transfer = transfers_[id];
  const Op& op = run_.schedule.transfers[transfer.op];
  charge_activity(transfer.path, transfer.begin_ns, 0, transfer.alone_ns, transfer.part,
                  lost_ns - transfer.lost_ns, now);
  tiles_.note_copied(op, transfer.path, now);
  if (run_.options.observer) run_.options.observer->copy_finished(transfer.rank, transfer.host_op, now);
  EngineQueue& queue = engine_queues_[static_cast<std::size_t>(transfer.rank)];
  queue.busy[static_cast<std::size_t>(transfer.engine)] = 0;
  queue.last_end[static_cast<std::size_t>(transfer.engine)] = transfer.path;
  const std::int32_t rank = transfer.rank;
  StreamState& stream =
      hosts_[static_cast<std::size_t>(rank)].streams[static_cast<std::size_t>(transfer.stream)];
  stream.busy = false;
  stream.last_end = transfer.path;
  if (queue.head < queue.waiting.size()) take_engine(queue.waiting[queue.head++], transfer.engine, now);
  start_next_in_stream(rank, transfer.stream);
  stream_progressed(rank, now);
}

}  // namespace tritax::engine
