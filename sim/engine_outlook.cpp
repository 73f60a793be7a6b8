// The least time that a run still takes: what lets a search stop a hopeless simulation long before its clock
// has passed the limit.
//
// Operations of a workgroup follow each other, kernels of a stream follow each other, and hosts wait for them
// and for one another. None of these can be faster than alone at the present clock: clocks only fall during a
// run (update_clock), and what shares a compute unit, a link or a memory only gets slower by it.
#include <algorithm>
#include <cmath>

#include "sim/engine.hpp"

namespace tritax {

// Shortest time of an operation that moves data: the workgroup's limit, and its own arbitration weight.
double Engine::shortest_move_ns(const Kernel& kernel, std::uint32_t wg, std::uint32_t op_index) const {
  const Gpu& gpu = machine_.gpu;
  const Op& op = schedule_.ops[op_index];
  double limit = 0;
  switch (op.kind) {
    case OpKind::load:
    case OpKind::reduce:
      limit = op.rank == kernel.rank ? gpu.cu_load_gb_per_s : gpu.cu_remote_load_gb_per_s;
      break;
    case OpKind::store:
      limit = op.rank == kernel.rank ? gpu.cu_store_gb_per_s : gpu.cu_remote_store_gb_per_s;
      break;
    case OpKind::copy:
      limit = op.src_rank != kernel.rank ? gpu.cu_remote_load_gb_per_s
              : op.rank == kernel.rank   ? gpu.cu_store_gb_per_s
                                         : gpu.cu_remote_store_gb_per_s;
      break;
    case OpKind::atomic_add:
      limit = op.rank == kernel.rank ? gpu.cu_store_gb_per_s : gpu.cu_remote_atomic_gb_per_s;
      break;
    default:
      return 0;
  }
  if (kernel.workgroup_gb_per_s > 0) limit = std::min(limit, kernel.workgroup_gb_per_s);
  const double bytes = bytes_of(schedule_.buffers[static_cast<std::size_t>(op.buffer)], op.rect);
  return limit > 0 ? bytes / (limit * spread_of(machine_.fabric.arbitration_spread, wg, op_index)) : 0;
}

// Fills `rest_ns_` for one workgroup: from the start of each operation to the end of the workgroup, with
// matmuls at the clock under full load. What follows a claim may be skipped and counts nothing.
void Engine::index_rest(const Kernel& kernel, std::uint32_t wg) {
  const WorkgroupState& state = workgroups_[wg];
  double rest = 0;           // from the next operation on
  double rest_of_drain = 0;  // from the next operation on that waits for the store in flight
  for (std::uint32_t o = state.end; o-- > state.pc;) {
    const OpKind kind = schedule_.ops[o].kind;
    if (kind == OpKind::claim) {
      rest = rest_of_drain = 0;
    } else if (kind == OpKind::matmul) {
      const MatmulCost& cost = shapes_[shape_of_op_[o]].cost;
      rest += (cost.compute_ns + cost.prologue_ns) / spread_of(machine_.gpu.matmul_spread, wg, o);
    } else if (state.has_sender && (kind == OpKind::store || kind == OpKind::signal)) {
      // Carried out beside what follows; the wait for the staging area is not counted.
    } else {
      const double ns = shortest_move_ns(kernel, wg, o);
      const bool asynchronous = kind == OpKind::store || kind == OpKind::copy || kind == OpKind::atomic_add;
      rest = asynchronous ? std::max(rest, ns + rest_of_drain) : rest + ns;
      if (asynchronous || kind == OpKind::signal) rest_of_drain = rest;
    }
    rest_ns_[o] = rest;
  }
}

// Fills `tail_ns_`: from the end of each kernel to the end of its host's program.
void Engine::index_tails() {
  tail_ns_.assign(schedule_.kernels.size(), 0.0);
  for (std::size_t rank = 0; rank < schedule_.host.size(); ++rank) {
    std::vector<double> after(hosts_[rank].streams.size(), 0.0);  // least time after what ends in the stream
    double host = 0;                                              // least time from the next operation on
    const auto launch = [&](const GraphNode& node, double gap_ns) {
      const auto kernel = static_cast<std::size_t>(node.kernel);
      const auto stream = static_cast<std::size_t>(node.stream);
      tail_ns_[kernel] = after[stream];
      after[stream] = std::max(after[stream], gap_ns + least_kernel_ns(kernel) + tail_ns_[kernel]);
      host = std::max(host, host_costs_.launch_latency_ns + least_kernel_ns(kernel) + tail_ns_[kernel]);
    };
    const auto& program = schedule_.host[rank];
    for (auto op = program.rbegin(); op != program.rend(); ++op) {
      switch (op->kind) {
        case HostOpKind::launch:
          launch({op->kernel, op->stream}, host_costs_.kernel_gap_ns);
          host += host_costs_.launch_call_ns;
          break;
        case HostOpKind::graph_launch: {
          const Graph& graph = schedule_.graphs[static_cast<std::size_t>(op->graph)];
          for (auto node = graph.rbegin(); node != graph.rend(); ++node) {
            launch(*node, host_costs_.graph_node_gap_ns);
          }
          host += host_costs_.graph_launch_call_ns;
          break;
        }
        case HostOpKind::stream_synchronize:
        case HostOpKind::device_synchronize:
          host += host_costs_.synchronize_ns;
          for (std::size_t stream = 0; stream < after.size(); ++stream) {
            const bool waited =
                op->kind == HostOpKind::device_synchronize || stream == static_cast<std::size_t>(op->stream);
            if (waited) after[stream] = std::max(after[stream], host);
          }
          break;
        case HostOpKind::barrier:
          host += host_costs_.barrier_ns;
          break;
        case HostOpKind::collective_call:
        case HostOpKind::framework_sync:
        case HostOpKind::framework_gather:
          break;  // free in some counterfactuals, and short
      }
    }
  }
}

// Of a kernel, at the highest clock.
double Engine::least_kernel_ns(std::size_t kernel) const {
  double least = 0;
  for (const Workgroup& workgroup : schedule_.kernels[kernel].workgroups) {
    if (workgroup.op_count > 0) least = std::max(least, rest_ns_[workgroup.first_op]);
  }
  return least / highest_clock_factor();
}

// Over the load clock, of all that is multiplied here.
double Engine::highest_clock_factor() const {
  double factor = 1;
  for (const MatmulShape& shape : shapes_) {
    factor = std::max(factor, machine_.gpu.boost_clock_ghz / machine_.gpu.rate(shape.dtype).load_clock_ghz);
  }
  return factor;
}

// Gives up if the workgroup, which starts the operation at its pc now, cannot end in time.
void Engine::look_ahead(const WorkgroupState& wg, double now) {
  if (rest_ns_.empty()) return;
  const double left = options_.give_up_after_ns - now - tail_ns_[wg.kernel];
  if (rest_ns_[wg.pc] <= left) return;  // in time even at the clock under full load
  double clock = 1;
  if (schedule_.kernels[wg.kernel].tile.m > 0) {
    const GpuState& gpu = gpus_[static_cast<std::size_t>(rank_of(wg))];
    for (const MatmulShape& shape : shapes_) clock = std::max(clock, clock_factor(gpu, shape.dtype));
  }
  totals_.gave_up |= rest_ns_[wg.pc] > left * clock;
}

}  // namespace tritax
