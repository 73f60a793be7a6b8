// tritax tune --selector grid.json: how good the grids are that grid models choose for the problems of a
// file.
#pragma once

#include <string>
#include <vector>

#include "cli/output.hpp"
#include "model/machine/machine.hpp"
#include "model/scenario/scenario.hpp"

namespace tritax::cli {

// `models`: the file of grid models, as `tritax calibrate --grid-model` writes it; `file`: that of the
// scenarios, for titles. Throws UserError when the models cannot be read or know none of the problems.
void tune_grids(const std::string& models, const std::string& file, const std::vector<Scenario>& scenarios,
                const Machine& machine, Outputs& outputs);

}  // namespace tritax::cli
