// Classes of running matmuls: the resources that they load, and their rates, which follow the clock.
//
// MatmulClasses owns the matmul of each class, and the classes of each GPU. It adds classes to the fluid
// network and changes the caps of its classes.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine_classes.hpp"
#include "sim/engine_clock.hpp"
#include "sim/engine_resources.hpp"
#include "sim/engine_run.hpp"
#include "sim/engine_traffic.hpp"
#include "sim/engine_write_back.hpp"

namespace tritax::engine {

class MatmulClasses {
 public:
  MatmulClasses(Run& run, const SharedResources& resources, const DataTraffic& traffic,
                const WriteBack& write_back, const Clock& clock, FluidClasses& classes)
      : run_(run),
        resources_(resources),
        traffic_(traffic),
        write_back_(write_back),
        clock_(clock),
        classes_(classes),
        gpus_(run.gpus.size()) {}

  std::int32_t class_of(std::int32_t rank, std::int32_t die, std::uint32_t shape, std::int32_t sharers,
                        const Missed& missed, std::uint32_t coalesced);
  // The rates of the running matmuls of a GPU follow its clock.
  void follow_clock(std::int32_t rank);

 private:
  struct Matmul {
    std::uint32_t shape = 0;
    std::int32_t sharers = 1;
    Missed missed;
  };
  struct OfGpu {
    bool l2_can_fill = true;            // for any L2, at the present clock: each die has its own classes
    std::vector<std::int32_t> classes;  // their caps follow the clock
  };
  OfGpu& of_gpu(std::int32_t rank) { return gpus_[static_cast<std::size_t>(rank)]; }
  double cap_of(const Matmul& matmul, const GpuState& gpu) const;
  bool l2_can_fill(const GpuState& gpu) const;
  std::vector<FluidNetwork::Use> uses_of(std::int32_t rank, std::int32_t die, const Matmul& matmul,
                                         std::uint32_t coalesced) const;

  Run& run_;
  const SharedResources& resources_;
  const DataTraffic& traffic_;
  const WriteBack& write_back_;
  const Clock& clock_;
  FluidClasses& classes_;
  std::vector<OfGpu> gpus_;      // by rank
  std::vector<Matmul> matmuls_;  // by class
};

}  // namespace tritax::engine
