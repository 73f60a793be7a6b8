// Grid models (model/cost/grid_model.hpp) from runs: rows that `tritax measure` wrote, or scenarios that are
// simulated.
//
// Times are those of the kernels, from the first workgroup to the end of the last, so `a` has no launch from
// the host in it. Runs of one pattern with equal knobs but the grid, and of one dtype, make one model.
#pragma once

#include <string>
#include <vector>

#include "model/machine/machine.hpp"
#include "model/scenario/scenario.hpp"
#include "model/select/select_by_grid_model.hpp"
#include "sim/study/in_parallel.hpp"
#include "sim/study/validate.hpp"

namespace tritax {

struct GridSample {
  std::string workload;
  std::string option;  // the pattern with its knobs, the grid left out
  DType dtype = DType::fp16;
  GridRun run;
};

struct GridSamples {
  std::vector<GridSample> samples;
  std::size_t left_out = 0;  // runs that share otherwise, or that have more workgroups than compute units
};

// By the device's clock. Throws UserError, with the row's place, for what the machine refuses.
GridSamples measured_grid_samples(const std::vector<MeasuredScenario>& rows, const Machine& machine);

// Scenarios that say no grid run with the powers of two of up to one workgroup a compute unit, with three
// quarters of that, and with all. Throws UserError, with the scenario's place, for what the machine refuses.
GridSamples simulated_grid_samples(const std::vector<Scenario>& scenarios, const Machine& machine,
                                   const ParallelOptions& options);

struct FittedGridModels {
  GridModels models;
  std::vector<std::string> undecided;  // "stream-k tile=64x64x64 in bf16: …", whose runs decide no model
};

// Throws UserError when the samples are of several workloads, and when no model is decided.
FittedGridModels fit_grid_models(const std::vector<GridSample>& samples, const Machine& machine);

}  // namespace tritax
