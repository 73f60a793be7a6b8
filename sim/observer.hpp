// Interface for observers of a simulation: the start and end of every operation, in simulated order.
//
// The timeline, the functional executor and the progress bar are observers; the simulator knows none of them.
#pragma once

#include <cstdint>

#include "model/timeline/timeline.hpp"

namespace tritax {

class SimulationObserver {
 public:
  virtual ~SimulationObserver() = default;
  // An operation reads its inputs at its start, and its outputs are visible at its end. The end of a `wait`
  // is the time at which the flag was seen; the end of a `store` or `copy` is the arrival of the data at the
  // destination.
  virtual void op_started(const OpPlace& /*place*/, double /*time_ns*/) {}
  virtual void op_finished(const OpPlace& /*place*/, double /*time_ns*/) {}
  virtual void kernel_started(std::uint32_t /*kernel*/, double /*time_ns*/) {}
  virtual void kernel_finished(std::uint32_t /*kernel*/, double /*time_ns*/) {}
  virtual void host_op_started(int /*rank*/, std::uint32_t /*host_op*/, double /*time_ns*/) {}
  virtual void host_op_finished(int /*rank*/, std::uint32_t /*host_op*/, double /*time_ns*/) {}
  // A copy by a copy engine of a GPU: from the start on the engine to the arrival of the data at the
  // destination.
  virtual void copy_started(int /*rank*/, std::uint32_t /*host_op*/, int /*engine*/, double /*time_ns*/) {}
  virtual void copy_finished(int /*rank*/, std::uint32_t /*host_op*/, double /*time_ns*/) {}
  // Load of one link direction, protocol overhead included, at each change (only if link counters are
  // requested).
  virtual void link_rate(int /*edge*/, double /*time_ns*/, double /*gb_per_s*/) {}
};

}  // namespace tritax
