// Microbenchmarks: launches, synchronisation, flags and bandwidths, each measured by running a tile schedule.
//
// Everything that a machine file holds about a node follows from these; none knows a workload.
//
//   launch     empty kernels: one launch and synchronisation; many in a stream; many in a graph; host barrier
//   flag       round trips between two GPUs and between two workgroups of one, by lock protocol
//   local      copy, load and store within a GPU, by workgroups
//   remote     store, load, copy and atomic addition, by workgroups and peers: one pair, all at once in order
//   and
//              rotated
//   matmul     tile time by tile, K, dtype and number of active compute units
//   contention a GEMM beside remote stores
#pragma once

#include <string>
#include <vector>

#include "backend_hip/report.hpp"

namespace tritax::gpu {

struct MicrobenchOptions {
  std::string output;             // CSV
  std::vector<std::string> only;  // groups named above; empty: all
  std::string commit;
  std::string command;
};

// Writes one row a measurement: group, name, parameters, value, unit, median and spread of the time behind
// it. Throws UserError for unknown groups (the nearest name is offered) and an output that exists or cannot
// be written. Groups that need two GPUs are left out on one, with a message.
void run_microbenchmarks(const MicrobenchOptions& options, const RunOptions& run);

}  // namespace tritax::gpu
