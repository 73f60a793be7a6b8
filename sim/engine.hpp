// The engine behind `simulate`: the event loop, and the parts that it hands events to.
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
// Run (engine_run.hpp) is the state that all parts share. Every other part owns what its header says, and has
// references to the parts that it uses; no part knows Engine. A part lets something happen later by an event,
// and tells its caller what goes on now. The members of Engine are in an order in which each part needs only
// earlier parts.
//
// Engine itself runs the operations of workgroups and starts and ends workgroups and kernels:
// engine_setup.cpp (before the run), engine.cpp (loop, kernels), engine_ops.cpp (operations of workgroups),
// engine_group.cpp (operations that start together), engine_result.cpp (results, stalls).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/engine_attend.hpp"
#include "sim/engine_claim.hpp"
#include "sim/engine_classes.hpp"
#include "sim/engine_clock.hpp"
#include "sim/engine_copies.hpp"
#include "sim/engine_counters.hpp"
#include "sim/engine_crowds.hpp"
#include "sim/engine_dispatch.hpp"
#include "sim/engine_flags.hpp"
#include "sim/engine_held_loads.hpp"
#include "sim/engine_host.hpp"
#include "sim/engine_lock_step.hpp"
#include "sim/engine_luck.hpp"
#include "sim/engine_matmul_classes.hpp"
#include "sim/engine_matmuls.hpp"
#include "sim/engine_operands.hpp"
#include "sim/engine_outlook.hpp"
#include "sim/engine_resources.hpp"
#include "sim/engine_run.hpp"
#include "sim/engine_sender.hpp"
#include "sim/engine_sparse.hpp"
#include "sim/engine_streams.hpp"
#include "sim/engine_tiles.hpp"
#include "sim/engine_traffic.hpp"
#include "sim/engine_transfers.hpp"
#include "sim/engine_write_back.hpp"

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
  void index_programs();
  void find_clock(std::int32_t rank);

  // engine.cpp
  void handle(const Event& event, double now);
  void start_kernel(std::uint32_t kernel, double now);
  void start_sent(double now);
  void start_workgroup(std::uint32_t wg, double now);
  void finish_workgroup(std::uint32_t wg, double now);
  void finish_kernel(std::uint32_t kernel, double now);
  double collect_ended(double now, double same_ns);
  double collect_due(double now, double same_ns);

  // engine_result.cpp
  [[noreturn]] void report_stall(double now) const;
  SimulationResult result(double now);

  // engine_ops.cpp
  void step(std::uint32_t wg, double now);
  bool begin_op(std::uint32_t id, const Op& op, double now);
  void resume(std::uint32_t id, double now);
  void go_on_after_store(std::uint32_t id, double lost_ns, const Path* posted, double now);
  void completed(const FluidNetwork::Completion& completion, double now);

  // engine_group.cpp
  bool begins_group(const WorkgroupState& wg) const;
  void begin_group(std::uint32_t id, double now);
  void end_member(std::uint32_t id, double now);

  Run run_;
  const Luck luck_;
  LockStep lock_step_;
  WriteBack write_back_;
  SharedResources resources_;
  Dispatch dispatch_;

  // What operations load, and where data lies
  Crowds crowds_;
  TileRecords tiles_;
  FluidClasses classes_;
  DataTraffic traffic_;
  Clock clock_;
  MatmulClasses matmul_classes_;
  Attention attention_;
  Operands operands_;
  Counters counters_;

  // Hosts and flags
  CopyQueues copies_;
  Streams streams_;
  Hosts hosts_;
  Flags flags_;
  WorkQueues queues_;
  Outlook outlook_;

  // Operations of workgroups
  SparseProducts sparse_products_;
  HeldLoads held_loads_;
  Transfers transfers_;
  Sender sender_;
  Matmuls matmuls_;

  double first_start_ns_ = -1, last_end_ns_ = 0;
  std::vector<FluidNetwork::Completion> ended_;  // completions at the current time of the loop
  std::vector<EventQueue<Event>::Event> due_;    // events at the current time of the loop
  std::uint32_t ends_soon_ = 0;  // place of the next workgroup in the class of the last completion
};

}  // namespace tritax::engine

namespace tritax {
using engine::Engine;
}
