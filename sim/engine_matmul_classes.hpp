// Classes of running matmuls: the resources that they load, and their rates, which follow the clock.
//
// MatmulClasses owns the matmul of each class. It adds classes, changes the caps of its classes, and says in
// GpuState::l2_can_fill whether the dies of a GPU have classes of their own.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine_classes.hpp"
#include "sim/engine_clock.hpp"
#include "sim/engine_resources.hpp"
#include "sim/engine_run.hpp"
#include "sim/engine_write_back.hpp"

namespace tritax::engine {

class MatmulClasses {
 public:
  MatmulClasses(Run& run, const SharedResources& resources, const WriteBack& write_back, const Clock& clock,
                FluidClasses& classes)
      : run_(run), resources_(resources), write_back_(write_back), clock_(clock), classes_(classes) {}

  std::int32_t class_of(std::int32_t rank, std::int32_t die, std::uint32_t shape, std::int32_t sharers,
                        const Missed& missed, std::uint32_t coalesced);
  // The rates of the running matmuls of a GPU follow its clock.
  void follow_clock(GpuState& gpu);

 private:
  struct Matmul {
    std::uint32_t shape = 0;
    std::int32_t sharers = 1;
    Missed missed;
  };
  double cap_of(const Matmul& matmul, const GpuState& gpu) const;
  bool l2_can_fill(const GpuState& gpu) const;
  std::vector<FluidNetwork::Use> uses_of(const GpuState& gpu, std::int32_t die, const Matmul& matmul,
                                         std::uint32_t coalesced) const;

  Run& run_;
  const SharedResources& resources_;
  const WriteBack& write_back_;
  const Clock& clock_;
  FluidClasses& classes_;
  std::vector<Matmul> matmuls_;  // by class
};

}  // namespace tritax::engine
