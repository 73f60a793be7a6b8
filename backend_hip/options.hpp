// Options of the programs that measure: `tritax-gpu`, and `tritax measure`. Plain host code, so that both
// know them with and without a GPU backend.
#pragma once

#include <string>

#include "backend_hip/measure.hpp"
#include "backend_hip/report.hpp"

namespace CLI {
class App;
}

namespace tritax::gpu {

// How schedules are run: --repeat, --warmup, --seed, --spin-limit, --pace, --flush.
void add_run_options(CLI::App& command, RunOptions& run);

// Of commands that compare with the reference only if they are asked to: --check, and --checks, which is
// refused without it.
void add_check_options(CLI::App& command, RunOptions& run);

// Of a vendor's library on the problems of scenarios: SCENARIO…, --id, --output, --machine, --commit,
// --repeat, --warmup, --seed, --flush. What else schedules have no call of a library has: such options are
// unknown to it.
void add_library_options(CLI::App& command, MeasureOptions& options, RunOptions& run);

// SCENARIO…, --id, --output, --gpus, --machine, --commit, --ops, --timeline, those of add_run_options, and
// --checks: here every result is compared.
void add_measure_options(CLI::App& command, MeasureOptions& options, RunOptions& run);

// The command line of this process, for the heads of files.
std::string command_line();

}  // namespace tritax::gpu
