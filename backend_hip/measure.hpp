// Measuring scenario files: every schedule on the GPUs, one CSV row each.
#pragma once

#include <string>
#include <vector>

#include "backend_hip/report.hpp"

namespace tritax::gpu {

struct MeasureOptions {
  std::vector<std::string> files;  // scenario files (docs/scenarios.md)
  std::string output;     // CSV; rows are appended as they come, so that an interrupted run keeps its rows
  std::vector<int> gpus;  // instead of the files' numbers of GPUs; empty: as the files say
  std::string machine;    // whose compute units and dies shape the schedules; empty: as the files say
  std::string commit;     // written into the file's head
  std::string command;    // likewise
  std::string ops;        // CSV of times by kind of operation (model/timeline/op_table.hpp); empty: none
  std::string timelines;  // folder for a Perfetto trace of every scenario; empty: none
};

// Measures every scenario that is a GEMM + all-scatter with a pattern of tile operations, and checks every
// result. Operations and timelines come from runs of their own, with stamps. The library pattern is not run:
// its schedule models a vendor's library, which the scripts in baselines/ measure. Returns whether all
// results were right. Throws UserError for unreadable files, and for outputs that exist or cannot be written.
// A scenario that the device refuses becomes a message and no row.
bool measure_scenarios(const MeasureOptions& options, const RunOptions& run);

}  // namespace tritax::gpu
