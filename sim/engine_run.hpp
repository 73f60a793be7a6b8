// The state that all parts of the engine share: the inputs of a run, the two sources of events, and the
// states of GPUs, kernels and workgroups. Each part holds a reference to Run, and owns the state that only it
// needs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "model/cost/kernel_costs.hpp"
#include "model/machine/topology.hpp"
#include "model/schedule/items.hpp"
#include "sim/cache_traffic.hpp"
#include "sim/engine_state.hpp"
#include "sim/event_queue.hpp"
#include "sim/fluid.hpp"
#include "sim/path.hpp"
#include "sim/simulate.hpp"

namespace tritax::engine {

struct Run {
  Run(const Schedule& schedule, const Machine& machine, const SimulationOptions& options, const Alike& alike);
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  // Costs of the profile of the workgroup's kernel.
  const KernelCosts& costs_of(const WorkgroupState& wg) const { return costs[wg.profile]; }
  // The rank that is simulated in place of `rank`.
  std::int32_t home(std::int32_t rank) const {
    return rank < simulated_ranks ? rank : rank % simulated_ranks;
  }
  GpuState& gpu_of(std::int32_t rank) { return gpus[static_cast<std::size_t>(home(rank))]; }
  const GpuState& gpu_of(std::int32_t rank) const { return gpus[static_cast<std::size_t>(home(rank))]; }
  SenderState& sender_of(const WorkgroupState& wg) { return senders[&wg - workgroups.data()]; }
  const SenderState& sender_of(const WorkgroupState& wg) const { return senders[&wg - workgroups.data()]; }
  // Whether a kernel starts as a whole or not at all.
  bool is_gang(std::uint32_t kernel) const { return schedule.kernels[kernel].placement == Placement::gang; }
  // Whether a signal or wait is on a free flag: it only stands for order and costs nothing.
  bool is_free(const Op& op) const { return op.flag == free_flag; }

  // The state of a workgroup that begins.
  WorkgroupState at_start(std::uint32_t kernel, std::uint32_t number) const;
  void start_over(WorkgroupState& wg, std::uint32_t kernel, std::uint32_t number) const;
  // The first operation of the workgroup or item that `op` belongs to.
  std::uint32_t begin_of_program(const WorkgroupState& wg, std::uint32_t op) const;

  bool is_lone_copy(const WorkgroupState& wg, std::uint32_t op, const DataMove& move) const;
  bool is_next_probe(const WorkgroupState& wg, std::uint32_t op) const;

  // Between two events of a workgroup come events of thousands of other workgroups: without this prefetch the
  // state of the workgroup is in no cache at the end of its operation.
  void prefetch(std::uint32_t wg) const {
    const char* state = reinterpret_cast<const char*>(&workgroups[wg]);
    for (std::size_t at = 0; at < sizeof(WorkgroupState); at += 64) __builtin_prefetch(state + at, 1);
  }

  OpPlace place_of(const WorkgroupState& wg, std::uint32_t op) const;
  void tell_start(const WorkgroupState& wg, double now) const {
    if (options.observer) options.observer->op_started(place_of(wg, wg.pc), now);
  }
  void tell_finish(const WorkgroupState& wg, std::uint32_t op, double now) const {
    if (options.observer) options.observer->op_finished(place_of(wg, op), now);
  }

  const Schedule& schedule;
  const Machine& machine;
  const CostTable costs;
  const std::vector<KernelProfile> profiles;  // of the kernels of the schedule
  const SimulationOptions options;
  const Alike alike;
  const std::int32_t simulated_ranks;  // the first ranks; all ranks unless nodes or ranks are alike
  const std::int32_t alike_of_node;    // ranks of a node per simulated rank; 1 unless ranks are alike
  const Topology topology;
  const MoveCosts moves;
  const std::int32_t free_flag;  // array of kTileDependences; -2: no such array

  const bool has_items;             // whether any kernel has items
  const bool posts_copies;          // whether workgroups post copies
  const std::size_t most_together;  // operations of the largest group; 1: no operations start together

  FluidNetwork fluid;
  EventQueue<Event> queue;
  std::vector<GpuState> gpus;
  std::vector<KernelState> kernels;
  std::vector<WorkgroupState> workgroups;  // on compute units; wg and id are indices; entries never move
  std::vector<SenderState> senders;        // of workgroups, with the same index
  std::vector<MatmulShape> shapes;
  std::vector<MatmulInputs> inputs_of_op;
  CacheCounters traffic;
  SimulationResult totals;
};

// Splits the duration of an activity: the time that it takes alone, of which the first `reread` reads
// intermediates, and the time that contention or a full resource adds. `wire_ns` of the added time is the
// wait for links. The path sees the same share of it as wire time; the rest is contention.
inline void charge_activity(Path& path, double start, double reread, double alone, double TimeAccount::*part,
                            double wire_ns, double now) {
  path.charge(&TimeAccount::locality_ns, std::min(now, start + reread));
  path.charge(part, std::min(now, start + alone));
  const double added = now - start - alone;
  if (part == &TimeAccount::wire_ns && added > 0) {
    path.charge(part, path.time_ns + std::min(1.0, wire_ns / added) * (now - path.time_ns));
  }
  path.charge(&TimeAccount::contention_ns, now);
}

// Charges the store in flight of a workgroup.
inline void charge_store(Path& path, const WorkgroupState& wg, double lost_ns, double now) {
  charge_activity(path, wg.store_start_ns, wg.store_reread_ns, wg.store_alone_ns, wg.store_part,
                  lost_ns - wg.store_lost_ns, now);
}

}  // namespace tritax::engine
