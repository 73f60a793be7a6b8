// What the engine knows while it runs: of hosts, streams, kernels, workgroups, flags, GPUs and their matmuls.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
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
#include "sim/stream_reuse.hpp"

namespace tritax {

// A workgroup and the compute unit that it was sent to.
struct Placed {
  std::uint32_t kernel = 0;
  std::uint32_t workgroup = 0;
  std::int32_t cu = 0;
};

// Nodes that behave alike; see symmetry.hpp. Either the schedule holds the programs of the first
// `simulated_ranks` alone, or it is whole and says what those that are alike have the luck of.
struct AlikeLink {
  std::int32_t first = 0;  // topology edge that this one is alike
  double share = 1;        // of its rate that the ranks have that are simulated
};
struct Alike {
  std::int32_t simulated_ranks = 0;                          // 0: all
  const std::vector<AlikeLink>* links = nullptr;             // by topology edge
  std::int32_t lucky_ranks = 0;                              // 0: every rank has its own luck
  const std::vector<std::uint32_t>* workgroup_of = nullptr;  // by number in the schedule, likewise
  const std::vector<std::uint32_t>* op_of = nullptr;         // by operation
};

}  // namespace tritax

namespace tritax::engine {

inline constexpr std::uint32_t kNobody = 0xffffffffu;

// What a matmul misses: A in L2 (1), B in L2 (2), A in the last-level cache (4), B there (8); and how much
// of what comes from memory displaces dirty lines, in parts.
inline constexpr int kMissBits = 15;
inline constexpr int kEvictionShift = 4;
inline constexpr std::uint32_t kEvictionParts = 1024;
// Of an attend, in as many parts: what misses the L2, and, shifted, what misses the last-level cache too.
inline constexpr std::uint32_t kMissParts = 8;
inline constexpr int kMissPartsBits = 4;
constexpr double l2_parts(std::uint32_t misses) { return misses % (1u << kMissPartsBits); }
constexpr double llc_parts(std::uint32_t misses) { return misses >> kMissPartsBits; }

enum class EventKind : std::uint8_t {
  // of workgroups
  start_workgroup,
  resume_workgroup,
  tile_staged,
  resume_sender,
  loads_trickled,
  // of others
  flag_arrives,
  start_kernel,
  host_step,
  // of transfers by copy engines
  transfer_ready,
  transfer_moves
};
struct Event {
  EventKind kind = EventKind::host_step;
  std::uint32_t id = 0;
};

enum class Level : std::uint8_t { chip, l2, llc, hbm };  // where a tile is read from; chip: no traffic

enum class Waiting : std::uint8_t { nothing, activity, store, loads, flag, time };

struct TileRecord {  // what is known about one tile-sized cell of a buffer of a rank
  double l2_mark = -1e300;
  double llc_mark = -1e300;
  std::int32_t die = -1;
  std::uint32_t writer = kNobody;  // of the last write: in write_paths_

  bool written() const { return writer != kNobody; }
};

struct TileGrid {  // the cells of a buffer
  std::int32_t tile_rows = 1, tile_cols = 1;
  std::int32_t rows = 0, columns = 0;
};
TileGrid grid_of(const Buffer& buffer);

// Of a workgroup that is on a compute unit; who comes later takes its place, for the states of all
// workgroups together would fit no cache. Of thousands, in turn: cache lines of what is used together.
struct alignas(64) WorkgroupHead {
  std::uint32_t kernel = kNobody;  // kNobody: the place is free
  std::uint32_t number = 0;        // within the kernel
  std::uint32_t id = 0;            // in the order of the schedule
  std::uint32_t pc = 0;            // index into schedule.ops
  std::uint32_t end = 0;
  std::int32_t cu = -1;
  Waiting waiting = Waiting::nothing;
  bool store_in_flight = false;
  bool has_sender = false;  // waves of its own carry stores and signals out; see engine_sender.cpp
  bool sender_busy = false;
  bool computed = false;      // since the last store: the accumulators hold another tile
  bool remote_dirty = false;  // stored to a peer since the last release
  bool far_dirty = false;     // … of another node
  bool spine_dirty = false;   // … through the spine
  bool read_since_start = false;
  std::uint32_t next_waiter = kNobody;
  std::uint32_t store_op = 0;
  std::int16_t store_rank = 0;  // where it goes
  bool store_crowds = false;    // it counts on its links
  KernelProfile profile = KernelProfile::interpreter;
  std::int16_t rank = 0;  // its own
  std::int16_t die = 0;   // of its compute unit
  double op_start_ns = 0;
  double op_alone_ns = 0;  // duration of the running activity without others
};
// Behind the head stands what send() or an operation sets before it is read: a workgroup that takes the
// place of another leaves that as it is.
struct WorkgroupState : WorkgroupHead {
  Path path;

  // Of the running matmul, and of whatever else the workgroup waits for:
  double TimeAccount::*op_part = &TimeAccount::compute_ns;
  double op_reread_ns = 0;  // of the duration alone: to read again what was written before
  double operands_ns = 0;   // before this the running matmul has not all that others fetch; 0: it has
  double held_up_ns = 0;    // time that stores have kept the operand loads of the running matmul waiting
  double l2_fill_gb_per_s = 0;
  double llc_fill_gb_per_s = 0;
  double power = 0, power_if_missed = 0;

  // Of transfers:
  double op_lost_ns = 0;  // by its class on links, before the activity started
  double TimeAccount::*store_part = &TimeAccount::wire_ns;
  double store_start_ns = 0;
  double store_alone_ns = 0;
  double store_reread_ns = 0;
  double store_lost_ns = 0;
  double store_bytes = 0;
  TileRecord* stored = nullptr;  // of the running store; null of a remote one, or if nobody reads it
};
// What few workgroups need besides, kept apart for the sake of the others: of the waves that carry stores
// and signals out, see engine_sender.cpp, of signals that are answered, and of matmuls that coalesce.
struct SenderState {
  std::uint32_t pc = 0;             // what the sender works on, or comes to next
  double waited_ns = 0;             // of the running store: time that the matmul has paid already
  double signals_known_ns = 0;      // from when on signals to peers are known to be there
  std::uint32_t follows = kNobody;  // of a matmul: the leader of these readers of an operand, an index
  double leader_start_ns = 0;
  Path path;
};

// Of a workgroup of a kernel with items, see engine_claim.cpp.
struct DrawState {
  std::uint32_t claim = kNobody;      // the operation that has drawn the item at hand; kNobody: none
  std::vector<std::uint32_t> passed;  // free signals that the end of the store in flight raises
};

// Of a workgroup that attends, see engine_attend.cpp.
struct AttendState {
  std::uint32_t wg = kNobody;  // its id
  std::uint32_t stream = 0;
  std::uint32_t l2_reader = kNobody, llc_reader = kNobody;
  std::uint32_t misses = 0;
  double end = 0;        // of the piece of the stream that it reads, or has read last
  double run_begin = 0;  // where it came into the stream
  double ns_per_byte = 0;
  double pace = 1;
};

// Of an operation that is a matmul.
struct MatmulInputs {
  std::uint32_t shape = 0;  // index into shapes_
  std::uint32_t a_slab = 0;
  std::uint32_t b_slab = 0;
};

// Of a slab and a port to the L2: the matmuls that read it one after the other, and the first of those that
// do so together.
struct Readers {
  double last_start_ns = -1e300;
  double first_start_ns = -1e300;
  double spread = 1;         // of the first
  bool from_memory = false;  // the first waits for memory
  bool alone = false;        // the first fetches its other operand from memory
  bool running = false;      // `leader` has not got all its operands
  std::uint32_t leader = kNobody;
  std::uint32_t leader_op = 0;
  double leader_start_ns = 0;
  std::uint32_t first_waiter = kNobody;  // of those that cannot end before the leader
};

struct KernelState {
  std::uint32_t first_workgroup = 0;  // its id
  std::uint32_t remaining = 0;
  std::uint32_t to_send = 0;  // workgroups that no compute unit has taken yet
  std::int32_t stream = 0;
  bool launched = false;
  bool code_is_cold = false;               // the GPU ran other code before
  bool has_sender = false;                 // see model/cost/matmul_cost.hpp
  Demand demand;                           // of a workgroup
  std::uint32_t dies = 1;                  // that its range of compute units reaches
  std::vector<std::uint32_t> next_of_die;  // next workgroup number to dispatch
  double boundary_ns = -1;                 // end of the predecessor that held this kernel back; -1: none
  Path start;                              // of the path when the kernel starts
  Path end;
};

struct StreamState {
  enum class Kind : std::uint8_t { kernel, copy, record, wait };
  struct Pending {
    Kind kind = Kind::kernel;
    std::uint32_t item = 0;  // number of the kernel, of transfers_, or of event_records_
    double earliest_ns = 0;
    double gap_ns = 0;
    double synchronized_ns = -1;
    Path launch{};
  };
  std::vector<Pending> queue;
  std::size_t head = 0;
  bool busy = false;
  bool used = false;
  Path last_end;
};

// A record of an event that a host has posted.
struct EventRecord {
  bool happened = false;
  Path path;
};

// A copy by a copy engine that a host has posted; see engine_copies.cpp.
struct TransferState {
  std::uint32_t op = 0;  // into Schedule::transfers
  std::int32_t rank = 0;
  std::uint32_t host_op = 0;
  std::int32_t stream = 0;
  std::int32_t engine = -1;
  double begin_ns = 0;  // when data begins to move
  double alone_ns = 0;
  double lost_ns = 0;  // by its class on links, before that
  double TimeAccount::*part = &TimeAccount::wire_ns;
  Path path;
};

// Of one GPU.
struct EngineQueue {
  std::vector<Path> last_end;          // by engine
  std::vector<char> busy;              // likewise
  std::vector<std::uint32_t> waiting;  // transfers whose turn in their stream has come
  std::size_t head = 0;                // of waiting
};

enum class HostWait : std::uint8_t { nothing, streams, barrier, done };

struct HostState {
  std::uint32_t pc = 0;
  HostWait wait = HostWait::nothing;
  std::int32_t wait_stream = -1;    // -1: all
  std::uint32_t busy_op = kNobody;  // operation whose end is known and lies ahead
  double synchronized_ns = -1;      // kernels up to this time were waited for by the host
  bool has_launched = false;
  std::vector<StreamState> streams;
  std::vector<std::int32_t> stream_order;  // as they were first posted to: whatever their numbers are
  std::vector<std::uint32_t> last_record;  // by event: into event_records_
  Path path;
};

struct FlagState {
  std::int32_t value = 0;
  std::int32_t pollers = 0;
  std::uint32_t first_waiter = kNobody;
};

struct Arrival {  // a signal on its way to a flag
  std::uint32_t flag = 0;
  std::int32_t value = 0;
  std::int32_t from_die = -1;  // of the same GPU; -1: from a peer
  FlagChange change = FlagChange::add;
  Path path;
};

struct PlaceQueue {
  std::vector<Placed> workgroups;
  std::size_t head = 0;  // the next to come
};

// What the matrix cores of a GPU draw, as the cube of the clock [GHz] at which it fills the power limit,
// inverted; see engine_clock.cpp.
struct Power {
  double now = 0, most = 0;               // of the matmuls that run: whatever they miss
  double if_missed = 0, most_missed = 0;  // of them: more, if all their operands missed the caches
  double asked_bytes = 0, missed_bytes = 0;
  double applied = 0;         // what the clock follows
  double work = 0;            // clk of all matmuls so far times what they drew
  double most_ghz = 0;        // limit from outside; 0: none
  double clock_ghz = 0;       // at present
  std::int32_t busy_bin = 0;  // of GPUs whose energies are unknown
};

struct CuState {  // of a compute unit
  double occupied_since_ns = 0;
  std::int32_t matmul_workgroups = 0;  // resident, of kernels with a matrix tile
  std::int32_t data_workgroups = 0;    // resident, of the others
  std::int32_t matmuls = 0;            // running

  // Of the kind of a kernel with such a tile.
  std::int32_t& residents(const MatmulTile& tile) { return tile.m > 0 ? matmul_workgroups : data_workgroups; }
  std::int32_t residents(const MatmulTile& tile) const {
    return tile.m > 0 ? matmul_workgroups : data_workgroups;
  }
};

struct GpuState {
  explicit GpuState(const Gpu& gpu);

  Dispatcher dispatcher;
  ReuseCache llc;
  std::vector<ReuseCache> l2;           // by die
  std::vector<StreamReuse> l2_streams;  // by die, and of the last-level cache; empty without attention
  std::vector<StreamReuse> llc_streams;
  std::vector<Readers> readers;              // by slab and port, where requests coalesce
  std::vector<double> fetched_ns;            // by slab: when the last fetch from memory began, likewise
  std::vector<std::int32_t> atomic_pollers;  // by die
  std::vector<double> dispatch_free_ns;      // by die
  std::vector<std::uint32_t> running;        // kernels with workgroups left to dispatch, in launch order
  std::vector<PlaceQueue> place_queues;      // by CU; empty unless places are given
  std::vector<CuState> cus;
  double cu_busy_ns = 0;
  double first_start_ns = -1, last_end_ns = 0;  // of its kernels
  std::int32_t busy_matrix_cus = 0;
  double matrix_busy_ns = 0;     // sum over compute units; their starts count negatively until they end
  double dirty_bytes = 0;        // of what was written before the run, still in the caches
  double dirty_reads_bytes = 0;  // that matmuls still fetch before dirty_share has to be found anew
  double dirty_share = 0;        // of these, what displaces some of it
  double write_back_ns = 0;      // that takes to write that back
  Power power;                   // see engine_clock.cpp
  double clock_share = 1;        // of the boost clock
  std::array<double, kDTypeCount> clock_factors{};  // of those that are computed with
  std::vector<std::int32_t> matmul_classes;         // for clock changes
  std::int32_t hbm = 0, llc_port = 0;
  std::array<std::int32_t, kPortsCount> egress{}, ingress{};  // by Ports, or kNone
  std::int32_t atomic_units = FluidNetwork::kNone;
  std::vector<std::int32_t> l2_port;
  bool l2_can_fill = true;  // any of l2_port, at the present clock
};

// Of what kernels of a profile get of resources that others get at another rate; see find_shares().
struct Shares {
  double l2 = 1;                                                      // of the port of an L2, by byte
  std::array<double, kPortsCount> egress{1, 1, 1}, ingress{1, 1, 1};  // by Ports, likewise
};

struct MatmulShape {  // operations of one kernel with equal rows, cols and K range length
  std::uint32_t kernel = 0;
  KernelProfile profile = KernelProfile::interpreter;
  std::int32_t rows = 0, cols = 0, k = 0;
  DType dtype = DType::fp16;
  MatmulCost cost{};
  double fetched_ns = 0;      // for this long it needs no operands but those that fit LDS at once
  double from_llc_ns = 0;     // at least, if operands come from the last-level cache
  double from_memory_ns = 0;  // at least, if operands come from memory
  double work = 0;            // clk times what it draws, without misses
  double shared_speedup = 1;  // how much faster than one workgroup several on one CU are together, at most
  double slowness = 1;        // KernelRates::time_factor
  bool attends = false;
  std::array<double, 3> wait_ns{};  // of attends: AttendCost::wait_ns
};

struct Missed {
  std::uint32_t bits = 0;  // A in L2 (1), B in L2 (2), A and B in the last-level cache (4, 8); evictions
  double l2_bytes = 0, llc_bytes = 0;
  double write_back_ns = 0;  // for what the evictions write back first
  double others_ns = 0;      // when the last of what others fetch comes, by latency alone; 0: none do
};

struct MatmulClass {
  std::uint32_t shape = 0;
  std::int32_t sharers = 1;
  Missed missed;
};

struct ClassKey {
  std::uint64_t what = 0;
  std::uint64_t cap_bits = 0;
  std::uint64_t cost_bits = 0;  // of the link
  bool operator==(const ClassKey&) const = default;
};
inline constexpr std::size_t kRecentClasses = 1024;  // a power of two
struct RecentClass {
  ClassKey key;
  std::int32_t id = FluidNetwork::kNone;
};
struct ClassKeyHash {
  std::size_t operator()(const ClassKey& key) const {
    return std::hash<std::uint64_t>{}(key.what * 0x9e3779b97f4a7c15ULL ^ key.cap_bits ^ key.cost_bits);
  }
};

struct DataPath : Move {  // what a data operation loads, and how fast one workgroup can drive it
  KernelProfile profile = KernelProfile::interpreter;
  Level source = Level::chip;
  bool mixed = false;    // of several sources, the farthest is `source`; Engine::read_bytes_ has all
  bool rereads = false;  // the source is a tile that was written before, not an input
  double bytes = 0;
  double cap_gb_per_s = 0;
  double link_cost = 1;   // bytes on a link per byte stored
  double with_flags = 1;  // bytes sent per byte of data, where flags travel in the words of the data
  // Crowding::step_of() those that share the link of the sender and that of the receiver, if it is full.
  std::uint8_t crowd_out = 0, crowd_in = 0;
  bool written_back = false;  // what it writes goes to memory
};

struct FlagOutlook {   // of one flag counter
  double rest_ns = 0;  // from when it is seen to the end of the workgroup that waits for it, the longest
  std::uint32_t kernel = 0;   // of that workgroup
  std::uint32_t signals = 0;  // operations that raise it
};

}  // namespace tritax::engine
