#include "model/machine/topology.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <boost/graph/breadth_first_search.hpp>

#include "model/core/error.hpp"

namespace tritax {

namespace {

using Vertex = TopologyGraph::vertex_descriptor;
using Edge = TopologyGraph::edge_descriptor;

// Builds the graph; edges are created in order of their source and target, so breadth-first search meets
// neighbours in ascending order and prefers small vertex numbers.
class TopologyBuilder {
 public:
  TopologyBuilder(const Machine& machine, int gpus) : machine_(machine), gpus_(gpus) {}

  Topology build() {
    for (int rank = 0; rank < gpus_; ++rank) {
      boost::add_vertex({VertexKind::gpu, node_of(rank), fmt::format("gpu{}", rank)}, topology_.graph);
    }
    if (machine_.fabric.kind == LinkKind::mesh) {
      add_meshes();
    } else {
      add_switches();
    }
    if (nodes() > 1) add_network();
    return std::move(topology_);
  }

 private:
  int node_of(int rank) const { return rank / machine_.gpus_per_node; }
  int nodes() const { return node_of(gpus_ - 1) + 1; }

  void add_edge(Vertex from, Vertex to, double gb_per_s, bool network) {
    TopologyGraph& graph = topology_.graph;
    const TopologyEdge edge{static_cast<int>(topology_.edges.size()), gb_per_s, network,
                            fmt::format("{}->{}", graph[from].name, graph[to].name)};
    boost::add_edge(from, to, edge, graph);
    topology_.edges.push_back(edge);
  }

  void add_meshes() {
    for (int from = 0; from < gpus_; ++from) {
      const int first = node_of(from) * machine_.gpus_per_node;
      const int last = std::min(first + machine_.gpus_per_node, gpus_);
      for (int to = first; to < last; ++to) {
        if (from != to) add_edge(Vertex(from), Vertex(to), machine_.fabric.link_raw_gb_per_s, false);
      }
    }
  }

  void add_switches() {
    for (int node = 0; node < nodes(); ++node) {
      const Vertex hub =
          boost::add_vertex({VertexKind::node_switch, node, fmt::format("switch{}", node)}, topology_.graph);
      for (int rank = 0; rank < gpus_; ++rank) {
        if (node_of(rank) != node) continue;
        add_edge(Vertex(rank), hub, machine_.fabric.link_raw_gb_per_s, false);
        add_edge(hub, Vertex(rank), machine_.fabric.link_raw_gb_per_s, false);
      }
    }
  }

  // Every GPU has its own port into one network vertex, which never limits: the ports do.
  void add_network() {
    std::vector<Vertex> ports;
    for (int rank = 0; rank < gpus_; ++rank) {
      ports.push_back(boost::add_vertex({VertexKind::network, node_of(rank), fmt::format("port{}", rank)},
                                        topology_.graph));
    }
    const Vertex network = boost::add_vertex({VertexKind::network, -1, "network"}, topology_.graph);
    const double rate = machine_.fabric.network_gb_per_s;
    for (int rank = 0; rank < gpus_; ++rank) {
      const Vertex port = ports[static_cast<std::size_t>(rank)];
      add_edge(Vertex(rank), port, rate, true);
      add_edge(port, network, rate, true);
      add_edge(network, port, rate, true);
      add_edge(port, Vertex(rank), rate, true);
    }
  }

  const Machine& machine_;
  const int gpus_;
  Topology topology_;
};

// routes[to] for one source: fewest hops, as edge indices in order of travel.
std::vector<std::vector<int>> routes_from(const TopologyGraph& graph, int from, int gpus) {
  std::vector<Edge> arrived_by(boost::num_vertices(graph));
  const auto visitor =
      boost::make_bfs_visitor(boost::record_edge_predecessors(arrived_by.data(), boost::on_tree_edge()));
  boost::breadth_first_search(graph, Vertex(from), boost::visitor(visitor));

  std::vector<std::vector<int>> routes(static_cast<std::size_t>(gpus));
  for (int to = 0; to < gpus; ++to) {
    std::vector<int>& route = routes[static_cast<std::size_t>(to)];
    for (Vertex at = Vertex(to); at != Vertex(from); at = boost::source(arrived_by[at], graph)) {
      route.push_back(graph[arrived_by[at]].index);
    }
    std::reverse(route.begin(), route.end());
  }
  return routes;
}

}  // namespace

double store_efficiency(const Fabric& fabric, const KernelCosts& costs) {
  const bool as_loads = costs.stores_as_loads && fabric.kind == LinkKind::node_switch;
  return as_loads ? std::max(fabric.store_efficiency, fabric.load_efficiency) : fabric.store_efficiency;
}

StorePorts store_ports(const Machine& machine, const KernelCosts& costs, int gpus) {
  const Fabric& fabric = machine.fabric;
  const int all_peers = machine.gpus_per_node - 1;
  const int peers = std::max(1, std::min(gpus, machine.gpus_per_node) - 1);
  const double efficiency = store_efficiency(fabric, costs);
  const double link = fabric.link_raw_gb_per_s * efficiency;
  const bool as_loads = efficiency > fabric.store_efficiency;
  const auto port = [&](double with_all) {
    if (as_loads) return std::max(with_all, link);
    if (fabric.kind != LinkKind::node_switch || peers >= all_peers || link <= with_all) return with_all;
    return link + (with_all - link) * (peers - 1) / (all_peers - 1);
  };
  return {port(fabric.store_egress_gb_per_s), port(fabric.store_ingress_gb_per_s)};
}

Topology build_topology(const Machine& machine, int gpus) {
  if (gpus < 1 || gpus > machine.gpu_count()) {
    throw UserError(fmt::format("{} GPUs: machine {} has {}; allowed: 1 to {}", gpus, machine.name,
                                machine.gpu_count(), machine.gpu_count()));
  }
  Topology topology = TopologyBuilder(machine, gpus).build();
  for (int from = 0; from < gpus; ++from) topology.routes.push_back(routes_from(topology.graph, from, gpus));
  return topology;
}

}  // namespace tritax
