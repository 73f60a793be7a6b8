// Describes the links between the GPUs of a machine as a directed Boost.Graph graph, with the routes over the
// links.
//
// Vertices are GPUs, switches and NICs; an edge is one direction of a link with its raw rate.
//
//   within a node   mesh    an edge for every ordered pair of GPUs: routes of one
//                   switch  a port from each GPU to the switch and back: routes of two
//                   ring    an edge to each neighbour; a route takes the shorter way, upwards if both are
//                           equal, and shares its edges with all other routes over them
//   between nodes   GPU -> port -> leaf -> port -> GPU, and leaf -> spine -> leaf in the middle where
//                   the ports (NICs) hang on different leaves. A leaf is
//                     switch    the only one: all hang on it, and it never limits
//                     rails     of NIC i of every node, or of every `nodes_per_leaf`
//                     fat tree  of all NICs of `nodes_per_leaf` nodes
//                   It passes `uplink_share` of what its NICs send on to the spine, and as much back.
//
// Not modelled: messages of a GPU always take the GPU's own NIC; no message goes through another GPU of the
// node first to stay on its rail (as NCCL's PXN does). A spine is never full.
//
// Example: 2 nodes of 2 GPUs on rails at 50 GB/s. The route 0 -> 2 is gpu0, port0, rail0, port2, gpu2, each
// link 50 GB/s. The route 0 -> 3 goes from rail0 through the spine to rail1, over uplinks of 2 NICs · 50 GB/s
// · uplink_share.
#pragma once

#include <boost/graph/adjacency_list.hpp>
#include <string>
#include <vector>

#include "model/machine/machine.hpp"

namespace tritax {

enum class VertexKind : std::uint8_t { gpu, node_switch, network };

struct TopologyVertex {
  VertexKind kind = VertexKind::gpu;
  int node = 0;
  std::string name;
};

struct TopologyEdge {
  int index = 0;            // dense, in order of creation
  double raw_gb_per_s = 0;  // one direction
  bool network = false;     // crosses nodes
  std::string name;         // "gpu0->gpu1"
};

using TopologyGraph =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS, TopologyVertex, TopologyEdge>;

struct Topology {
  TopologyGraph graph;                                // vertices 0 .. gpu_count-1 are the GPUs, in rank order
  std::vector<TopologyEdge> edges;                    // by index
  std::vector<std::vector<std::vector<int>>> routes;  // routes[from][to]: edge indices, empty for from == to
};

// The link from GPU `rank` to the switch of its node, and the one back: the same on the way to every other
// GPU of the node. The node has a switch and several GPUs.
inline int edge_to_switch(const Topology& topology, int rank) {
  return topology.routes[static_cast<std::size_t>(rank)][rank == 0 ? 1 : 0].front();
}
inline int edge_from_switch(const Topology& topology, int rank) {
  return topology.routes[rank == 0 ? 1 : 0][static_cast<std::size_t>(rank)].back();
}

// Rates of a GPU's port for stores when `gpus` GPUs of the machine take part.
struct StorePorts {
  double egress_gb_per_s = 0;
  double ingress_gb_per_s = 0;
};

// On a switch, more peers lower the rate of a port: 367 GB/s with one peer (as the link alone), 348 with 3
// and 301 with 7 (copies by 128 workgroups on 8 H200, scenarios/measured/h200-8-microbench.csv). The machine
// file has the rates with all peers of a node; rates with fewer peers are interpolated linearly between these
// and the link's rate with one peer. On a mesh every peer has its own link. Kernels whose stores fill links
// as well as loads get the rate of loads, with any number of peers.
StorePorts store_ports(const Machine& machine, const KernelCosts& costs, int gpus);

// Payload of stores to peers per byte on a link, for kernels with these costs.
double store_efficiency(const Fabric& fabric, const KernelCosts& costs);

// Whether the route from GPU `from` to GPU `to` of another node passes the spine.
bool through_spine(const Machine& machine, int from, int to);

// Builds the graph of the first `gpus` GPUs (ranks 0 .. gpus-1, nodes filled in order) and all routes between
// them. Throws UserError if gpus < 1 or more than the machine has.
Topology build_topology(const Machine& machine, int gpus);

}  // namespace tritax
