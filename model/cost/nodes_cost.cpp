#include "model/cost/nodes_cost.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "model/machine/topology.hpp"

namespace tritax {

namespace {

// A ring or trees over all GPUs; steps beyond the steps of one node.
struct Way {
  int more_steps = 0;
  int steps_between = 0;                                      // steps between nodes
  double gb_per_s = std::numeric_limits<double>::infinity();  // per GPU, all channels
};

double nics_gb_per_s(const Machine& machine) {
  const double efficiency =
      machine.network.efficiency > 0 ? machine.network.efficiency : machine.fabric.store_efficiency;
  return machine.gpus_per_node * machine.fabric.network_gb_per_s * efficiency;
}

Way ring_of(const Machine& machine, const NodeGrid& grid, int phases) {
  return {phases * (grid.nodes - 1) * grid.gpus, phases * (grid.nodes - 1), nics_gb_per_s(machine)};
}

Way trees_of(const Machine& machine, const NodeGrid& grid) {
  constexpr double kOfTrees = 0.92;
  constexpr int kUpAndDown = 2;
  const int depth = std::bit_width(static_cast<unsigned>(grid.nodes)) - 1;
  Way way{kUpAndDown * depth, kUpAndDown * depth};
  if (grid.nodes > 2) way.gb_per_s = kOfTrees * nics_gb_per_s(machine);
  return way;
}

}  // namespace

NodeGrid node_grid(const Machine& machine, int ranks) {
  const int gpus = machine.gpus_per_node;
  if (gpus < 2 || ranks <= gpus || ranks % gpus != 0) return {1, ranks};
  return {ranks / gpus, gpus};
}

CollectiveProtocol protocol_of_nodes(const Machine& machine, const NodeGrid& grid, double bytes, int channels,
                                     bool all_reduce) {
  const LibraryCosts& library = machine.library;
  const int phases = all_reduce ? 2 : 1;
  const double step_ns = library.small_step_ns > 0
                             ? library.small_step_ns
                             : std::max(machine.fabric.flag_latency_ns, machine.fabric.signal_round_trip_ns);
  const double small_ns =
      library.small_start_ns + std::max(0, phases * (grid.gpus - 1) - 1) * library.small_step_ns;
  const std::array protocols{
      CollectiveProtocol{library.collective_start_ns, library.channel_gb_per_s},
      CollectiveProtocol{small_ns, library.small_channel_gb_per_s, kLowLatencyPayload}};
  const std::array ways{ring_of(machine, grid, phases), trees_of(machine, grid)};
  CollectiveProtocol best;
  double best_ns = std::numeric_limits<double>::infinity();
  for (const CollectiveProtocol& protocol : protocols) {
    if (protocol.channel_gb_per_s <= 0) continue;
    for (const Way& way : ways) {
      if (&way != ways.data() && !all_reduce) continue;
      const double start_ns = protocol.start_ns + way.more_steps * step_ns +
                              way.steps_between * machine.fabric.network_latency_ns;
      // NICs carry flags as well as data.
      const double pace =
          std::min(protocol.channel_gb_per_s, way.gb_per_s * protocol.payload_share / channels);
      const double time_ns = start_ns + bytes / (channels * pace);
      if (time_ns >= best_ns) continue;
      best = {start_ns, pace, protocol.payload_share};
      best_ns = time_ns;
    }
  }
  return best;
}

}  // namespace tritax
