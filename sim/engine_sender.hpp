// Stores beside the matmuls of their workgroup: waves of their own, the sender, store tiles from a staging
// area and raise flags.
//
// Sender owns no state: Run has a SenderState for each workgroup. It changes that and the workgroup, and
// begins stores and signals. It runs no operation of the workgroup itself: the functions that let the
// workgroup go on say so.
#pragma once

#include <cstdint>

#include "sim/engine_flags.hpp"
#include "sim/engine_held_loads.hpp"
#include "sim/engine_run.hpp"
#include "sim/engine_transfers.hpp"

namespace tritax::engine {

class Sender {
 public:
  Sender(Run& run, Flags& flags, Transfers& transfers, HeldLoads& held_loads)
      : run_(run), flags_(flags), transfers_(transfers), held_loads_(held_loads) {}

  // Whether an operation of a workgroup with a sender has to wait for it.
  bool keeps_waiting(const WorkgroupState& wg, const Op& op) const;
  bool stages_or_passes(std::uint32_t id, const Op& op, double now);
  // The staging that stages_or_passes() began has ended.
  void tile_staged(std::uint32_t id, double now);
  void hand_over(std::uint32_t id, double now);
  // The release of a signal has ended, or a store has drained; true if the workgroup goes on.
  bool signal_ended(std::uint32_t id, double now);
  bool store_ended(std::uint32_t id, double lost_ns, double now);

 private:
  bool staging_in_use(const WorkgroupState& wg) const;
  void start_next(std::uint32_t id, double now);
  bool progressed(std::uint32_t id, double now);

  Run& run_;
  Flags& flags_;
  Transfers& transfers_;
  HeldLoads& held_loads_;
};

}  // namespace tritax::engine
