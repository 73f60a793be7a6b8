// tritax roofline of a workload: the ceiling of the machine above its operations, and the distance to it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/output.hpp"
#include "cli/run_input.hpp"

namespace tritax::cli {

struct RunRooflineOptions {
  RunInputOptions run_input;
  std::optional<std::int64_t> seed;
  std::string plot;  // "" for none
};

// Simulates the single run of the options; returns the exit code of the program.
int show_run_roofline(const RunRooflineOptions& options, const OutputOptions& output);

}  // namespace tritax::cli
