// Machine files that say only what differs: `base = "mi300x-8"`. Internal: include it from .cpp files only,
// since it pulls in toml++.
//
// The base is a shipped machine, or a file beside the one that names it. Tables are merged key by key; a
// parameter is replaced as a whole, with unit and source. `name` is the file's own.
#pragma once

#include <string>

#include "model/core/toml.hpp"

namespace tritax {

// The table with its base, and that one's base, filled in; unchanged if it names none. Every node keeps the
// file and line that it stands at. Throws UserError for a base that does not exist or goes round in a circle.
toml::table with_base(toml::table root, const std::string& origin);

}  // namespace tritax
