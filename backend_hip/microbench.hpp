// Microbenchmarks: launches, synchronisation, flags and bandwidths, each measured by running a tile schedule.
//
// Which ones, and what they say, stands in model/microbench/cases.hpp.
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

// Writes one row a measurement: group, name, parameters, value, unit, median and spread of the time behind
// it. Throws UserError for unknown groups (the nearest name is offered) and an output that exists or cannot
// be written. What needs two GPUs is left out on one, with a message.
void run_microbenchmarks(const MicrobenchOptions& options, const RunOptions& run);

}  // namespace tritax::gpu
