// The part of `tritax validate` that compares tile operations by kind (--ops).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/output.hpp"
#include "model/scenario/scenario.hpp"

namespace tritax::cli {

struct ValidateOpsOptions {
  std::vector<std::string> files;
  std::string machine;
  bool all_rows = false;
  std::optional<int> threads;
};

// Returns the exit code.
int run_validate_ops(const ValidateOpsOptions& options, const std::vector<Scenario>& scenarios,
                     Outputs& outputs);

}  // namespace tritax::cli
