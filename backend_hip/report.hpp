// Measures a schedule and reports the results.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backend_hip/executor.hpp"
#include "model/timeline/timeline.hpp"

namespace tritax::gpu {

struct RunOptions {
  ExecutorOptions executor;
  int warmup = 3;
  int repeats = 30;    // at most; see measure()
  bool quiet = false;  // print nothing
  bool check = false;
  int checks = 1;  // compared runs, each on fresh data
  std::uint64_t seed = 1;
  bool stamps = false;  // whether to make the timeline of a run too
};

struct Spread {
  double median = 0;
  double p10 = 0;
  double p90 = 0;
};

// Quantiles by linear interpolation; zeros for no samples.
Spread spread_of(const std::vector<double>& samples);

// One run with stamps: the run with the median device time of several.
struct StampedRun {
  Timeline timeline;
  double device_us = 0;       // of the slowest rank; the excess over a run without stamps is their cost
  double clock_error_us = 0;  // largest misalignment between the clocks of two GPUs
};

struct Measurement {
  Spread wall_us;
  Spread device_us;               // of the slowest rank
  Spread host_us;                 // the wall time less the device time, per run
  std::vector<Spread> kernel_us;  // per kernel, as Schedule::kernels
  std::vector<Spread> clock_ghz;  // per kernel: the mean clock during its run
  int runs = 0;                   // number of runs behind these times
  bool right = true;              // the check passed, or was not asked for
  double relative_error = 0;      // largest error of the checked runs; NaN or infinite if elements are
  int checks = 0;                 // number of compared runs
  std::optional<StampedRun> stamped;
};

// Seed of the data of checked run `check`, counted from 0. Scenarios of a file have consecutive seeds; no
// seed is repeated.
constexpr std::uint64_t seed_of_check(std::uint64_t seed, int check) {
  return seed + static_cast<std::uint64_t>(check) * 100'003;
}

// Runs `schedule` and prints times and errors to standard output. Every checked run has separate data
// (seed_of_check). Throws the errors of Executor.
Measurement measure(const Schedule& schedule, const RunOptions& options);

// "2026-11-21, NVIDIA H200 x 4, driver 580.159.04, CUDA driver 13.0, …": the provenance of a measurement.
std::string measurement_place();

// Writes the timeline of `run` as a Perfetto trace. The file appears complete or not at all. Throws UserError
// when it cannot be written.
void write_timeline(const Schedule& schedule, const StampedRun& run, const std::string& path);

}  // namespace tritax::gpu
