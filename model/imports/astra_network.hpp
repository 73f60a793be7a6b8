// The network file of ASTRA-sim's analytical backend; see topology.hpp.
#pragma once

#include <string>

#include "model/imports/topology.hpp"
#include "model/imports/yaml.hpp"

namespace tritax {

TopologyFile read_astra_network(const YamlPlace& root, const std::string& origin);

}  // namespace tritax
