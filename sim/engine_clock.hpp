// The clock of the matrix cores under the power limit; engine_clock.cpp has the law.
//
// Clock owns no state of its own. It alone changes the draw and the clocks in GpuState: power, clock_share
// and clock_factors. It does not know the activities whose rates follow from the clock: the caller of a
// function that changes the clock passes the change on to them.
#pragma once

#include "sim/engine_run.hpp"

namespace tritax::engine {

class Clock {
 public:
  explicit Clock(Run& run) : run_(run) {}

  // The present clock of a GPU's matrix cores, relative to load_clock.
  static double factor(const GpuState& gpu, DType dtype) {
    return gpu.clock_factors[static_cast<std::size_t>(dtype)];
  }
  double most_factor(const GpuState& gpu, DType dtype) const;
  double slowest_ghz(const GpuState& gpu) const;

  // Before the run.
  void find_factors(GpuState& gpu) const;
  // The power that a matmul of a workgroup draws, from its begin to its end.
  void begin_draw(WorkgroupState& wg, const MatmulShape& shape, double clk, double missed_bytes);
  void end_draw(const WorkgroupState& wg);
  // After matmuls have begun or ended; true if the clock changes.
  bool update(GpuState& gpu);

 private:
  double at_draw_ghz(const GpuState& gpu, DType dtype, double power) const;
  double find_factor(const GpuState& gpu, DType dtype) const;
  void apply(GpuState& gpu);

  Run& run_;
};

}  // namespace tritax::engine
