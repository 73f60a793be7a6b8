// The clock of the matrix cores, and how fast matmuls are at it. Owns the classes of matmuls, whose caps
// follow the clock; touches the power and the clock of GPUs, and those caps.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/engine_run.hpp"

namespace tritax::engine {

class Clock {
 public:
  explicit Clock(Run& run) : run_(run) {}

  // Before the run: no GPU's clock exceeds its own of these, in GHz; by rank.
  void limit(std::span<const double> most_ghz);
  void find_factors(GpuState& gpu) const;

  // The clock that a GPU's matrix cores have now, relative to load_clock.
  static double factor(const GpuState& gpu, DType dtype) {
    return gpu.clock_factors[static_cast<std::size_t>(dtype)];
  }
  double most_factor(const GpuState& gpu, DType dtype) const;
  double slowest_ghz(const GpuState& gpu) const;

  void begin_power(WorkgroupState& wg, const MatmulShape& shape, double clk, double missed_bytes);
  void end_power(const WorkgroupState& wg);
  void update(std::int32_t rank);

  double matmul_cap(const MatmulClass& c, const GpuState& gpu) const;
  // A class of the fluid network whose cap follows the clock of `gpu` from now on.
  void add_class(std::int32_t id, const MatmulClass& matmul, GpuState& gpu);

 private:
  double clock_at(const GpuState& gpu, DType dtype, double power) const;
  double find_factor(const GpuState& gpu, DType dtype) const;
  bool l2_can_fill(const GpuState& gpu) const;
  void apply(GpuState& gpu);

  Run& run_;
  std::vector<MatmulClass> matmul_class_;  // by class
};

}  // namespace tritax::engine
