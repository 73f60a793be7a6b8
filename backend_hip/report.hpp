// Measuring a schedule and saying what came out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend_hip/executor.hpp"

namespace tritax::gpu {

struct RunOptions {
  ExecutorOptions executor;
  int warmup = 3;
  int repeats = 30;    // at most; see measure()
  bool quiet = false;  // print nothing
  bool check = false;
  std::uint64_t seed = 1;
  std::string stamps_file;  // empty: none
};

struct Spread {
  double median = 0;
  double p10 = 0;
  double p90 = 0;
};

// Quantiles by linear interpolation; throws nothing, zeros for no samples.
Spread spread_of(std::vector<double> samples);

struct Measurement {
  Spread wall_us;
  Spread device_us;               // of the slowest rank
  std::vector<Spread> kernel_us;  // of every kernel, as Schedule::kernels
  int runs = 0;                   // behind these numbers
  bool right = true;              // the check passed, or was not asked for
  double relative_error = 0;
  double stamped_device_us = 0;  // of the run with stamps, 0: none
};

// Runs `schedule` and prints times and errors to standard output. The data of the check is fresh in every
// call with another seed. Throws what Executor throws, and UserError when the stamps file cannot be written.
Measurement measure(const Schedule& schedule, const RunOptions& options);

}  // namespace tritax::gpu
