// Operations of workgroups that move data: the rate of the transfer, and its begin; the end of a store.
//
// Transfers owns a table of rates. It starts activities in the fluid network and changes the fields of a
// workgroup for its transfers.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine_counters.hpp"
#include "sim/engine_crowds.hpp"
#include "sim/engine_held_loads.hpp"
#include "sim/engine_lock_step.hpp"
#include "sim/engine_luck.hpp"
#include "sim/engine_outlook.hpp"
#include "sim/engine_run.hpp"
#include "sim/engine_tiles.hpp"
#include "sim/engine_traffic.hpp"

namespace tritax::engine {

class Transfers {
 public:
  struct Parts {
    const Luck& luck;
    const LockStep& lock_step;
    DataTraffic& traffic;
    TileRecords& tiles;
    Crowds& crowds;
    HeldLoads& held_loads;
    Outlook& outlook;
    const Counters& counters;
  };
  Transfers(Run& run, const Parts& parts);

  // Whether an operation waits for the store in flight of its workgroup.
  bool waits_for_store(const WorkgroupState& wg, const Op& op) const;
  void begin(WorkgroupState& wg, std::uint32_t id, std::uint32_t op, double now);
  // The workgroup posts a copy, which is in flight like a store.
  void note_posted(WorkgroupState& wg, std::uint32_t op, double now);
  // The store in flight has drained.
  void end_store(WorkgroupState& wg, double now);

 private:
  double cap_of(const WorkgroupState& wg, std::uint32_t op, const DataPath& path) const;
  void note_store(WorkgroupState& wg, std::uint32_t op, const DataPath& path);
  void note_in_flight(WorkgroupState& wg, std::uint32_t op, const DataMove& move, double bytes) const;

  Run& run_;
  const Parts parts_;
  std::vector<double> busy_copy_share_;  // share of KernelCosts::busy_copy_ns, by busy compute units
};

}  // namespace tritax::engine
