// The levels of the matrix kernels of a schedule.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/parts/levels/levels.hpp"

namespace tritax {

struct KernelLevels {
  std::string kernel;  // name of the first kernel with such tiles
  KernelProfile profile = KernelProfile::interpreter;
  DType dtype = DType::fp16;
  MatmulTile tile;
  bool attends = false;
  std::optional<Levels> levels;
  std::string refusal;  // why there are none
};

// One row for each combination of type, tile, waves, pipeline and profile with which kernels of the schedule
// multiply, in order of first use. Empty for a schedule without products.
std::vector<KernelLevels> levels_of(const Schedule& schedule, const Machine& machine);

}  // namespace tritax
