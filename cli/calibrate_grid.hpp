// `tritax calibrate --grid-model`: fits the four constants of grid models to runs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/output.hpp"
#include "model/machine/machine.hpp"

namespace tritax::cli {

struct GridCalibration {
  std::vector<std::string> files;  // CSV of `tritax measure`, or scenarios (TOML, or a shipped name)
  std::string output;              // the models (JSON); "-": standard output
  std::string machine;             // machine in the names of the models
  std::optional<int> threads;
  OutputOptions tables;
};

// Prints and writes the models. Throws UserError.
void calibrate_grid_models(const GridCalibration& asked, const Machine& machine);

}  // namespace tritax::cli
