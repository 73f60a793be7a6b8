// tritax tune --selector grid.json: scores the grids that grid models choose for the problems of a file.
#pragma once

#include <string>
#include <vector>

#include "cli/output.hpp"
#include "model/machine/machine.hpp"
#include "model/scenario/scenario.hpp"

namespace tritax::cli {

// `models`: the file of grid models, as `tritax calibrate --grid-model` writes it; `file`: the file of the
// scenarios, for titles. Throws UserError when the models cannot be read, or cover none of the problems.
void tune_grids(const std::string& models, const std::string& file, const std::vector<Scenario>& scenarios,
                const Machine& machine, Outputs& outputs);

}  // namespace tritax::cli
