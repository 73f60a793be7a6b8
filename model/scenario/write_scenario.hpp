// Scenarios as TOML, for the reader of scenario.hpp.
#pragma once

#include <string>

#include "model/scenario/scenario.hpp"

namespace tritax {

// One [[scenario]] table: id, title if there is one, machine, workload, every field, the pattern and the
// knobs that were given. Read again it is the same scenario, but for `where`.
std::string write_scenario(const Scenario& scenario);

}  // namespace tritax
