#include <gtest/gtest.h>

#include <set>

#include <rapidcheck/gtest.h>

#include "machine_text.hpp"
#include "model/machine/topology.hpp"

namespace tritax {
namespace {

std::vector<std::string> names_of(const Topology& topology, int from, int to) {
  std::vector<std::string> names;
  for (const int edge : topology.routes[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)]) {
    names.push_back(topology.edges[static_cast<std::size_t>(edge)].name);
  }
  return names;
}

Machine two_nodes(LinkKind kind) {
  Machine machine = find_machine("mi300x-8");
  machine.nodes = 2;
  machine.gpus_per_node = 2;
  machine.fabric.kind = kind;
  machine.fabric.network_gb_per_s = 50;
  machine.fabric.network_latency_ns = 2000;
  return machine;
}

TEST(Topology, MeshHasOneEdgeForEveryOrderedPair) {
  const Topology topology = build_topology(find_machine("mi300x-8"), 8);
  EXPECT_EQ(topology.edges.size(), 56U);
  EXPECT_EQ(boost::num_vertices(topology.graph), 8U);
  EXPECT_EQ(names_of(topology, 2, 5), std::vector<std::string>{"gpu2->gpu5"});
  for (const TopologyEdge& edge : topology.edges) {
    EXPECT_EQ(edge.raw_gb_per_s, 64);
    EXPECT_FALSE(edge.network);
  }
}

TEST(Topology, SwitchGivesEveryPairTwoHopsThroughItsPorts) {
  const Topology topology = build_topology(find_machine("h200-4"), 4);
  EXPECT_EQ(topology.edges.size(), 8U);
  EXPECT_EQ(names_of(topology, 3, 0), (std::vector<std::string>{"gpu3->switch0", "switch0->gpu0"}));
  // All routes out of a GPU share its port: that is why one pair gets the whole port and three share it.
  EXPECT_EQ(topology.routes[3][0].front(), topology.routes[3][1].front());
}

TEST(Topology, NodesAreJoinedThroughOneNetworkPortAGpu) {
  const Topology mesh = build_topology(two_nodes(LinkKind::mesh), 4);
  EXPECT_EQ(names_of(mesh, 0, 1), std::vector<std::string>{"gpu0->gpu1"});
  EXPECT_EQ(names_of(mesh, 0, 3),
            (std::vector<std::string>{"gpu0->port0", "port0->network", "network->port3", "port3->gpu3"}));
  for (const int edge : mesh.routes[0][3]) {
    EXPECT_TRUE(mesh.edges[static_cast<std::size_t>(edge)].network);
    EXPECT_EQ(mesh.edges[static_cast<std::size_t>(edge)].raw_gb_per_s, 50);
  }
  const Topology switched = build_topology(two_nodes(LinkKind::node_switch), 4);
  EXPECT_EQ(names_of(switched, 2, 3), (std::vector<std::string>{"gpu2->switch1", "switch1->gpu3"}));
  EXPECT_EQ(switched.routes[1][2].size(), 4U);
}

TEST(Topology, RailsJoinNicsOfOneNumberAndTheRestGoesThroughTheSpine) {
  Machine machine = two_nodes(LinkKind::mesh);
  machine.network.kind = NetworkKind::rails;
  machine.network.uplink_share = 0.5;
  const Topology topology = build_topology(machine, 4);
  EXPECT_EQ(names_of(topology, 0, 2),
            (std::vector<std::string>{"gpu0->port0", "port0->rail0", "rail0->port2", "port2->gpu2"}));
  EXPECT_EQ(names_of(topology, 0, 3),
            (std::vector<std::string>{"gpu0->port0", "port0->rail0", "rail0->spine", "spine->rail1",
                                      "rail1->port3", "port3->gpu3"}));
  EXPECT_FALSE(through_spine(machine, 0, 2));
  EXPECT_TRUE(through_spine(machine, 0, 3));
  // Two NICs of 50 GB/s hang on a rail, and half of that goes up.
  EXPECT_EQ(topology.edges[static_cast<std::size_t>(topology.routes[0][3][2])].raw_gb_per_s, 50);
}

TEST(Topology, LeavesOfAFatTreeJoinTheNicsOfTheirNodes) {
  Machine machine = two_nodes(LinkKind::node_switch);
  machine.nodes = 4;
  machine.network.kind = NetworkKind::fat_tree;
  machine.network.nodes_per_leaf = 2;
  const Topology topology = build_topology(machine, 8);
  EXPECT_EQ(topology.routes[0][3].size(), 4U);
  EXPECT_EQ(topology.routes[0][4].size(), 6U);
  EXPECT_FALSE(through_spine(machine, 0, 3));
  EXPECT_TRUE(through_spine(machine, 3, 4));
  EXPECT_EQ(names_of(topology, 3, 4)[2], "leaf0->spine");
  EXPECT_EQ(topology.edges[static_cast<std::size_t>(topology.routes[3][4][2])].raw_gb_per_s, 4 * 50);
}

TEST(Topology, RoutesInARingTakeTheShorterWayAndShareItsLinks) {
  Machine machine = find_machine("mi300x-8");
  machine.fabric.kind = LinkKind::ring;
  const Topology topology = build_topology(machine, 8);
  EXPECT_EQ(topology.edges.size(), 16U);
  EXPECT_EQ(names_of(topology, 6, 1), (std::vector<std::string>{"gpu6->gpu7", "gpu7->gpu0", "gpu0->gpu1"}));
  EXPECT_EQ(names_of(topology, 1, 6).front(), "gpu1->gpu0");
  EXPECT_EQ(names_of(topology, 0, 4).front(), "gpu0->gpu1");  // as far either way
  EXPECT_EQ(topology.routes[6][1].back(), topology.routes[0][1].front());
  // Without all of them it is open.
  EXPECT_EQ(names_of(build_topology(machine, 4), 0, 3).size(), 3U);
}

TEST(Topology, RanksFillNodesInOrder) {
  const Topology topology = build_topology(two_nodes(LinkKind::mesh), 3);
  EXPECT_EQ(topology.graph[0].node, 0);
  EXPECT_EQ(topology.graph[1].node, 0);
  EXPECT_EQ(topology.graph[2].node, 1);
}

TEST(Topology, GpusOfOneNodeNeedNoNetwork) {
  const Topology topology = build_topology(two_nodes(LinkKind::mesh), 2);
  EXPECT_EQ(boost::num_vertices(topology.graph), 2U);
  EXPECT_EQ(topology.edges.size(), 2U);
}

TEST(Topology, OneGpuHasNoLinksInAMesh) {
  const Topology topology = build_topology(find_machine("mi300x-8"), 1);
  EXPECT_TRUE(topology.edges.empty());
  ASSERT_EQ(topology.routes.size(), 1U);
  EXPECT_TRUE(topology.routes[0][0].empty());
}

TEST(Topology, RefusesMoreGpusThanThereAreAndFewerThanOne) {
  const Machine machine = find_machine("mi300x-8");
  for (const int gpus : {9, 0, -1}) {
    try {
      build_topology(machine, gpus);
      FAIL() << gpus << " GPUs were accepted";
    } catch (const UserError& error) {
      expect_contains(error.what(), std::to_string(gpus) + " GPUs: machine mi300x-8 has 8; allowed: 1 to 8");
    }
  }
}

TEST(StorePorts, OfASwitchGiveLessTheMorePeersThereAre) {
  Machine machine = find_machine("h200-8");
  Fabric& fabric = machine.fabric;
  fabric.link_raw_gb_per_s = 500;
  fabric.store_efficiency = 0.8;
  fabric.store_egress_gb_per_s = 340;
  fabric.store_ingress_gb_per_s = 280;
  const auto ports = [&](int gpus) { return store_ports(machine, machine.interpreter, gpus); };
  EXPECT_NEAR(ports(2).egress_gb_per_s, 400, 1e-9);  // the link's
  EXPECT_NEAR(ports(5).egress_gb_per_s, 370, 1e-9);
  EXPECT_NEAR(ports(5).ingress_gb_per_s, 340, 1e-9);
  EXPECT_EQ(ports(8).egress_gb_per_s, 340);
  EXPECT_EQ(ports(8).ingress_gb_per_s, 280);
  fabric.store_egress_gb_per_s = 410;  // the link decides
  EXPECT_EQ(ports(2).egress_gb_per_s, 410);
}

TEST(StorePorts, OfSeveralNodesSeeThePeersOfTheirOwn) {
  Machine machine = two_nodes(LinkKind::node_switch);
  machine.gpus_per_node = 4;
  machine.fabric.store_egress_gb_per_s =
      machine.fabric.link_raw_gb_per_s * machine.fabric.store_efficiency / 2;
  EXPECT_EQ(store_ports(machine, machine.interpreter, 8).egress_gb_per_s,
            machine.fabric.store_egress_gb_per_s);
}

TEST(StorePorts, OfAMeshAreTheMachines) {
  const Machine machine = find_machine("mi300x-8");
  for (const int gpus : {1, 2, 5, 8}) {
    EXPECT_EQ(store_ports(machine, machine.interpreter, gpus).egress_gb_per_s,
              machine.fabric.store_egress_gb_per_s);
    EXPECT_EQ(store_ports(machine, machine.interpreter, gpus).ingress_gb_per_s,
              machine.fabric.store_ingress_gb_per_s);
  }
}

// Every route is a walk from its source to its target that meets no vertex twice, and edge indices are dense.
RC_GTEST_PROP(Topology, RoutesAreWalksBetweenTheirEnds, ()) {
  Machine machine = two_nodes(*rc::gen::element(LinkKind::mesh, LinkKind::node_switch, LinkKind::ring));
  machine.nodes = *rc::gen::inRange(1, 5);
  machine.gpus_per_node = *rc::gen::inRange(1, 9);
  machine.network.kind =
      *rc::gen::element(NetworkKind::one_switch, NetworkKind::rails, NetworkKind::fat_tree);
  machine.network.nodes_per_leaf = *rc::gen::inRange(0, 4);
  const int gpus = *rc::gen::inRange(1, machine.gpu_count() + 1);
  const Topology topology = build_topology(machine, gpus);

  std::vector<TopologyGraph::edge_descriptor> by_index(topology.edges.size());
  std::set<int> indices;
  for (const auto& edge : boost::make_iterator_range(boost::edges(topology.graph))) {
    const int index = topology.graph[edge].index;
    RC_ASSERT(indices.insert(index).second);
    RC_ASSERT(topology.edges.at(static_cast<std::size_t>(index)).name == topology.graph[edge].name);
    by_index[static_cast<std::size_t>(index)] = edge;
  }
  RC_ASSERT(indices.size() == topology.edges.size());

  for (std::size_t from = 0; from < static_cast<std::size_t>(gpus); ++from) {
    RC_ASSERT(topology.routes[from].size() == static_cast<std::size_t>(gpus));
    for (std::size_t to = 0; to < static_cast<std::size_t>(gpus); ++to) {
      std::set<std::size_t> visited{from};
      std::size_t at = from;
      for (const int index : topology.routes[from][to]) {
        const auto edge = by_index[static_cast<std::size_t>(index)];
        RC_ASSERT(boost::source(edge, topology.graph) == at);
        at = boost::target(edge, topology.graph);
        RC_ASSERT(visited.insert(at).second);
      }
      RC_ASSERT(at == to);
      RC_ASSERT(topology.routes[from][to].size() == topology.routes[to][from].size());
    }
  }
}

}  // namespace
}  // namespace tritax
