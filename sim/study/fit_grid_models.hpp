// Grid models (model/cost/grid_model.hpp) from runs: rows written by `tritax measure`, or simulated
// scenarios.
//
// Times are kernel times, from the first workgroup to the end of the last, so `a` contains no launch from the
// host. Runs of one pattern and one dtype that differ only in the grid make one model.
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
  std::string option;  // the pattern with its knobs, without the grid
  DType dtype = DType::fp16;
  GridRun run;
};

struct GridSamples {
  std::vector<GridSample> samples;
  std::size_t left_out = 0;  // runs that share otherwise, or have more workgroups than compute units
};

// Times by the device's clock. Throws UserError, with the row's place, for rows that the machine refuses.
GridSamples measured_grid_samples(const std::vector<MeasuredScenario>& rows, const Machine& machine);

// A scenario without a grid runs with the powers of two up to one workgroup per compute unit, with three
// quarters of the compute units, and with all. Throws UserError, with the scenario's place, for scenarios
// that the machine refuses.
GridSamples simulated_grid_samples(const std::vector<Scenario>& scenarios, const Machine& machine,
                                   const ParallelOptions& options);

struct FittedGridModels {
  GridModels models;
  std::vector<std::string> undecided;  // "stream-k tile=64x64x64 in bf16: …": runs decide no model
};

// Throws UserError if the samples belong to several workloads, or if no model is decided.
FittedGridModels fit_grid_models(const std::vector<GridSample>& samples, const Machine& machine);

}  // namespace tritax
