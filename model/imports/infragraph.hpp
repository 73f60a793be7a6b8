// Infrastructure as a graph; see topology.hpp. Form: Keysight/infragraph, docs/src/examples and yaml.
#pragma once

#include <string>

#include "model/imports/topology.hpp"
#include "model/imports/yaml.hpp"

namespace tritax {

// `link`: the name of the link that joins the GPUs of a node, or "".
TopologyFile read_infragraph(const YamlPlace& root, const std::string& origin, const std::string& link);

}  // namespace tritax
