// Microbenchmarks: launches, synchronisation, flags and bandwidths, each measured by running a tile schedule.
//
// model/microbench/cases.hpp lists the cases and explains them.
#pragma once

#include <string>
#include <vector>

#include "backend_hip/report.hpp"

namespace tritax::gpu {

struct MicrobenchOptions {
  std::string output;             // CSV
  std::vector<std::string> only;  // groups of model/microbench/cases.hpp; empty: all
  std::string commit;
  std::string command;
};

// Writes one row per measurement: group, name, parameters, value, unit, median and spread of the underlying
// time. Throws UserError for unknown groups (the nearest name is offered), and for an output that exists or
// cannot be written. Cases that need two GPUs are left out on one GPU, with a message.
void run_microbenchmarks(const MicrobenchOptions& options, const RunOptions& run);

}  // namespace tritax::gpu
