#include "model/select/host_walk.hpp"
#include "model/cost/kernel_rates.hpp"

#include <algorithm>

#include "model/cost/host_work.hpp"
#include "model/schedule/op_traits.hpp"

namespace tritax {

double HostWalk::run() {
  for (;;) {
    bool waiting = false;
    double last = 0;
    for (std::size_t rank = 0; rank < hosts_.size(); ++rank) {
      waiting |= advance_to_barrier(hosts_[rank], schedule_.host[rank]);
      last = std::max(last, hosts_[rank].now);
    }
    if (!waiting) return last;
    for (Host& host : hosts_) host.now = last + machine_.host.barrier_ns;
  }
}

// True if the host has arrived at a barrier, false if its program has ended.
bool HostWalk::advance_to_barrier(Host& host, const std::vector<HostOp>& program) {
  const HostCosts& costs = machine_.host;
  while (host.pc < program.size()) {
    const HostOp& op = program[host.pc++];
    switch (op.kind) {
      case HostOpKind::launch:
      case HostOpKind::graph_launch: {
        const bool graph = op.kind == HostOpKind::graph_launch;
        host.now += graph ? costs.graph_launch_call_ns : costs.launch_call_ns;
        for_each_launch(schedule_, op, [&](const GraphNode& node) {
          const double gap_ns = graph ? graph_node_gap_ns(costs, costs_of(node.kernel))
                                      : kernel_gap_ns(costs, costs_of(node.kernel));
          const Kernel& kernel = schedule_.kernels[static_cast<std::size_t>(node.kernel)];
          launch(host, node.kernel, node.stream, gap_ns * gap_factor(machine_, kernel));
        });
        break;
      }
      case HostOpKind::stream_synchronize:
        host.now = std::max(host.now, end_of(host, op.stream)) + costs.synchronize_ns;
        break;
      case HostOpKind::device_synchronize:
        for (const double end : host.stream_end) host.now = std::max(host.now, end);
        host.now += costs.synchronize_ns;
        break;
      case HostOpKind::barrier:
        return true;
      case HostOpKind::event_record:
      case HostOpKind::event_wait:
      case HostOpKind::copy:
        post(host, op);
        break;
      case HostOpKind::host_work:
        host.now += host_work_ns(machine_.library, op);
        break;
    }
  }
  return false;
}

void HostWalk::post(Host& host, const HostOp& op) {
  const CopyEngines& engines = machine_.copy_engine;
  host.now += machine_.host.launch_call_ns;
  double& end = end_of(host, op.stream);
  const double turn = std::max(end, host.now);
  if (op.kind == HostOpKind::event_record) {
    host.event[op.event] = turn;
    return;
  }
  if (op.kind == HostOpKind::event_wait) {
    end = std::max(turn, host.event[op.event]);
    return;
  }
  const Op& copy = schedule_.transfers[static_cast<std::size_t>(op.transfer)];
  const double bytes = tile_bytes(schedule_, copy);
  first_start_ns_ = std::min(first_start_ns_, turn);
  end = turn + engines.packet_ns + (engines.gb_per_s > 0 ? bytes / engines.gb_per_s : 0);
}

double& HostWalk::end_of(Host& host, std::int32_t stream) {
  const auto index = static_cast<std::size_t>(stream);
  if (index >= host.stream_end.size()) host.stream_end.resize(index + 1, -1.0);
  return host.stream_end[index];
}

void HostWalk::launch(Host& host, std::int32_t kernel, std::int32_t stream, double gap_ns) {
  double start = host.now + machine_.host.launch_latency_ns;
  double& end = end_of(host, stream);
  if (end >= 0) start = std::max(start, end + gap_ns);
  end = start + kernel_ns_[static_cast<std::size_t>(kernel)];
  first_start_ns_ = std::min(first_start_ns_, start);
}

}  // namespace tritax
