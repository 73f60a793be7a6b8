// The engine behind `simulate`: the event loop and its handlers. engine_state.hpp has the state.
//
// One event queue holds everything that takes a known time, one fluid network holds everything that shares
// bandwidth. The loop takes the earlier of the two, handles all events of that time, and settles the rates
// once.
//
// Every agent (host or workgroup) carries the account of the path that led to its present state, so the
// account of the last completion is the account of the critical path and sums to the makespan: an agent that
// another agent releases (by a signal, a kernel end, a barrier) continues with the account of the releaser if
// the releaser came last.
//
// Split by topic: engine_setup.cpp (before the run), engine.cpp (loop, dispatch, kernels), engine_host.cpp
// (host programs, streams), engine_copies.cpp (copy engines, events), engine_ops.cpp (tile operations),
// engine_flags.cpp (signals, waits), engine_claim.cpp (work queues), engine_clock.cpp (clock under the power
// limit), engine_sender.cpp (stores beside the matmuls of their workgroup), engine_lock_step.cpp (matmuls
// that share operands), engine_attend.cpp (cache hits of keys and values), engine_sparse.cpp (rows of sparse
// matrices), engine_traffic.cpp (resources that an operation uses), engine_regions.cpp (cache hits of regions
// that overlap others), engine_write_back.cpp (when memory gets written data), engine_links.cpp (links that
// an operation uses), engine_outlook.cpp (when to give up), engine_counters.cpp (counters of a timeline),
// engine_result.cpp (results, stalls).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "model/cost/kernel_costs.hpp"
#include "model/cost/sparse_cost.hpp"
#include "model/machine/topology.hpp"
#include "model/schedule/items.hpp"
#include "sim/engine_attend.hpp"
#include "sim/engine_claim.hpp"
#include "sim/engine_classes.hpp"
#include "sim/engine_clock.hpp"
#include "sim/engine_copies.hpp"
#include "sim/engine_counters.hpp"
#include "sim/engine_dispatch.hpp"
#include "sim/engine_flags.hpp"
#include "sim/engine_host.hpp"
#include "sim/engine_links.hpp"
#include "sim/engine_lock_step.hpp"
#include "sim/engine_luck.hpp"
#include "sim/engine_matmul.hpp"
#include "sim/engine_matmul_classes.hpp"
#include "sim/engine_operands.hpp"
#include "sim/engine_outlook.hpp"
#include "sim/engine_resources.hpp"
#include "sim/engine_run.hpp"
#include "sim/engine_state.hpp"
#include "sim/engine_streams.hpp"
#include "sim/engine_tiles.hpp"
#include "sim/engine_traffic.hpp"
#include "sim/engine_write_back.hpp"
#include "sim/event_queue.hpp"
#include "sim/fluid.hpp"
#include "sim/path.hpp"
#include "sim/simulate.hpp"

namespace tritax::engine {

class Engine {
 public:
  // With `places`, which name every workgroup, `places` replaces the dispatcher: each compute unit takes its
  // workgroups in the order of `places`. `alike` and the data that it points to must outlive the engine.
  Engine(const Schedule& schedule, const Machine& machine, const SimulationOptions& options,
         std::span<const Placed> places = {}, const Alike& alike = {});
  // Before the run: upper limits of the clocks in GHz, by rank.
  void limit_clocks(std::span<const double> most_ghz);
  SimulationResult run();
  // All workgroups in dispatch order; after the run.
  const std::vector<Placed>& places() const { return dispatch_.sent(); }

 private:
  // engine_setup.cpp
  void index_schedule();
  void index_programs();

  // engine.cpp
  void handle(const Event& event, double now);
  void start_kernel(std::uint32_t kernel, double now);
  // Between two events of a workgroup come events of thousands of other workgroups: without this prefetch the
  // state of the workgroup is in no cache at the end of its operation.
  void prefetch(std::uint32_t wg) const {
    const char* state = reinterpret_cast<const char*>(&run_.workgroups[wg]);
    for (std::size_t at = 0; at < sizeof(WorkgroupState); at += 64) __builtin_prefetch(state + at, 1);
  }
  void prefetch_of(const Event& event) const {
    const bool of_workgroup = event.kind <= EventKind::loads_trickled;
    if (of_workgroup) prefetch(event.id);
  }
  void start_sent(double now);
  void start_workgroup(std::uint32_t wg, double now);
  void finish_workgroup(std::uint32_t wg, double now);
  void finish_kernel(std::uint32_t kernel, double now);
  double collect_ended(double now, double same_ns);
  double collect_due(double now, double same_ns);
  [[noreturn]] void report_stall(double now) const;
  SimulationResult result(double now);

  // engine_ops.cpp
  void step(std::uint32_t wg, double now);
  bool waits_for_store(const WorkgroupState& wg, const Op& op) const;
  bool begin_op(std::uint32_t id, const Op& op, double now);
  void begin_matmul(WorkgroupState& wg, std::uint32_t id, double now);
  void begin_transfer(WorkgroupState& wg, std::uint32_t id, std::uint32_t op, double now);
  void find_busy_copies();
  double transfer_cap(const WorkgroupState& wg, std::uint32_t op, const DataPath& path) const;
  void resume(std::uint32_t id, double now);
  void completed(const FluidNetwork::Completion& completion, double now);
  bool lacks_operands(std::uint32_t id, double now);
  void finish_matmul(WorkgroupState& wg, std::uint32_t id, const Op& op, double now);
  void count_matrix_cu(GpuState& gpu, std::int32_t cu, std::int32_t change, double now);

  // engine_sender.cpp
  bool staging_in_use(const WorkgroupState& wg) const;
  bool waits_for_sender(const WorkgroupState& wg, const Op& op) const;
  bool stages_or_passes(std::uint32_t id, const Op& op, double now);
  void tile_staged(std::uint32_t id, double now);
  void hand_over(std::uint32_t id, double now);
  void run_sender(std::uint32_t id, double now);
  void note_store_wait(WorkgroupState& wg, double now);
  bool keeps_loads_waiting(const WorkgroupState& wg) const;
  bool holds_up_matmul(std::uint32_t id, double now);
  void loads_trickled(std::uint32_t id, double now);
  bool is_stale(const Event& event) const {
    return event.kind == EventKind::loads_trickled && run_.workgroups[event.id].waiting != Waiting::loads;
  }
  void load_the_rest(std::uint32_t id, double now);
  void resume_loads(std::uint32_t id, double now);
  void resume_sender(std::uint32_t id, double now);
  void sent(std::uint32_t id, double lost_ns, double now);
  void sender_progressed(std::uint32_t id, double now);

  // engine_sparse.cpp
  void begin_sparse_product(WorkgroupState& wg, std::uint32_t id, double now);

  // engine_traffic.cpp

  // engine_result.cpp
  void copy_to_alike(SimulationResult& out) const;

  Run run_;
  const Luck luck_;
  LockStep lock_step_;
  WriteBack write_back_;
  SharedResources resources_;
  Dispatch dispatch_;
  Crowds crowds_;
  TileRecords tiles_;
  FluidClasses classes_;
  DataTraffic traffic_;
  Counters counters_;
  CopyQueues copies_;
  Streams streams_;
  Hosts hosts_;
  Flags flags_;
  WorkQueues queues_;
  MatmulClasses matmul_classes_;
  Clock clock_;
  Attention attention_;
  Operands operands_;
  Outlook outlook_;
  const SparseCosts sparse_costs_;
  std::vector<double> busy_copy_share_;  // share of KernelCosts::busy_copy_ns, by busy compute units
  double first_start_ns_ = -1, last_end_ns_ = 0;
  std::vector<FluidNetwork::Completion> ended_;  // completions at the current time of the loop
  std::vector<EventQueue<Event>::Event> due_;    // events at the current time of the loop
  std::uint32_t ends_soon_ = 0;  // place of the next workgroup in the class of the last completion
};

}  // namespace tritax::engine

namespace tritax {
using engine::Engine;
}
