// The fields of a simulated run and of its GPUs (sim/simulate.hpp).
#pragma once

#include <string>

#include "model/core/fields.hpp"
#include "sim/simulate.hpp"

namespace tritax {

const Fields<SimulationResult>& run_fields();

// One GPU, as shown in JSON and Python.
struct RankedResult {
  std::size_t rank = 0;
  const RankResult* result = nullptr;
};
const Fields<RankedResult>& rank_fields();

// One line of the table of GPUs: a GPU, several equal GPUs, or the node.
struct GpuLine {
  std::string gpu;
  double makespan_ns = 0;
  double kernels_ns = 0;
  double busy_percent = 0;
  TimeAccount account;
};
const Fields<GpuLine>& gpu_line_fields();

}  // namespace tritax
