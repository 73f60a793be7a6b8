// Represents the order among the operations of a schedule as a directed Boost.Graph graph. Internal to
// model/schedule.
//
// Vertices are the points that create order: the host operations, the start and end of every kernel
// execution, the begin of every workgroup, and every signal and wait. Data operations need no vertex: they
// lie between two vertices in program order. An edge u → v means that u has happened before v in every
// execution:
//
//   host program order; launch → kernel start; kernel start → workgroup begin → its signals and waits in
//   program order → kernel end; kernel end → next kernel of the same stream and → synchronisation; all hosts'
//   arrivals at a barrier → the barrier; signal → event → wait. A copy by a copy engine is a run of a kernel
//   with one workgroup and without a compute unit. A record of an event is a point of its stream after
//   earlier work; a wait for the event is a point after the record and before later work.
//
// An *event* (cell, v) is "the counter of this flag has reached v". A signal s is ordered before the event
// only if the counter cannot reach v without s. Let `total` be the sum of all signals to the cell, and
// `behind(s)` the value of s plus the signals to the cell that certainly come after s (later in its
// workgroup, or in later kernels of its stream). Then s precedes the event if v > total - behind(s). In the
// usual case v == total and every signal precedes the event.
//
// A signal that sets its counter begins a phase of the counter (find_phases.hpp). Each phase is a separate
// cell, to which the setting signal adds its value, before all events. A relaxed signal counts, but has no
// edge to an event.
//
// The workgroup whose claim succeeds executes the operations after a `claim`. Of all blocks that claim from
// one queue at most `limit` count towards `total`, and a signal is ordered as if its block were executed.
// Waits inside a block order nothing after the block, because the block may be skipped; see
// SyncGraph::behind_skipped.
//
// Items of a queue (items.hpp) are like workgroups of their kernel: kernel start → begin of the item → its
// signals and waits → kernel end. A flag for which all claims of the queue have waited before precedes the
// begin. Other operations of a workgroup before its claim need not precede the item, because another
// workgroup may draw it; and no item precedes the operations after the claim. All items are executed some
// time, so their signals count like other signals.
#pragma once

#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "model/schedule/flag_phases.hpp"
#include "model/schedule/schedule.hpp"

namespace tritax {

inline constexpr std::uint32_t kNoVertex = ~std::uint32_t{0};

inline constexpr std::uint32_t kNoKernel = ~std::uint32_t{0};

inline constexpr std::uint32_t kNoQueue = ~std::uint32_t{0};

// One execution of a kernel: a launch, or a node of a graph launch; or a copy by a copy engine.
struct Run {
  std::uint32_t kernel = 0;    // kNoKernel: a copy
  std::uint32_t transfer = 0;  // of a copy: into Schedule::transfers
  std::int32_t rank = 0;
  std::int32_t stream = 0;
  std::uint32_t stream_position = 0;  // among the runs of this rank and stream
  std::uint32_t host_op = 0;          // host operation that launches it
  std::uint32_t first_workgroup = 0;  // into SyncGraph::workgroups; items follow workgroups
  std::uint32_t start = 0;            // vertices
  std::uint32_t end = 0;
};

// One execution of a workgroup, or of an item. Its vertices are consecutive: the begin, then its signals,
// waits and claims of items.
struct WorkgroupRun {
  std::uint32_t run = 0;
  std::uint32_t workgroup = 0;  // number of the workgroup or item in program_of()
  std::uint32_t first_vertex = 0;
  std::uint32_t vertex_count = 0;
  std::uint32_t queue = kNoQueue;  // of an item: into SyncGraph::queues

  bool is_item() const { return queue != kNoQueue; }
  std::uint32_t last_vertex() const { return first_vertex + vertex_count - 1; }
};

struct SyncVertex {
  enum class Kind : std::uint8_t {
    host,
    host_barrier,
    stream_point,  // a record of an event, or a wait for it, in its stream
    run_start,
    run_end,
    workgroup_begin,
    signal,
    wait,
    queue_reached,  // a claim of items
    queue_left,     // the claim has found no item
    event
  };
  Kind kind = Kind::host;
  std::uint32_t owner = 0;  // host, stream_point: rank; run_*: run; event: event; else workgroup run
  std::uint32_t op = 0;  // host, stream_point: host operation; signal, wait, queue_*: that of the workgroup
  bool may_be_skipped = false;  // signal: behind a claim from a queue with fewer items than claims
};

// A block with waits after a claim: a workgroup that skips the block continues without these acquires.
struct SkippedWaits {
  std::uint32_t first_vertex = 0;
  std::uint32_t last_vertex = 0;
  std::uint32_t end_op = 0;  // one past the block
};

// One flag counter with signals, waits or claims.
struct FlagCell {
  std::int32_t rank = 0;
  std::int32_t flag = 0;
  std::int32_t index = 0;
  std::uint32_t phase = 0;              // of the counter
  std::int64_t total = 0;               // highest value that the counter can reach
  std::int64_t least = 0;               // final value that it reaches at least, for any draw of items
  std::int64_t least_of_skippable = 0;  // part of `least` that skippable signals add
  std::uint32_t skippable = 0;          // number of such signals
  std::vector<std::uint32_t> signals;   // vertices
  std::vector<std::uint32_t> events;    // by rising value
  std::vector<OpPoint> claims;
};

struct FlagEvent {
  std::uint32_t cell = 0;
  std::int64_t value = 0;
  std::uint32_t vertex = 0;
  std::vector<std::uint32_t> waits;  // vertices
};

// Items and the claims that draw them.
struct WorkQueue {
  std::uint32_t first_item = 0;  // workgroup run; the others follow in the order in which they are drawn
  std::uint32_t item_count = 0;
  std::vector<std::uint32_t> claims;  // vertices: queue_reached; queue_left is the next
};

class SyncGraph {
 public:
  using Graph =
      boost::compressed_sparse_row_graph<boost::bidirectionalS, boost::no_property, boost::no_property,
                                         boost::no_property, std::uint32_t, std::uint32_t>;

  // The schedule must have passed check_ranges and outlive the graph. `phases`: phases of counters that are
  // set (sync_graph_of of find_phases.hpp finds them). Signals and waits without a phase are in no cell.
  SyncGraph(const Schedule& schedule, FlagPhases phases);

  const Schedule& schedule() const { return schedule_; }
  const std::vector<Run>& runs() const { return runs_; }
  const std::vector<WorkgroupRun>& workgroups() const { return workgroups_; }
  const std::vector<SyncVertex>& vertices() const { return vertices_; }
  const std::vector<FlagCell>& cells() const { return cells_; }
  const std::vector<FlagEvent>& events() const { return events_; }
  const std::vector<WorkQueue>& queues() const { return queues_; }
  const FlagPhases& phases() const { return phases_; }
  const Graph& graph() const { return graph_; }

  // For a copy: a kernel without resources.
  const Kernel& kernel_of(const Run& run) const {
    return run.kernel == kNoKernel ? copy_kernel_ : schedule_.kernels[run.kernel];
  }
  // The operations of a workgroup run, or item.
  std::span<const Op> ops_of(const WorkgroupRun& workgroup) const;
  const Op& op_at(OpPoint point) const;
  const Op& op_of(std::uint32_t signal_or_wait) const;
  std::uint32_t cell_of_signal(std::uint32_t signal) const { return cell_of_vertex_[signal]; }
  std::uint32_t queue_of_claim(std::uint32_t queue_reached) const {
    return queue_of_claim_.at(queue_reached);
  }
  std::string describe(OpPoint point) const;
  std::string describe_run(std::uint32_t run) const;
  std::string describe_vertex(std::uint32_t vertex) const;

  // First vertex after the operation in program order, and last vertex before it that is certainly executed.
  std::uint32_t vertex_after(OpPoint point) const;
  std::uint32_t vertex_before(OpPoint point) const;

  // If `vertex` is the last vertex of blocks with waits: the vertex before these blocks, which certainly
  // precedes the later vertices in program order. Otherwise `vertex` itself.
  std::uint32_t behind_skipped(std::uint32_t vertex) const;
  // The first vertex after the block with waits that contains `vertex`; kNoVertex if there is no such block.
  std::uint32_t exit_of_block(std::uint32_t vertex) const;

 private:
  friend class SyncGraphBuilder;
  const Schedule& schedule_;
  FlagPhases phases_;
  Kernel copy_kernel_;
  std::vector<Run> runs_;
  std::vector<WorkgroupRun> workgroups_;
  std::vector<SyncVertex> vertices_;
  std::vector<FlagCell> cells_;
  std::vector<FlagEvent> events_;
  std::vector<WorkQueue> queues_;
  std::unordered_map<std::uint32_t, std::uint32_t> queue_of_claim_;  // by vertex
  std::vector<std::uint32_t> cell_of_vertex_;                        // of signals
  std::vector<SkippedWaits> blocks_;
  std::vector<std::uint32_t> block_of_vertex_;  // into blocks_, or kNoVertex
  Graph graph_;
};

// Query whether `before` is ordered before `after`.
struct OrderQuery {
  OpPoint before;
  OpPoint after;
};

// Answers many queries at once: one backward search per kernel execution, continued per workgroup.
std::vector<char> are_ordered(const SyncGraph& graph, const std::vector<OrderQuery>& queries);

// Query whether a signal or wait, by its vertex, is done before `after` begins.
struct DoneQuery {
  std::uint32_t vertex = 0;
  OpPoint after;
};
std::vector<char> are_done(const SyncGraph& graph, const std::vector<DoneQuery>& queries);

// Query for the order between operations of one workgroup run, in program order, and `point`.
struct SideQuery {
  OpPoint point;
  std::uint32_t workgroup_run = 0;
  std::span<const std::uint32_t> ops;
};

// ops[0 … before) are ordered before the point and ops[after …) after it; the operations between have no
// order.
struct Sides {
  std::uint32_t before = 0;
  std::uint32_t after = 0;
};

// As are_ordered, for all operations of a query at the cost of a few queries.
std::vector<Sides> sides_of(const SyncGraph& graph, const std::vector<SideQuery>& queries);

// All vertices from which one of `roots` can be reached, the roots included.
std::vector<char> past_of(const SyncGraph& graph, const std::vector<std::uint32_t>& roots);

}  // namespace tritax
