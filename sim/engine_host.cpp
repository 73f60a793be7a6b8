// Host programs and launches.
#include "sim/engine_host.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/core/error.hpp"
#include "model/cost/host_work.hpp"
#include "model/cost/kernel_rates.hpp"
#include "model/schedule/harness.hpp"
#include "model/schedule/op_traits.hpp"

namespace tritax::engine {

Hosts::Hosts(Run& run, Streams& streams, CopyQueues& copies)
    : run_(run),
      streams_(streams),
      copies_(copies),
      costs_(run.machine.host),
      hosts_(static_cast<std::size_t>(run.simulated_ranks)),
      harness_barriers_(harness_barriers(run.schedule)),
      launches_free_ns_(static_cast<std::size_t>((run.schedule.ranks - 1) / run.machine.gpus_per_node + 1),
                        0.0) {
  if (run_.options.counterfactual.free_launches) {
    costs_ = {};
    costs_.barrier_ns = run_.machine.host.barrier_ns;
    costs_.launch_turn_ns = run_.machine.host.launch_turn_ns;  // see turn_to_launch()
  }
  if (!run_.schedule.one_process) costs_.launch_turn_ns = 0;
  for (std::size_t rank = 0; rank < hosts_.size(); ++rank) {
    run_.queue.push(0, {EventKind::host_step, static_cast<std::uint32_t>(rank)});
  }
}

void Hosts::step(std::int32_t rank, double now) {
  Host& host = host_of(rank);
  const auto& program = run_.schedule.host[rank];
  if (host.busy_op != kNobody) {
    if (run_.options.observer) run_.options.observer->host_op_finished(rank, host.busy_op, now);
    host.busy_op = kNobody;
  }
  while (host.pc < program.size()) {
    if (run_.options.observer) run_.options.observer->host_op_started(rank, host.pc, now);
    const std::uint32_t pc = host.pc;
    double until = now;
    if (!run_op(rank, program[pc], until)) return;  // another event continues this host
    ++host.pc;
    if (until > now) {
      // The operation keeps the host busy; its end is reported at that time.
      run_.queue.push(until, {EventKind::host_step, static_cast<std::uint32_t>(rank)});
      host.busy_op = pc;
      return;
    }
    if (run_.options.observer) run_.options.observer->host_op_finished(rank, pc, now);
  }
  host.wait = Wait::done;
}

// When the driver lets a host thread that wants to launch at `now` launch: one thread of a node after
// another. With free launches each thread takes its turn once: GPUs that all begin together would meet on
// links where GPUs that begin in turn do not, and that is no effect of the launches. A rank that stands for
// several ranks of its node takes the last turn: the other ranks begin before it, and launch as often.
double Hosts::turn_to_launch(std::int32_t rank, double now) {
  Host& host = host_of(rank);
  const bool first = !host.has_launched;
  host.has_launched = true;
  const double ahead_ns = first ? (run_.alike_of_node - 1) * costs_.launch_turn_ns : 0;
  if (run_.options.counterfactual.free_launches) {
    const std::int32_t place = rank % run_.machine.gpus_per_node;
    return first ? now + ahead_ns + place * costs_.launch_turn_ns : now;
  }
  double& free_ns = launches_free_ns_[static_cast<std::size_t>(rank / run_.machine.gpus_per_node)];
  const double turn_ns = std::max(free_ns, now) + ahead_ns;
  free_ns = turn_ns + run_.alike_of_node * costs_.launch_turn_ns;
  return turn_ns;
}

// Runs one operation at `now` and moves `now` to its end; false if the end is not known yet.
bool Hosts::run_op(std::int32_t rank, const HostOp& op, double& now) {
  Host& host = host_of(rank);
  switch (op.kind) {
    case HostOpKind::launch:
    case HostOpKind::graph_launch: {
      const bool graph = op.kind == HostOpKind::graph_launch;
      now = turn_to_launch(rank, now) + (graph ? costs_.graph_launch_call_ns : costs_.launch_call_ns);
      host.path.charge(&TimeAccount::launch_ns, now);
      for_each_launch(run_.schedule, op, [&](const GraphNode& node) { launch(rank, node, now, graph); });
      return true;
    }
    case HostOpKind::stream_synchronize:
    case HostOpKind::device_synchronize:
      host.wait = Wait::streams;
      host.wait_stream = op.kind == HostOpKind::device_synchronize ? -1 : op.stream;
      if (!streams_.idle(rank, host.wait_stream)) return false;
      now += costs_.synchronize_ns;
      finish_synchronize(rank, now);
      return true;
    case HostOpKind::barrier:
      host.wait = Wait::barrier;
      arrive_at_barrier(rank, now);
      return false;
    case HostOpKind::event_record:
    case HostOpKind::event_wait:
    case HostOpKind::copy:
      now = turn_to_launch(rank, now) + costs_.launch_call_ns;
      host.path.charge(&TimeAccount::launch_ns, now);
      post_point(rank, op, now);
      return true;
    case HostOpKind::host_work:
      now += run_.options.counterfactual.free_launches ? 0 : host_work_ns(run_.machine.library, op);
      host.path.charge(&TimeAccount::launch_ns, now);
      return true;
  }
  TRITAX_ASSERT(false, "unknown host operation");
}

void Hosts::launch(std::int32_t rank, const GraphNode& node, double now, bool in_graph) {
  const auto kernel = static_cast<std::uint32_t>(node.kernel);
  if (run_.kernels[kernel].launched) {
    throw UserError(
        fmt::format("kernel '{}' rank {}: launched again; the simulator runs a kernel once, so give the "
                    "schedule a kernel for each launch",
                    run_.schedule.kernels[kernel].name, rank));
  }
  run_.kernels[kernel].launched = true;
  run_.kernels[kernel].stream = node.stream;
  post(rank, node.stream,
       {Streams::Kind::kernel, kernel, now + costs_.launch_latency_ns, gap_before(node.kernel, in_graph)});
}

// Posts a transfer, or a point of a stream.
void Hosts::post_point(std::int32_t rank, const HostOp& op, double now) {
  if (op.kind == HostOpKind::copy) {
    post(rank, op.stream, {Streams::Kind::copy, copies_.add(rank, op, host_of(rank).pc), now});
  } else if (op.kind == HostOpKind::event_record) {
    post(rank, op.stream, {Streams::Kind::record, streams_.add_record(rank, op.event), now});
  } else {
    post(rank, op.stream, {Streams::Kind::wait, streams_.last_record(rank, op.event), now});
  }
}

void Hosts::post(std::int32_t rank, std::int32_t stream, Streams::Work work) {
  work.synchronized_ns = host_of(rank).synchronized_ns;
  work.launch = host_of(rank).path;
  streams_.post(rank, stream, work);
}

// The host continues with the path of the kernel it waited for, if the kernel ended last.
void Hosts::finish_synchronize(std::int32_t rank, double now) {
  Host& host = host_of(rank);
  streams_.follow_ends(rank, host.wait_stream, host.path);
  host.wait = Wait::nothing;
  host.synchronized_ns = host.path.time_ns;
  host.path.charge(&TimeAccount::launch_ns, now);
}

void Hosts::work_ended(std::int32_t rank, std::int32_t stream, const Path& path, double now) {
  streams_.end_work(rank, stream, path);
  Host& host = host_of(rank);
  if (host.wait != Wait::streams || !streams_.idle(rank, host.wait_stream)) return;
  const double until = now + costs_.synchronize_ns;
  finish_synchronize(rank, until);
  host.busy_op = host.pc++;
  run_.queue.push(until, {EventKind::host_step, static_cast<std::uint32_t>(rank)});
}

bool Hosts::all_done() const {
  return std::all_of(hosts_.begin(), hosts_.end(), [](const Host& host) { return host.wait == Wait::done; });
}

void Hosts::list_waiting(std::string& text, int listed, int most) const {
  for (std::size_t rank = 0; rank < hosts_.size() && listed < most; ++rank) {
    if (hosts_[rank].wait == Wait::done) continue;
    ++listed;
    text += fmt::format("\n  host of rank {} waits in operation {} ({})", rank, hosts_[rank].pc,
                        name_of(run_.schedule.host[rank][hosts_[rank].pc].kind));
  }
}

Path Hosts::last_path(std::int32_t rank) const {
  Path path = hosts_[static_cast<std::size_t>(rank)].path;
  streams_.follow_ends(rank, -1, path);
  return path;
}

double Hosts::gap_before(std::int32_t kernel, bool in_graph) const {
  if (run_.options.counterfactual.free_launches) return 0;
  const Kernel& of = run_.schedule.kernels[static_cast<std::size_t>(kernel)];
  const KernelCosts& costs = run_.costs.of(of);
  const double gap_ns =
      in_graph ? graph_node_gap_ns(run_.machine.host, costs) : kernel_gap_ns(run_.machine.host, costs);
  return gap_ns * gap_factor(run_.machine, of);
}

void Hosts::arrive_at_barrier(std::int32_t rank, double now) {
  at_barrier_.push_back(rank);
  if (at_barrier_.size() < hosts_.size()) return;
  // `rank` came last: all hosts continue with its path.
  const double until = now + costs_.barrier_ns;
  Path path = host_of(rank).path;
  const bool harness = harness_barriers_[barriers_passed_++] != 0;
  path.charge(harness ? &TimeAccount::harness_ns : &TimeAccount::bulk_synchronous_ns, until);
  for (const std::int32_t waiting : at_barrier_) {
    Host& host = host_of(waiting);
    host.path = path;
    host.wait = Wait::nothing;
    host.busy_op = host.pc++;
    host.has_launched =
        host.has_launched && run_.alike_of_node == 1;  // the ranks that it stands for start together again
    run_.queue.push(until, {EventKind::host_step, static_cast<std::uint32_t>(waiting)});
  }
  at_barrier_.clear();
}

}  // namespace tritax::engine
