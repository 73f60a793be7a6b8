// Reads scenarios from TOML tables. Internal: include it from .cpp files only, since it pulls in toml++.
#pragma once

#include "model/core/toml.hpp"

#include <string>
#include <vector>

#include "model/scenario/scenario.hpp"

namespace tritax {

// The scenarios that one table describes: one, or one per pattern if `pattern` is a list (ids end in
// "/pattern"). A key is taken from the first table of `chain` that has it. Throws UserError.
std::vector<Scenario> scenarios_from_tables(std::vector<const toml::table*> chain, const std::string& origin);

}  // namespace tritax
