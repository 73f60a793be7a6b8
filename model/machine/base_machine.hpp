// Reads machine files that list only differences from a base machine: `base = "mi300x-8"`. Internal: include
// it from .cpp files only, since it pulls in toml++.
//
// The base is a shipped machine, or a path relative to the file that names the base. Tables are merged key by
// key; a parameter is replaced as a whole, with unit and source. `name` is never taken from the base.
#pragma once

#include <string>

#include "model/core/toml.hpp"

namespace tritax {

// The table merged with its base, and with the base of the base; unchanged if the table names no base. Every
// node keeps its own file and line. Throws UserError for a base that does not exist and for circular bases.
toml::table with_base(toml::table root, const std::string& origin);

}  // namespace tritax
