// tritax roofline of a workload: which ceiling of the machine its operations lie under, and how far below.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/output.hpp"
#include "cli/subject.hpp"

namespace tritax::cli {

struct RunRooflineOptions {
  SubjectOptions subject;
  std::optional<std::int64_t> seed;
  std::string plot;  // "" for none
};

// Simulates the one run that the options name; the exit code of the program.
int show_run_roofline(const RunRooflineOptions& options, const OutputOptions& output);

}  // namespace tritax::cli
