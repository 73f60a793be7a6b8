// Operand loads that wait behind stores of their workgroup; engine_held_loads.cpp has the measurements.
//
// HeldLoads owns no state: a workgroup and its sender carry what has been held up. It changes only that, and
// wakes a waiting matmul by an event of the loop.
#pragma once

#include <cstdint>

#include "sim/engine_run.hpp"

namespace tritax::engine {

class HeldLoads {
 public:
  explicit HeldLoads(Run& run) : run_(run) {}

  // Counts how long the store in flight has waited up to now.
  void note_store_wait(WorkgroupState& wg, double now);
  // A matmul has all operands except those that stores held up; true if waiting for them takes time.
  bool holds_up_matmul(std::uint32_t id, double now);
  // The delayed loads of the waiting matmul have arrived beside the stores, unless stores left before.
  void delayed_loads_arrived(std::uint32_t id, double now);
  // The store that delayed the loads of a waiting matmul has left, and another may have begun.
  void resume_loads(std::uint32_t id, double now);
  // Whether nobody waits for the event any longer.
  bool is_stale(const Event& event) const {
    return event.kind == EventKind::delayed_loads_arrived &&
           run_.workgroups[event.id].waiting != Waiting::loads;
  }

 private:
  bool keeps_loads_waiting(const WorkgroupState& wg) const;
  void load_the_rest(std::uint32_t id, double now);

  Run& run_;
};

}  // namespace tritax::engine
