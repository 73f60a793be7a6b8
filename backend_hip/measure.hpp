// Measuring scenario files: every schedule on the GPUs, one CSV row each.
#pragma once

#include <string>

#include "backend_hip/report.hpp"
#include "backend_hip/selection.hpp"

namespace tritax::gpu {

struct MeasureOptions {
  Selection selection;
  std::string output;     // CSV; rows are appended one by one, so that an interrupted run keeps its rows
  std::string commit;     // for the head of the file
  std::string command;    // for the head of the file
  std::string ops;        // CSV of times by kind of operation (model/timeline/op_table.hpp); empty: none
  std::string timelines;  // folder for a Perfetto trace of every scenario; empty: none
};

// Measures every scenario and checks every result. Operations and timelines come from separate runs, with
// stamps. Returns whether all results were correct. Throws the errors of select_scenarios, and UserError for
// outputs that exist or cannot be written. A scenario that the device refuses gives a message instead of a
// row.
bool measure_scenarios(const MeasureOptions& options, const RunOptions& run);

}  // namespace tritax::gpu
