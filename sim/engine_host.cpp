// Host programs, streams and launches.
#include <fmt/format.h>

#include <algorithm>

#include "model/core/error.hpp"
#include "model/cost/host_work.hpp"
#include "model/cost/kernel_rates.hpp"
#include "model/schedule/op_traits.hpp"
#include "sim/engine.hpp"

namespace tritax::engine {

void Engine::host_step(std::int32_t rank, double now) {
  HostState& host = hosts_[rank];
  const auto& program = run_.schedule.host[rank];
  if (host.busy_op != kNobody) {
    if (run_.options.observer) run_.options.observer->host_op_finished(rank, host.busy_op, now);
    host.busy_op = kNobody;
  }
  while (host.pc < program.size()) {
    if (run_.options.observer) run_.options.observer->host_op_started(rank, host.pc, now);
    const std::uint32_t pc = host.pc;
    double until = now;
    if (!run_host_op(rank, program[pc], until)) return;  // another event continues this host
    ++host.pc;
    if (until > now) {
      // The operation keeps the host busy; its end is reported at that time.
      run_.queue.push(until, {EventKind::host_step, static_cast<std::uint32_t>(rank)});
      host.busy_op = pc;
      return;
    }
    if (run_.options.observer) run_.options.observer->host_op_finished(rank, pc, now);
  }
  host.wait = HostWait::done;
}

// When the driver lets a host thread that wants to launch at `now` launch: one thread of a node after
// another. With free launches each thread takes its turn once: GPUs that all begin together would meet on
// links where GPUs that begin in turn do not, and that is no effect of the launches. A rank that stands for
// several ranks of its node takes the last turn: the other ranks begin before it, and launch as often.
double Engine::turn_to_launch(std::int32_t rank, double now) {
  HostState& host = hosts_[static_cast<std::size_t>(rank)];
  const bool first = !host.has_launched;
  host.has_launched = true;
  const double ahead_ns = first ? (run_.alike_of_node - 1) * host_costs_.launch_turn_ns : 0;
  if (run_.options.counterfactual.free_launches) {
    const std::int32_t place = rank % run_.machine.gpus_per_node;
    return first ? now + ahead_ns + place * host_costs_.launch_turn_ns : now;
  }
  double& free_ns = launches_free_ns_[static_cast<std::size_t>(rank / run_.machine.gpus_per_node)];
  const double turn_ns = std::max(free_ns, now) + ahead_ns;
  free_ns = turn_ns + run_.alike_of_node * host_costs_.launch_turn_ns;
  return turn_ns;
}

// Runs one operation at `now` and moves `now` to its end; false if the end is not known yet.
bool Engine::run_host_op(std::int32_t rank, const HostOp& op, double& now) {
  HostState& host = hosts_[rank];
  switch (op.kind) {
    case HostOpKind::launch:
    case HostOpKind::graph_launch: {
      const bool graph = op.kind == HostOpKind::graph_launch;
      now =
          turn_to_launch(rank, now) + (graph ? host_costs_.graph_launch_call_ns : host_costs_.launch_call_ns);
      host.path.charge(&TimeAccount::launch_ns, now);
      for_each_launch(run_.schedule, op, [&](const GraphNode& node) {
        launch(rank, static_cast<std::uint32_t>(node.kernel), node.stream,
               now + host_costs_.launch_latency_ns, gap_before(node.kernel, graph));
      });
      return true;
    }
    case HostOpKind::stream_synchronize:
    case HostOpKind::device_synchronize:
      host.wait = HostWait::streams;
      host.wait_stream = op.kind == HostOpKind::device_synchronize ? -1 : op.stream;
      if (!streams_idle(host)) return false;
      now += host_costs_.synchronize_ns;
      finish_synchronize(host, now);
      return true;
    case HostOpKind::barrier:
      host.wait = HostWait::barrier;
      arrive_at_barrier(rank, now);
      return false;
    case HostOpKind::event_record:
    case HostOpKind::event_wait:
    case HostOpKind::copy: {
      const std::uint32_t host_op = host.pc;
      now = turn_to_launch(rank, now) + host_costs_.launch_call_ns;
      host.path.charge(&TimeAccount::launch_ns, now);
      if (op.kind == HostOpKind::copy) post_copy(rank, op, host_op, now);
      if (op.kind == HostOpKind::event_record) post_record(rank, op, now);
      if (op.kind == HostOpKind::event_wait) post_wait(rank, op, now);
      return true;
    }
    case HostOpKind::host_work:
      now += run_.options.counterfactual.free_launches ? 0 : host_work_ns(run_.machine.library, op);
      host.path.charge(&TimeAccount::launch_ns, now);
      return true;
  }
  TRITAX_ASSERT(false, "unknown host operation");
}

// The host continues with the path of the kernel it waited for, if the kernel ended last.
void Engine::finish_synchronize(HostState& host, double now) {
  for (const StreamState& stream : host.streams) {
    if (!stream.used) continue;
    const std::int32_t index = static_cast<std::int32_t>(&stream - host.streams.data());
    if (host.wait_stream >= 0 && host.wait_stream != index) continue;
    if (later(stream.last_end.time_ns, host.path.time_ns)) host.path = stream.last_end;
  }
  host.wait = HostWait::nothing;
  host.synchronized_ns = host.path.time_ns;
  host.path.charge(&TimeAccount::launch_ns, now);
}

bool Engine::streams_idle(const HostState& host) const {
  for (std::size_t i = 0; i < host.streams.size(); ++i) {
    if (host.wait_stream >= 0 && host.wait_stream != static_cast<std::int32_t>(i)) continue;
    if (host.streams[i].busy || host.streams[i].head < host.streams[i].queue.size()) return false;
  }
  return true;
}

// Kernels of one profile with matrix tiles of one kind are one program, kernels without tiles are another. A
// GPU runs its kernels repeatedly, so the first kernel follows the last one.
void Engine::find_cold_code() {
  const auto same_code = [](const Kernel& a, const Kernel& b) {
    return a.profile == b.profile && a.tile == b.tile;
  };
  for (const std::vector<HostOp>& program : run_.schedule.host) {
    std::vector<std::uint32_t> launched;
    for_each_launch(run_.schedule, program, [&](const GraphNode& node) {
      launched.push_back(static_cast<std::uint32_t>(node.kernel));
    });
    for (std::size_t i = 0; i < launched.size(); ++i) {
      const std::uint32_t before = launched[(i + launched.size() - 1) % launched.size()];
      run_.kernels[launched[i]].code_is_cold =
          !same_code(run_.schedule.kernels[launched[i]], run_.schedule.kernels[before]);
    }
  }
}

// Gap from the end of the previous work in the stream.
double Engine::gap_before(std::int32_t kernel, bool in_graph) const {
  if (run_.options.counterfactual.free_launches) return 0;
  const Kernel& of = run_.schedule.kernels[static_cast<std::size_t>(kernel)];
  const KernelCosts& costs = run_.costs.of(of);
  const double gap_ns =
      in_graph ? graph_node_gap_ns(run_.machine.host, costs) : kernel_gap_ns(run_.machine.host, costs);
  return gap_ns * gap_factor(run_.machine, of);
}

void Engine::launch(std::int32_t rank, std::uint32_t kernel, std::int32_t stream, double earliest,
                    double gap) {
  if (run_.kernels[kernel].launched) {
    throw UserError(
        fmt::format("kernel '{}' rank {}: launched again; the simulator runs a kernel once, so give the "
                    "schedule a kernel for each launch",
                    run_.schedule.kernels[kernel].name, rank));
  }
  run_.kernels[kernel].launched = true;
  run_.kernels[kernel].stream = stream;
  post(rank, stream, {StreamState::Kind::kernel, kernel, earliest, gap});
}

void Engine::post(std::int32_t rank, std::int32_t stream, StreamState::Pending pending) {
  HostState& host = hosts_[rank];
  pending.synchronized_ns = host.synchronized_ns;
  pending.launch = host.path;
  StreamState& state = host.streams[static_cast<std::size_t>(stream)];
  if (state.queue.empty()) host.stream_order.push_back(stream);
  state.queue.push_back(pending);
  start_next_in_stream(rank, stream);
}

// The start of the next work in a stream, and the path that leads to it.
double Engine::start_of(StreamState& stream, const StreamState::Pending& pending, Path& path) const {
  double start = pending.earliest_ns;
  path = pending.launch;
  if (stream.used) {
    const double after_gap = stream.last_end.time_ns + pending.gap_ns;
    if (!later(start, after_gap)) {
      start = std::max(start, after_gap);
      path = stream.last_end;
    }
  }
  stream.busy = true;
  stream.used = true;
  return start;
}

void Engine::start_next_in_stream(std::int32_t rank, std::int32_t stream) {
  StreamState& state = hosts_[rank].streams[static_cast<std::size_t>(stream)];
  bool recorded = false;
  while (!state.busy && state.head < state.queue.size()) {
    const StreamState::Pending pending = state.queue[state.head];
    if (pending.kind == StreamState::Kind::record || pending.kind == StreamState::Kind::wait) {
      if (!pass_point(state, pending)) break;
      recorded = recorded || pending.kind == StreamState::Kind::record;
      ++state.head;
      continue;
    }
    ++state.head;
    if (pending.kind == StreamState::Kind::copy) {
      TransferState& transfer = transfers_[pending.item];
      run_.queue.push(start_of(state, pending, transfer.path), {EventKind::transfer_ready, pending.item});
      continue;
    }
    KernelState& kernel = run_.kernels[pending.item];
    kernel.boundary_ns = pending.synchronized_ns;
    if (state.used) kernel.boundary_ns = std::max(kernel.boundary_ns, state.last_end.time_ns);
    run_.queue.push(start_of(state, pending, kernel.start), {EventKind::start_kernel, pending.item});
  }
  if (!recorded) return;
  // Other streams of the rank may have waited for the event.
  for (const std::int32_t other : hosts_[rank].stream_order) {
    if (other != stream) start_next_in_stream(rank, other);
  }
}

void Engine::stream_progressed(std::int32_t rank, double now) {
  HostState& host = hosts_[rank];
  if (host.wait != HostWait::streams || !streams_idle(host)) return;
  const double until = now + host_costs_.synchronize_ns;
  finish_synchronize(host, until);
  host.busy_op = host.pc++;
  run_.queue.push(until, {EventKind::host_step, static_cast<std::uint32_t>(rank)});
}

void Engine::arrive_at_barrier(std::int32_t rank, double now) {
  at_barrier_.push_back(rank);
  if (at_barrier_.size() < hosts_.size()) return;
  // `rank` came last: all hosts continue with its path.
  const double until = now + host_costs_.barrier_ns;
  Path path = hosts_[rank].path;
  const bool harness = harness_barriers_[barriers_passed_++] != 0;
  path.charge(harness ? &TimeAccount::harness_ns : &TimeAccount::bulk_synchronous_ns, until);
  for (const std::int32_t waiting : at_barrier_) {
    HostState& host = hosts_[waiting];
    host.path = path;
    host.wait = HostWait::nothing;
    host.busy_op = host.pc++;
    host.has_launched =
        host.has_launched && run_.alike_of_node == 1;  // the ranks that it stands for start together again
    run_.queue.push(until, {EventKind::host_step, static_cast<std::uint32_t>(waiting)});
  }
  at_barrier_.clear();
}

}  // namespace tritax::engine
