// Computes how fast one workgroup, or one copy engine, moves a tile: for the simulator, for its estimate of
// the rest of a run, and for lower bounds of schedules.
//
// A workgroup gets the first bytes after a latency and the rest at its own rate:
//
//   time = (latency + bytes / rate) / share
//
//   latency  of the operation, and of the memory that it reads, own or of a peer
//   rate     the least of
//            - the limit of its compute unit for such a move (bytes in flight over latency, a rate in
//              machine files), shared by the workgroups on the unit
//            - for stores, the vector work of the kernel per byte (Kernel::clk_per_stored_byte)
//            - the rate of a library's kernel
//            - for a peer's memory, the narrowest link or port on the way
//   share    share of the boost clock, and of the rate of a kernel that only moves data
//
// This is the rate of a move alone. LinkRates has the cost per byte of links and ports that moves share. The
// simulator (sim/engine_traffic.cpp) models memories and the division of a full link or memory.
//
// Example: a copy of 32 KiB to a peer at 26 GB/s, from a memory of 600 ns with 400 ns for the operation,
// takes 600 + 400 + 1260 ns, 14.5 GB/s. No bound may assume a slower copy. `workgroup_gb_per_s`, which has no
// latency, gives 26 GB/s.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "model/cost/kernel_costs.hpp"
#include "model/cost/kernel_rates.hpp"
#include "model/machine/machine.hpp"
#include "model/machine/topology.hpp"
#include "model/schedule/schedule.hpp"

namespace tritax {

enum class DataMoveKind : std::uint8_t {
  local_load,
  local_store,
  local_copy,
  local_atomic,
  remote_load,
  remote_store,
  remote_copy,
  remote_get,  // a copy out of a peer's memory
  remote_atomic,
  engine_copy,  // by a copy engine, like local_copy, remote_copy and remote_get; must be last
  engine_put,
  engine_get,
};

// Class of a move for links and ports.
enum class Traffic : std::uint8_t { none, stores, atomics, loads, engine_stores, engine_loads };
inline constexpr std::size_t kTrafficCount = 6;

constexpr Traffic traffic_of(DataMoveKind kind) {
  constexpr std::array<Traffic, 12> by_kind{
      Traffic::none,    Traffic::none,   Traffic::none,          Traffic::none,
      Traffic::loads,   Traffic::stores, Traffic::stores,        Traffic::loads,
      Traffic::atomics, Traffic::none,   Traffic::engine_stores, Traffic::engine_loads,
  };
  return by_kind[static_cast<std::size_t>(kind)];
}

struct DataMove {
  DataMoveKind kind = DataMoveKind::local_store;
  std::int32_t rank = 0;  // of the workgroup, or of the memory that a copy engine pushes from or pulls to
  std::int32_t peer = 0;  // the other side; `rank` if there is none

  Traffic traffic() const { return traffic_of(kind); }
  bool pulls() const { return traffic() == Traffic::loads || traffic() == Traffic::engine_loads; }
  std::int32_t from() const { return pulls() ? peer : rank; }
  std::int32_t to() const { return pulls() ? rank : peer; }
  bool adds() const { return kind == DataMoveKind::local_atomic || kind == DataMoveKind::remote_atomic; }
  // A workgroup copies from the memory of its own GPU.
  bool copies_own() const { return kind == DataMoveKind::local_copy || kind == DataMoveKind::remote_copy; }
  bool reads_own() const { return kind == DataMoveKind::local_load || copies_own(); }
};

// The move of an operation that moves data, by a workgroup of `rank`. What the switch carries out goes over
// links also where it is of the own rank.
DataMove move_of(const Op& op, std::int32_t rank);

// The move of a transfer that the host of `rank` has posted: an engine of `rank` pushes if `rank` has the
// source; otherwise the GPU with the target pulls.
DataMove move_by_engine(const Op& transfer, std::int32_t rank);

// Highest rate of one compute unit. `kind` is not of a copy engine. If the machine file has the costs of a
// guarded copy, these costs include the loads of a copy from own memory, and the loads of the next copy hide
// behind its stores.
double unit_gb_per_s(const Gpu& gpu, const KernelCosts& costs, DataMoveKind kind);

// Additional latency to a GPU of another node over a GPU of the same node.
inline double between_nodes_ns(const Machine& machine, std::int32_t from, std::int32_t to) {
  if (from == to || machine.fabric.network_latency_ns == 0) return 0;
  if (from / machine.gpus_per_node == to / machine.gpus_per_node) return 0;
  const bool far = machine.network.spine_latency_ns > 0 && through_spine(machine, from, to);
  return machine.fabric.network_latency_ns + (far ? machine.network.spine_latency_ns : 0);
}

// The ports of a GPU; each kind has one port out and one port in.
enum class Ports : std::uint8_t { none, store, load };
inline constexpr std::size_t kPortsCount = 3;

struct LinkRates {
  double efficiency = 1;  // payload per byte of a link
  Ports ports = Ports::none;
  double egress_gb_per_s = std::numeric_limits<double>::infinity();  // of ports
  double ingress_gb_per_s = std::numeric_limits<double>::infinity();
  double network_efficiency = 0;  // payload per byte of a NIC and the links behind it; 0: as `efficiency`

  double efficiency_on(const TopologyEdge& edge) const {
    return edge.network && network_efficiency > 0 ? network_efficiency : efficiency;
  }
};

// Conditions of a move that nothing else delays.
struct MoveConditions {
  double gb_per_s = 0;     // workgroup_gb_per_s()
  double read_ns = 0;      // latency of own memory, for moves that read own memory
  double busy_share = 0;   // share of the compute units that run matmuls
  double clock_share = 1;  // of the boost clock
  double together = 1;     // moves of the workgroup that start together, whose tiles it adds one by one
  bool lone = false;       // a copy from own memory directly after an operation that is not a copy, or first
  bool probes = false;     // a load that continues a search, see goes_on_search()
};

// Whether a load continues a search: it loads one element, directly after the load of another element of the
// same buffer of the same rank. Such loads wait for each other, and the interpreter executes them as one
// operation.
inline bool goes_on_search(const Op& before, const Op& op) {
  const auto is_probe = [](const Op& one) {
    return one.kind == OpKind::load && one.rect.rows == 1 && one.rect.cols == 1;
  };
  return is_probe(op) && is_probe(before) && op.buffer == before.buffer && op.rank == before.rank;
}

// The moves of a schedule on a machine.
class MoveCosts {
 public:
  // All arguments outlive this object; `topology` is of the ranks of the schedule.
  MoveCosts(const Schedule& schedule, const Machine& machine, const CostTable& costs,
            const Topology& topology);

  // By index of the kernel in the schedule.
  const KernelRates& rates(std::size_t kernel) const { return rates_[kernel]; }

  // Rate of one of `sharers` workgroups of a kernel on a compute unit, once its bytes flow; no move of these
  // workgroups is faster.
  double workgroup_gb_per_s(std::size_t kernel, DataMoveKind kind, std::int32_t sharers = 1) const;

  // Bytes of a move / time from its start to its end. 0: unlimited, if a rate is unknown.
  double gb_per_s_alone(const Kernel& kernel, const Op& op, const DataMove& move,
                        const MoveConditions& met) const;

  // By Traffic.
  const std::array<LinkRates, kTrafficCount>& links(KernelProfile profile) const {
    return links_[static_cast<std::size_t>(profile)];
  }
  const LinkRates& links(KernelProfile profile, Traffic traffic) const {
    return links(profile)[static_cast<std::size_t>(traffic)];
  }

  // Bytes on a link per byte that an operation stores to a peer (link_packets.hpp).
  double link_cost(const Kernel& kernel, const Op& op, bool in_boxes) const;

  // Whether NICs carry a move, and count its messages besides its bytes.
  bool is_message(const DataMove& move) const {
    return machine_.network.message_ns > 0 &&
           move.rank / machine_.gpus_per_node != move.peer / machine_.gpus_per_node;
  }
  // Bytes that a NIC could move in the time of such a move, per byte of the move. One RDMA message moves one
  // contiguous run of bytes of the remote matrix: a row of a tile, or the whole tile if it is as wide as the
  // matrix (InfiniBand Architecture Specification, vol. 1, §9.4: one remote address per request). Flags in
  // the words of the data are bytes of the message: `payload_share` as of Kernel.
  double message_cost(const Op& op, const DataMove& move, KernelProfile profile,
                      double payload_share = 1) const;

 private:
  double way_gb_per_s(const DataMove& move, const LinkRates& links) const;
  bool is_ragged(const Op& op) const;

  const Schedule& schedule_;
  const Machine& machine_;
  const CostTable& costs_;
  const Topology& topology_;
  std::array<std::array<LinkRates, kTrafficCount>, kKernelProfileCount> links_;
  std::vector<KernelRates> rates_;
};

}  // namespace tritax
