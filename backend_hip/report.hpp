// Measuring a schedule and saying what came out.
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
  int checks = 1;  // runs that are compared, each on fresh data
  std::uint64_t seed = 1;
  bool stamps = false;  // also make the timeline of a run
};

struct Spread {
  double median = 0;
  double p10 = 0;
  double p90 = 0;
};

// Quantiles by linear interpolation; throws nothing, zeros for no samples.
Spread spread_of(const std::vector<double>& samples);

// One run with stamps: of several, the one with the median device time.
struct StampedRun {
  Timeline timeline;
  double device_us = 0;       // of the slowest rank; more than without stamps is what they cost
  double clock_error_us = 0;  // how far the aligned clocks of two GPUs may be apart
};

struct Measurement {
  Spread wall_us;
  Spread device_us;               // of the slowest rank
  Spread host_us;                 // the wall time less that, run by run
  std::vector<Spread> kernel_us;  // of every kernel, as Schedule::kernels
  std::vector<Spread> clock_ghz;  // likewise: the mean clock while it ran
  int runs = 0;                   // behind these numbers
  bool right = true;              // the check passed, or was not asked for
  double relative_error = 0;      // the largest of the checked runs; NaN or infinite if elements are
  int checks = 0;                 // runs that were compared
  std::optional<StampedRun> stamped;
};

// The seed of the data of a checked run, which are counted from 0. Scenarios of a file have consecutive
// seeds, none of which comes again.
constexpr std::uint64_t seed_of_check(std::uint64_t seed, int check) {
  return seed + static_cast<std::uint64_t>(check) * 100'003;
}

// Runs `schedule` and prints times and errors to standard output. Every checked run has data of its own
// (seed_of_check). Throws what Executor throws.
Measurement measure(const Schedule& schedule, const RunOptions& options);

// "2026-11-21, NVIDIA H200 x 4, driver 580.159.04, CUDA driver 13.0, …": what a measurement must say about
// itself.
std::string measurement_place();

// Writes the timeline of `run` as a Perfetto trace. The file appears whole or not at all. Throws UserError
// when it cannot be written.
void write_timeline(const Schedule& schedule, const StampedRun& run, const std::string& path);

}  // namespace tritax::gpu
