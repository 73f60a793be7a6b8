// Matmuls and attends of workgroups: begin, the wait for the last operands, and end.
//
// Matmuls owns the loads of operands of peers that several matmuls of a die share. It starts activities in
// the fluid network, and changes the fields of a workgroup for its matmul and the count of busy compute units
// of a GPU.
#pragma once

#include <boost/unordered_map.hpp>
#include <cstdint>

#include "sim/engine_attend.hpp"
#include "sim/engine_clock.hpp"
#include "sim/engine_counters.hpp"
#include "sim/engine_held_loads.hpp"
#include "sim/engine_lock_step.hpp"
#include "sim/engine_matmul_classes.hpp"
#include "sim/engine_operands.hpp"
#include "sim/engine_outlook.hpp"
#include "sim/engine_run.hpp"

namespace tritax::engine {

class Matmuls {
 public:
  struct Parts {
    LockStep& lock_step;
    Clock& clock;
    MatmulClasses& classes;
    Operands& operands;
    Attention& attention;
    HeldLoads& held_loads;
    Outlook& outlook;
    const Counters& counters;
  };
  Matmuls(Run& run, const Parts& parts) : run_(run), parts_(parts) {}

  void begin(WorkgroupState& wg, std::uint32_t id, double now);
  // The activity of a matmul has ended: true if it still lacks operands that another matmul fetches, or that
  // stores hold up, and waiting for them takes time.
  bool lacks_operands(std::uint32_t id, double now);
  // Charges the computing of a matmul whose A comes over links, before the rest of its time.
  void charge_computing(WorkgroupState& wg, double now) const;
  void end(WorkgroupState& wg, std::uint32_t id, const Op& op, double now);

 private:
  void join_peer_load(WorkgroupState& wg, std::uint32_t slab, bool loads, double now);
  bool awaits_peer_load(WorkgroupState& wg, std::uint32_t id);
  void end_peer_load(WorkgroupState& wg, double now);
  void count_cu(GpuState& gpu, std::int32_t cu, std::int32_t change, double now);

  Run& run_;
  const Parts parts_;
  boost::unordered_map<std::uint64_t, PeerLoad> peer_loads_;  // by rank, die and slab; entries never move
};

}  // namespace tritax::engine
