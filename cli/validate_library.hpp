// The part of `tritax validate` that compares the library baseline with measured libraries (--library).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/output.hpp"
#include "model/machine/changes.hpp"

namespace tritax::cli {

struct ValidateLibraryOptions {
  std::vector<std::string> files;
  std::string machine;  // "": h200-4
  std::vector<ParameterChange> changes;
  bool all_rows = false;
  std::optional<int> threads;
};

// Returns the exit code.
int run_validate_library(const ValidateLibraryOptions& options, Outputs& outputs);

}  // namespace tritax::cli
