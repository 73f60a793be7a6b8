#include "model/machine/topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "model/core/error.hpp"

namespace tritax {

namespace {

using Vertex = TopologyGraph::vertex_descriptor;

// Assignment of NICs, one per GPU, to leaf switches.
class Leaves {
 public:
  explicit Leaves(const Machine& machine)
      : kind_(machine.network.kind),
        nodes_(machine.network.nodes_per_leaf > 0 ? std::min(machine.network.nodes_per_leaf, machine.nodes)
                                                  : machine.nodes),
        gpus_(machine.gpus_per_node) {}

  int leaf_of(int nic) const {
    const int group = nic / gpus_ / nodes_;
    if (kind_ == NetworkKind::one_switch) return 0;
    return kind_ == NetworkKind::fat_tree ? group : group * gpus_ + nic % gpus_;
  }
  int nics_of_leaf() const { return kind_ == NetworkKind::rails ? nodes_ : nodes_ * gpus_; }
  std::string name(int leaf) const {
    if (kind_ == NetworkKind::one_switch) return "network";
    return fmt::format("{}{}", kind_ == NetworkKind::rails ? "rail" : "leaf", leaf);
  }

 private:
  NetworkKind kind_;
  int nodes_, gpus_;
};

// Builds the graph, then the routes.
class TopologyBuilder {
 public:
  TopologyBuilder(const Machine& machine, int gpus) : machine_(machine), gpus_(gpus), leaves_(machine) {}

  Topology build() {
    for (int rank = 0; rank < gpus_; ++rank) {
      boost::add_vertex({VertexKind::gpu, node_of(rank), fmt::format("gpu{}", rank)}, topology_.graph);
    }
    if (machine_.fabric.kind == LinkKind::node_switch) {
      add_switches();
    } else {
      add_direct_links();
    }
    if (nodes() > 1) add_network();
    for (int from = 0; from < gpus_; ++from) {
      std::vector<std::vector<int>>& routes = topology_.routes.emplace_back();
      for (int to = 0; to < gpus_; ++to) routes.push_back(route(from, to));
    }
    return std::move(topology_);
  }

 private:
  struct Both {  // the edges of a link, by direction
    int out = -1, in = -1;
  };

  int node_of(int rank) const { return rank / machine_.gpus_per_node; }
  int nodes() const { return node_of(gpus_ - 1) + 1; }
  int first_of(int node) const { return node * machine_.gpus_per_node; }
  int size_of(int node) const { return std::min(machine_.gpus_per_node, gpus_ - first_of(node)); }

  int add_edge(Vertex from, Vertex to, double gb_per_s, bool network) {
    TopologyGraph& graph = topology_.graph;
    const TopologyEdge edge{static_cast<int>(topology_.edges.size()), gb_per_s, network,
                            fmt::format("{}->{}", graph[from].name, graph[to].name)};
    boost::add_edge(from, to, edge, graph);
    topology_.edges.push_back(edge);
    return edge.index;
  }

  bool are_linked(int from, int to) const {
    const int apart = std::abs(to - from);
    if (machine_.fabric.kind == LinkKind::mesh) return apart > 0;
    return apart == 1 || (is_closed(node_of(from)) && apart == machine_.gpus_per_node - 1);
  }
  // If some GPUs of a ring do not take part, the other GPUs form a chain.
  bool is_closed(int node) const { return size_of(node) == machine_.gpus_per_node && size_of(node) > 2; }

  void add_direct_links() {
    direct_.assign(static_cast<std::size_t>(gpus_) * static_cast<std::size_t>(machine_.gpus_per_node), -1);
    for (int from = 0; from < gpus_; ++from) {
      const int first = first_of(node_of(from));
      for (int to = first; to < first + size_of(node_of(from)); ++to) {
        if (are_linked(from, to)) {
          direct(from, to) = add_edge(Vertex(from), Vertex(to), machine_.fabric.link_raw_gb_per_s, false);
        }
      }
    }
  }

  int& direct(int from, int to) {
    const auto row = static_cast<std::size_t>(from) * static_cast<std::size_t>(machine_.gpus_per_node);
    return direct_[row + static_cast<std::size_t>(to - first_of(node_of(to)))];
  }

  void add_switches() {
    for (int node = 0; node < nodes(); ++node) {
      const Vertex hub =
          boost::add_vertex({VertexKind::node_switch, node, fmt::format("switch{}", node)}, topology_.graph);
      for (int rank = first_of(node); rank < first_of(node) + size_of(node); ++rank) {
        Both& port = ports_.emplace_back();
        port.out = add_edge(Vertex(rank), hub, machine_.fabric.link_raw_gb_per_s, false);
        port.in = add_edge(hub, Vertex(rank), machine_.fabric.link_raw_gb_per_s, false);
      }
    }
  }

  // NICs and leaf switches; with one switch the ports limit before the switch does.
  void add_network() {
    std::vector<Vertex> ports;
    for (int rank = 0; rank < gpus_; ++rank) {
      ports.push_back(boost::add_vertex({VertexKind::network, node_of(rank), fmt::format("port{}", rank)},
                                        topology_.graph));
    }
    std::vector<Vertex> leaves;
    for (int rank = 0; rank < gpus_; ++rank) {
      while (leaves_.leaf_of(rank) >= static_cast<int>(leaves.size())) {
        const std::string name = leaves_.name(static_cast<int>(leaves.size()));
        leaves.push_back(boost::add_vertex({VertexKind::network, -1, name}, topology_.graph));
      }
    }
    const double rate = machine_.fabric.network_gb_per_s;
    for (int rank = 0; rank < gpus_; ++rank) {
      const Vertex port = ports[static_cast<std::size_t>(rank)];
      const Vertex leaf = leaves[static_cast<std::size_t>(leaves_.leaf_of(rank))];
      Both of_gpu;
      of_gpu.out = add_edge(Vertex(rank), port, rate, true);
      Both& of_nic = nics_.emplace_back();
      of_nic.out = add_edge(port, leaf, rate, true);
      of_nic.in = add_edge(leaf, port, rate, true);
      of_gpu.in = add_edge(port, Vertex(rank), rate, true);
      to_nic_.push_back(of_gpu);
    }
    if (leaves.size() > 1) add_spine(leaves);
  }

  void add_spine(const std::vector<Vertex>& leaves) {
    const Vertex spine = boost::add_vertex({VertexKind::network, -1, "spine"}, topology_.graph);
    const double rate =
        leaves_.nics_of_leaf() * machine_.fabric.network_gb_per_s * machine_.network.uplink_share;
    for (const Vertex leaf : leaves) {
      Both& uplink = uplinks_.emplace_back();
      uplink.out = add_edge(leaf, spine, rate, true);
      uplink.in = add_edge(spine, leaf, rate, true);
    }
  }

  std::vector<int> route(int from, int to) {
    if (from == to) return {};
    const auto f = static_cast<std::size_t>(from), t = static_cast<std::size_t>(to);
    if (node_of(from) == node_of(to)) {
      if (machine_.fabric.kind == LinkKind::node_switch) return {ports_[f].out, ports_[t].in};
      if (machine_.fabric.kind == LinkKind::mesh) return {direct(from, to)};
      return around(from, to);
    }
    std::vector<int> edges{to_nic_[f].out, nics_[f].out};
    const int leaf = leaves_.leaf_of(from), far = leaves_.leaf_of(to);
    if (leaf != far) {
      edges.push_back(uplinks_[static_cast<std::size_t>(leaf)].out);
      edges.push_back(uplinks_[static_cast<std::size_t>(far)].in);
    }
    edges.push_back(nics_[t].in);
    edges.push_back(to_nic_[t].in);
    return edges;
  }

  std::vector<int> around(int from, int to) {
    const int first = first_of(node_of(from)), size = size_of(node_of(from));
    const int up = (to - from + size) % size;
    const bool upwards = is_closed(node_of(from)) ? 2 * up <= size : to > from;
    const int step = upwards ? 1 : size - 1;
    std::vector<int> edges;
    for (int at = from; at != to;) {
      const int next = first + (at - first + step) % size;
      edges.push_back(direct(at, next));
      at = next;
    }
    return edges;
  }

  const Machine& machine_;
  const int gpus_;
  const Leaves leaves_;
  Topology topology_;
  std::vector<int> direct_;          // edges by GPU and local rank of the other GPU
  std::vector<Both> ports_;          // by GPU: to the switch of its node
  std::vector<Both> to_nic_, nics_;  // by GPU: to its NIC, from there to its leaf
  std::vector<Both> uplinks_;        // by leaf
};

}  // namespace

bool through_spine(const Machine& machine, int from, int to) {
  const Leaves leaves(machine);
  return leaves.leaf_of(from) != leaves.leaf_of(to);
}

double store_efficiency(const Fabric& fabric, const KernelCosts& costs) {
  const bool as_loads = costs.tuned && fabric.kind == LinkKind::node_switch;
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
  return TopologyBuilder(machine, gpus).build();
}

}  // namespace tritax
