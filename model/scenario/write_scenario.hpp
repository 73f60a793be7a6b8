// Writes scenarios as TOML, for the reader of scenario.hpp.
#pragma once

#include <string>

#include "model/scenario/scenario.hpp"

namespace tritax {

// One [[scenario]] table: id, title if there is one, machine, workload, every field, the pattern and the
// given knobs. Reading the table gives the same scenario, except for `where`.
std::string write_scenario(const Scenario& scenario);

}  // namespace tritax
