// What a topology file of another tool says of nodes, GPUs and links, and the machine that it gives.
//
//   ASTRA-sim    network file of its analytical backend (astra-sim/astra-sim, examples/network/analytical):
//                topology, npus_count, bandwidth in GB/s and latency in ns, an entry a dimension. The first
//                dimension is the node, FullyConnected or Switch, a second one, Switch, what joins nodes.
//                Bandwidth is of one direction of a link; through a switch it is a GPU's port, and the
//                latency is passed twice, as in that backend.
//   InfraGraph   infrastructure as a graph (Keysight/infragraph): devices with components, links and edges,
//                and instances. The device with components "npu" or "xpu" is the node. Its GPUs are joined by
//                the link of the edges from GPUs to GPUs (a mesh), else by that of edges from all of them to
//                switches. Bandwidth is of one direction; a link to each of several switches adds up to a
//                port.
//
// A topology file says little: the rest is that of a base machine, and every parameter's source tells which.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/machine/changes.hpp"
#include "model/machine/machine.hpp"

namespace tritax {

struct TopologyValue {
  double value = 0;    // GB/s of one direction, or ns
  std::string source;  // "network.yml:3: bandwidth[0]"
};

struct TopologyFile {
  std::string file;
  std::string_view form;  // "ASTRA-sim", "InfraGraph"
  LinkKind kind = LinkKind::mesh;
  std::string kind_source;
  int nodes = 1;
  int gpus_per_node = 1;
  std::string size_source;
  std::optional<TopologyValue> link;  // of a mesh one link, else a GPU's port
  std::optional<TopologyValue> link_latency;
  std::optional<TopologyValue> network;  // a GPU's port between nodes
  std::optional<TopologyValue> network_latency;
};

// `link`: which link of an InfraGraph device joins its GPUs, "" where only one can. Throws UserError with
// file, line, key, value and what is allowed: no YAML or JSON, neither form, what no machine can be, a link
// that has to be named.
TopologyFile read_topology_file(const std::string& path, const std::string& link);
TopologyFile parse_topology_file(const std::string& text, const std::string& origin, const std::string& link);

// The base with what the file says, and `changes`, which say what neither does. What follows from a link's
// rate stays in proportion (changes.hpp), and latencies of
// what crosses the link, loads and flags, get the difference between its latency and the base's. Throws
// UserError: a base with links of another kind, nodes without a network, a machine that makes no sense.
Machine machine_of(const TopologyFile& topology, const Machine& base, const std::string& name,
                   std::span<const ParameterChange> changes);

}  // namespace tritax
