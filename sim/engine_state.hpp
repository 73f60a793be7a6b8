// The state that several parts of the engine read while it runs: kernels, workgroups, GPUs and matmuls; and
// the events of the loop. State that one part needs is in the header of that part.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "model/cost/matmul_cost.hpp"
#include "model/cost/move_cost.hpp"
#include "model/machine/topology.hpp"
#include "sim/cache.hpp"
#include "sim/cache_traffic.hpp"
#include "sim/dispatch.hpp"
#include "sim/fluid.hpp"
#include "sim/path.hpp"
#include "sim/simulate.hpp"

namespace tritax {

// A workgroup and the compute unit that it was sent to.
struct Placed {
  std::uint32_t kernel = 0;
  std::uint32_t workgroup = 0;
  std::int32_t cu = 0;
};

// Nodes or ranks that behave alike; see symmetry.hpp. Either the schedule holds only the programs of the
// first `simulated_ranks`, or it is whole and names the ranks, workgroups and operations that share a random
// share.
struct AlikeLink {
  std::int32_t first = 0;  // topology edge that this edge is alike
  double share = 1;        // share of the rate of `first` that the simulated ranks have
};
struct Alike {
  std::int32_t simulated_ranks = 0;                          // 0: all ranks
  const std::vector<AlikeLink>* links = nullptr;             // by topology edge
  std::int32_t lucky_ranks = 0;                              // ranks with own random shares; 0: all
  const std::vector<std::uint32_t>* workgroup_of = nullptr;  // by number: workgroup of equal random share
  const std::vector<std::uint32_t>* op_of = nullptr;         // by operation: operation of equal share
};

}  // namespace tritax

namespace tritax::engine {

struct TileRecord;

inline constexpr std::uint32_t kNobody = 0xffffffffu;

// Misses of a matmul: A in L2 (1), B in L2 (2), A in the last-level cache (4), B in the last-level cache (8);
// and the share of the bytes from memory that displaces dirty lines, in kEvictionParts.
inline constexpr int kMissBits = 15;
inline constexpr int kEvictionShift = 4;
inline constexpr std::uint32_t kEvictionParts = 1024;
// Misses of an attend, in kMissParts: misses of the L2, and, shifted, misses of the last-level cache.
inline constexpr std::uint32_t kMissParts = 8;
inline constexpr int kMissPartsBits = 4;
constexpr double l2_parts(std::uint32_t misses) { return misses % (1u << kMissPartsBits); }
constexpr double llc_parts(std::uint32_t misses) { return misses >> kMissPartsBits; }

enum class EventKind : std::uint8_t {
  // workgroups
  start_workgroup,
  resume_workgroup,
  tile_staged,
  resume_sender,
  delayed_loads_arrived,
  // flags, kernels and hosts
  flag_arrives,
  start_kernel,
  host_step,
  // transfers by copy engines
  transfer_ready,
  transfer_moves
};
struct Event {
  EventKind kind = EventKind::host_step;
  std::uint32_t id = 0;
};
constexpr bool is_of_workgroup(const Event& event) { return event.kind <= EventKind::delayed_loads_arrived; }

// A fluid token names a transfer of a copy engine, or a workgroup and whether the activity is the
// asynchronous store of the workgroup.
inline constexpr std::uint32_t kTransferToken = 1u << 31;
constexpr bool is_transfer(std::uint32_t token) { return (token & kTransferToken) != 0; }
constexpr std::uint32_t token_of(std::uint32_t wg, bool store) { return wg << 1 | (store ? 1u : 0u); }
constexpr std::uint32_t workgroup_of(std::uint32_t token) { return token >> 1; }

enum class Level : std::uint8_t { chip, l2, llc, hbm };  // where a tile is read from; chip: no traffic

enum class Waiting : std::uint8_t { nothing, activity, store, loads, flag, time, group };

// The matmul that loads A of a peer into an L2, and those that find it there. They cannot end before it: on a
// full link their bytes arrive as late as its own.
struct PeerLoad {
  bool running = false;
  double start_ns = 0;
  std::uint32_t first_waiter = kNobody;  // of those that have all else
};

// A workgroup on a compute unit. A later workgroup reuses the entry, because the states of all workgroups
// together fit no cache. The loop visits thousands of workgroups in turn: the head holds the fields that are
// used together.
struct alignas(64) WorkgroupHead {
  std::uint32_t kernel = kNobody;  // kNobody: the place is free
  std::uint32_t number = 0;        // number of the workgroup in its kernel
  std::uint32_t id = 0;            // number of the workgroup in the schedule
  std::uint32_t pc = 0;            // index into schedule.ops
  std::uint32_t end = 0;
  std::int32_t cu = -1;
  Waiting waiting = Waiting::nothing;
  bool store_in_flight = false;
  bool has_sender = false;  // own waves carry out stores and signals; see engine_sender.cpp
  bool sender_busy = false;
  bool computed = false;      // since the last store: the accumulators hold another tile
  bool remote_dirty = false;  // stored to a peer since the last release
  bool far_dirty = false;     // … to a peer on another node
  bool spine_dirty = false;   // … through the spine
  bool read_since_start = false;
  std::uint32_t next_waiter = kNobody;
  std::uint32_t store_op = 0;
  std::int16_t store_rank = 0;  // target of the store
  bool store_crowds = false;    // the store counts among the copies on its links (Crowds)
  KernelProfile profile = KernelProfile::interpreter;
  std::int16_t rank = 0;             // rank of the workgroup
  std::int16_t die = 0;              // die of the compute unit
  std::uint16_t together = 1;        // of a member of a group: operations of the group (engine_group.cpp)
  std::uint32_t group_of = kNobody;  // of a member of a group: place of the workgroup
  std::uint32_t running = 0;         // members of the group that have not ended
  double op_start_ns = 0;
  double op_alone_ns = 0;  // duration of the running activity without contention
};
// Fields behind the head are set by Dispatch::send() or by an operation before they are read: a new workgroup
// does not reset them.
struct WorkgroupState : WorkgroupHead {
  Path path;

  // The running matmul, or the operation that the workgroup waits for:
  double TimeAccount::*op_part = &TimeAccount::compute_ns;
  double op_reread_ns = 0;      // part of op_alone_ns that reads again data written before
  double op_compute_ns = 0;     // of a matmul whose A comes over links: its time without waiting for operands
  double operands_ns = 0;       // arrival of operands that other workgroups fetch; 0: none
  double held_up_ns = 0;        // time that stores delay the operand loads of the running matmul
  PeerLoad* leads = nullptr;    // the running matmul loads A of a peer for others too
  PeerLoad* follows = nullptr;  // it finds A of a peer that began to load at leader_ns
  double leader_ns = 0;
  double l2_fill_gb_per_s = 0;
  double llc_fill_gb_per_s = 0;
  double power = 0, power_if_missed = 0;

  // Transfers:
  double op_lost_ns = 0;  // loss of the class on links before the activity started
  double TimeAccount::*store_part = &TimeAccount::wire_ns;
  double store_start_ns = 0;
  double store_alone_ns = 0;
  double store_reread_ns = 0;
  double store_lost_ns = 0;
  double store_bytes = 0;
  TileRecord* stored = nullptr;  // record of the running store; null if remote or never read
};
// State that few workgroups need, kept apart so that WorkgroupState stays small: waves that carry out stores
// and signals (engine_sender.cpp), signals with a round trip, and matmuls that coalesce.
struct SenderState {
  std::uint32_t pc = 0;             // current or next operation of the sender
  double waited_ns = 0;             // delay by the running store that the matmul has already paid
  double signals_known_ns = 0;      // time from which signals to peers are known to have arrived
  std::uint32_t follows = kNobody;  // index of the Readers that the matmul follows
  double leader_start_ns = 0;
  Path path;
};

// Inputs of an operation that is a matmul.
struct MatmulInputs {
  std::uint32_t shape = 0;  // index into Run::shapes
  std::uint32_t a_slab = 0;
  std::uint32_t b_slab = 0;
};

struct KernelState {
  std::uint32_t first_workgroup = 0;  // id of the workgroup
  std::uint32_t remaining = 0;
  std::uint32_t to_send = 0;  // workgroups not yet on a compute unit
  std::int32_t stream = 0;
  bool launched = false;
  bool code_is_cold = false;               // the GPU ran other code before
  bool has_sender = false;                 // see model/cost/matmul_cost.hpp
  Demand demand;                           // per workgroup
  std::uint32_t dies = 1;                  // dies in the range of compute units of the kernel
  std::vector<std::uint32_t> next_of_die;  // next workgroup number to dispatch
  double boundary_ns = -1;                 // end of the predecessor that delayed this kernel; -1: none
  Path start;                              // path at the start of the kernel
  Path end;
};

// Power draw of a GPU's matrix cores, in 1 / GHz^3: the inverse cube of the clock at which the draw fills the
// power limit; see engine_clock.cpp.
struct Power {
  double now = 0, most = 0;  // of the running matmuls, without misses; and the highest sum so far
  double if_missed = 0, most_missed = 0;  // additional draw if all operands miss; and the highest sum so far
  double asked_bytes = 0, missed_bytes = 0;
  double applied = 0;         // draw that the clock follows
  double work = 0;            // sum over all matmuls so far of clk times draw
  double most_ghz = 0;        // limit from outside; 0: none
  double clock_ghz = 0;       // present clock
  std::int32_t busy_bin = 0;  // for GPUs with unknown energies
};

struct CuState {  // of one compute unit
  double occupied_since_ns = 0;
  std::int32_t matmul_workgroups = 0;  // resident workgroups of kernels with a matrix tile
  std::int32_t data_workgroups = 0;    // resident workgroups of other kernels
  std::int32_t matmuls = 0;            // running matmuls

  // Residents of the same kind as a kernel with this tile.
  std::int32_t& residents(const MatmulTile& tile) { return tile.m > 0 ? matmul_workgroups : data_workgroups; }
  std::int32_t residents(const MatmulTile& tile) const {
    return tile.m > 0 ? matmul_workgroups : data_workgroups;
  }
};

struct GpuState {
  explicit GpuState(const Gpu& gpu);

  Dispatcher dispatcher;
  ReuseCache llc;
  std::vector<ReuseCache> l2;                // by die
  std::vector<std::int32_t> atomic_pollers;  // by die
  std::vector<CuState> cus;
  double cu_busy_ns = 0;
  double first_start_ns = -1, last_end_ns = 0;  // of the kernels of this GPU
  std::int32_t busy_matrix_cus = 0;
  double matrix_busy_ns = 0;  // over compute units; starts count negatively until the busy period ends
  Power power;                // see engine_clock.cpp
  double clock_share = 1;     // of the boost clock
  std::array<double, kDTypeCount> clock_factors{};  // by dtype; set for the dtypes of matmuls
  std::int32_t hbm = 0, llc_port = 0;
  std::array<std::int32_t, kPortsCount> egress{}, ingress{};  // by Ports; kNone: no port
  std::int32_t atomic_units = FluidNetwork::kNone;
  std::int32_t vector_units = FluidNetwork::kNone;  // cycles per ns, if a kernel has vector work beside moves
  std::vector<std::int32_t> l2_port;
};

struct MatmulShape {  // operations of one kernel with equal rows, cols and length of the K range
  std::uint32_t kernel = 0;
  KernelProfile profile = KernelProfile::interpreter;
  std::int32_t rows = 0, cols = 0, k = 0;
  DType dtype = DType::fp16;
  MatmulCost cost{};
  double fetched_ns = 0;      // time that the matmul runs on operands that fit LDS at once
  double from_llc_ns = 0;     // least time if operands come from the last-level cache
  double from_memory_ns = 0;  // least time if operands come from memory
  double work = 0;            // clk times draw, without misses
  double shared_speedup = 1;  // most speed of several workgroups on one compute unit over one workgroup
  double slowness = 1;        // KernelRates::time_factor
  bool attends = false;
  std::array<double, 3> wait_ns{};  // for attends: AttendCost::wait_ns
  std::int32_t peer = -1;           // the rank whose A it fetches; -1: its own
  PeerStages of_peer{};             // of all its stages
  double peer_link_cost = 1;        // bytes on a link per byte of A
};

struct Missed {
  std::uint32_t bits = 0;  // A in L2 (1), B in L2 (2), A and B in the last-level cache (4, 8); evictions
  double l2_bytes = 0, llc_bytes = 0;
  double write_back_ns = 0;  // time to write the evicted data back first
  double others_ns = 0;      // arrival of the last operand bytes that others fetch, by latency alone; 0: none
};

}  // namespace tritax::engine
