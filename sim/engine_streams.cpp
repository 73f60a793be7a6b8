// Streams and events. A record of an event and a wait for it are points of a stream that take no time.
#include "sim/engine_streams.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/core/error.hpp"

namespace tritax::engine {

Streams::Streams(Run& run, CopyQueues& copies)
    : run_(run), copies_(copies), ranks_(static_cast<std::size_t>(run.simulated_ranks)) {
  std::int32_t of_graphs = 1;
  for (const Graph& graph : run_.schedule.graphs) {
    for (const GraphNode& node : graph) of_graphs = std::max(of_graphs, node.stream + 1);
  }
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    std::int32_t streams = of_graphs;
    std::int32_t events = 0;
    for (const HostOp& op : run_.schedule.host[rank]) {
      streams = std::max(streams, op.stream + 1);
      events = std::max(events, op.event + 1);
    }
    ranks_[rank].last_record.assign(static_cast<std::size_t>(events), kNobody);
    ranks_[rank].streams.resize(static_cast<std::size_t>(streams));
  }
}

void Streams::post(std::int32_t rank, std::int32_t stream, const Work& work) {
  Rank& of = ranks_[static_cast<std::size_t>(rank)];
  Stream& state = of.streams[static_cast<std::size_t>(stream)];
  if (state.queue.empty()) of.order.push_back(stream);
  state.queue.push_back(work);
  start_next(rank, stream);
}

std::uint32_t Streams::add_record(std::int32_t rank, std::int32_t event) {
  const auto record = static_cast<std::uint32_t>(records_.size());
  records_.emplace_back();
  ranks_[static_cast<std::size_t>(rank)].last_record[static_cast<std::size_t>(event)] = record;
  return record;
}

std::uint32_t Streams::last_record(std::int32_t rank, std::int32_t event) const {
  const std::uint32_t record =
      ranks_[static_cast<std::size_t>(rank)].last_record[static_cast<std::size_t>(event)];
  if (record == kNobody) {
    throw UserError(fmt::format("schedule '{}': rank {} waits for event {}, which it has not recorded",
                                run_.schedule.name, rank, event));
  }
  return record;
}

// Passes a record or a wait whose turn in its stream has come; false if the event has not happened yet. The
// stream continues with the later of its own path and the path of the event.
bool Streams::pass_point(Stream& stream, const Work& work) {
  Record& record = records_[work.item];
  const bool records = work.kind == Kind::record;
  if (!records && !record.happened) return false;
  if (!stream.used || later(work.launch.time_ns, stream.last_end.time_ns)) stream.last_end = work.launch;
  stream.used = true;
  if (records) {
    record.path = stream.last_end;
    record.happened = true;
  } else if (later(record.path.time_ns, stream.last_end.time_ns)) {
    stream.last_end = record.path;
  }
  return true;
}

// The start of the next work in a stream, and the path that leads to it.
double Streams::start_of(Stream& stream, const Work& work, Path& path) {
  double start = work.earliest_ns;
  path = work.launch;
  if (stream.used) {
    const double after_gap = stream.last_end.time_ns + work.gap_ns;
    if (!later(start, after_gap)) {
      start = std::max(start, after_gap);
      path = stream.last_end;
    }
  }
  stream.busy = true;
  stream.used = true;
  return start;
}

void Streams::start_next(std::int32_t rank, std::int32_t stream) {
  Rank& of = ranks_[static_cast<std::size_t>(rank)];
  Stream& state = of.streams[static_cast<std::size_t>(stream)];
  bool recorded = false;
  while (!state.busy && state.head < state.queue.size()) {
    const Work work = state.queue[state.head];
    if (work.kind == Kind::record || work.kind == Kind::wait) {
      if (!pass_point(state, work)) break;
      recorded = recorded || work.kind == Kind::record;
      ++state.head;
      continue;
    }
    ++state.head;
    if (work.kind == Kind::copy) {
      run_.queue.push(start_of(state, work, copies_.path_of(work.item)),
                      {EventKind::transfer_ready, work.item});
      continue;
    }
    KernelState& kernel = run_.kernels[work.item];
    kernel.boundary_ns = work.synchronized_ns;
    if (state.used) kernel.boundary_ns = std::max(kernel.boundary_ns, state.last_end.time_ns);
    run_.queue.push(start_of(state, work, kernel.start), {EventKind::start_kernel, work.item});
  }
  if (!recorded) return;
  // Other streams of the rank may have waited for the event.
  for (const std::int32_t other : of.order) {
    if (other != stream) start_next(rank, other);
  }
}

void Streams::end_work(std::int32_t rank, std::int32_t stream, const Path& path) {
  Stream& state = ranks_[static_cast<std::size_t>(rank)].streams[static_cast<std::size_t>(stream)];
  state.busy = false;
  state.last_end = path;
  start_next(rank, stream);
}

bool Streams::idle(std::int32_t rank, std::int32_t stream) const {
  const std::vector<Stream>& streams = ranks_[static_cast<std::size_t>(rank)].streams;
  for (std::size_t i = 0; i < streams.size(); ++i) {
    if (stream >= 0 && stream != static_cast<std::int32_t>(i)) continue;
    if (streams[i].busy || streams[i].head < streams[i].queue.size()) return false;
  }
  return true;
}

void Streams::follow_ends(std::int32_t rank, std::int32_t stream, Path& path) const {
  const std::vector<Stream>& streams = ranks_[static_cast<std::size_t>(rank)].streams;
  for (std::size_t i = 0; i < streams.size(); ++i) {
    if (stream >= 0 && stream != static_cast<std::int32_t>(i)) continue;
    if (later(streams[i].last_end.time_ns, path.time_ns)) path = streams[i].last_end;
  }
}

}  // namespace tritax::engine
