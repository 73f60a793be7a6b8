// Reads [[doubt]] of a machine file. Internal: include it from .cpp files only, since it
// pulls in toml++.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "model/core/toml.hpp"
#include "model/machine/doubt.hpp"

namespace tritax {

// Throws UserError about a node, with the key and the problem.
using Refuse = std::function<void(const toml::node&, const std::string& key, const std::string& problem)>;

std::vector<Doubt> read_doubts(const toml::table& root, const Refuse& refuse);

}  // namespace tritax
