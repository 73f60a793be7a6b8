// Options of the measuring programs: `tritax-gpu`, and `tritax measure`. Plain host code, so that both have
// the options with and without a GPU backend.
#pragma once

#include <string>

#include "backend_hip/measure.hpp"
#include "backend_hip/report.hpp"

namespace CLI {
class App;
}

namespace tritax::gpu {

// Options of runs: --repeat, --warmup, --seed, --spin-limit, --pace, --flush.
void add_run_options(CLI::App& command, RunOptions& run);

// Options of commands that compare with the reference only on request: --check, and --checks, which is
// refused without --check.
void add_check_options(CLI::App& command, RunOptions& run);

// Options of a vendor's library on the problems of scenarios: SCENARIO…, --id, --output, --machine, --commit,
// --repeat, --warmup, --seed, --flush. Other options of schedules do not apply to a library call and are
// unknown.
void add_library_options(CLI::App& command, MeasureOptions& options, RunOptions& run);

// SCENARIO…, --id, --output, --gpus, --machine, --commit, --ops, --timeline, the options of add_run_options,
// and --checks, because every result is compared.
void add_measure_options(CLI::App& command, MeasureOptions& options, RunOptions& run);

// The command line of this process, for the heads of files.
std::string command_line();

}  // namespace tritax::gpu
