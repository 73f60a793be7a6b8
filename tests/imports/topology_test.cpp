// Machines from topologies of other tools.
#include "model/imports/topology.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "model/core/error.hpp"
#include "model/machine/write_machine.hpp"

namespace tritax {
namespace {

std::string topology_path(const std::string& name) { return TRITAX_SOURCE_DIR "/tests/imports/data/" + name; }

Machine machine_from(const std::string& name, const std::string& base) {
  return machine_of(read_topology_file(topology_path(name), ""), find_machine(base), "mine", {});
}

const Parameter& parameter_of(const Machine& machine, const std::string& key) {
  return *std::find_if(machine.parameters.begin(), machine.parameters.end(),
                       [&](const Parameter& one) { return one.key == key; });
}

std::string refusal_of_topology(const std::string& text, const std::string& link = "") {
  try {
    parse_topology_file(text, "t.yml", link);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

// Its port is the link, and the switch is passed to and from.
TEST(ImportTopology, ReadsASwitchOfAstraSim) {
  const Machine base = find_machine("h200-8");
  const Machine machine = machine_from("network.yml", "h200-8");
  EXPECT_EQ(machine.gpus_per_node, 8);
  EXPECT_DOUBLE_EQ(machine.fabric.link_raw_gb_per_s, 400);
  EXPECT_DOUBLE_EQ(machine.fabric.store_latency_ns, 1000);
  const double ratio = 400 / base.fabric.link_raw_gb_per_s;
  EXPECT_NEAR(machine.fabric.store_egress_gb_per_s, base.fabric.store_egress_gb_per_s * ratio, 1e-9);
  EXPECT_EQ(machine.gpu.hbm_gb_per_s, base.gpu.hbm_gb_per_s);
}

TEST(ImportTopology, ReadsTwoDimensionsAsNodes) {
  const Machine machine = machine_from("two-nodes.yml", "mi300x-8");
  EXPECT_EQ(machine.nodes, 2);
  EXPECT_DOUBLE_EQ(machine.fabric.link_raw_gb_per_s, 50);
  EXPECT_DOUBLE_EQ(machine.fabric.store_latency_ns, 700);
  EXPECT_DOUBLE_EQ(machine.fabric.network_gb_per_s, 25);
  EXPECT_DOUBLE_EQ(machine.fabric.network_latency_ns, 4000);
}

// A load passes the link both ways, a flag one way.
TEST(ImportTopology, GivesItsLatencyToWhatCrossesTheLink) {
  const Fabric base = find_machine("mi300x-8").fabric;
  const Fabric fabric = machine_from("two-nodes.yml", "mi300x-8").fabric;
  const double more = 700 - base.store_latency_ns;
  EXPECT_NEAR(fabric.load_round_trip_ns, std::max(base.load_round_trip_ns + 2 * more, 1400.0), 1e-6);
  EXPECT_NEAR(fabric.flag_latency_ns, std::max(base.flag_latency_ns + more, 700.0), 1e-6);
}

// 100 GB/s to each of four switches; 400 Gb/s a network card, one per GPU.
TEST(ImportTopology, ReadsAnInfraGraph) {
  const Machine machine = machine_from("infragraph.yaml", "h200-8");
  EXPECT_EQ(machine.nodes, 4);
  EXPECT_EQ(machine.gpus_per_node, 8);
  EXPECT_DOUBLE_EQ(machine.fabric.link_raw_gb_per_s, 400);
  EXPECT_DOUBLE_EQ(machine.fabric.store_latency_ns, 600);
  EXPECT_DOUBLE_EQ(machine.fabric.network_gb_per_s, 50);
  EXPECT_DOUBLE_EQ(machine.fabric.network_latency_ns, 3000);
}

TEST(ImportTopology, TellsWhereEveryValueComesFrom) {
  const Machine machine = machine_from("network.yml", "h200-8");
  const std::string file = topology_path("network.yml");
  const Parameter& link = parameter_of(machine, "fabric.link");
  EXPECT_TRUE(link.source.starts_with(file + ":4: bandwidth[0]; h200-8: ")) << link.source;
  EXPECT_EQ(link.how, Provenance::derived);
  const Parameter& port = parameter_of(machine, "fabric.store_egress");
  EXPECT_TRUE(port.source.starts_with("in proportion to fabric.link=400GB/s, " + file + ":4: "))
      << port.source;
  const Machine base = find_machine("h200-8");
  EXPECT_EQ(parameter_of(machine, "gpu.hbm_bandwidth").source,
            parameter_of(base, "gpu.hbm_bandwidth").source);
}

TEST(ImportTopology, WritesAMachineThatReadsBackTheSame) {
  const Machine machine = machine_from("infragraph.yaml", "h200-8");
  const Machine again = parse_machine(write_machine(machine, "of a test"), "out.toml");
  EXPECT_EQ(again.nodes, machine.nodes);
  for (const Parameter& one : machine.parameters) {
    EXPECT_EQ(parameter_of(again, one.key).value, one.value) << one.key;
    EXPECT_EQ(parameter_of(again, one.key).source, one.source) << one.key;
  }
}

TEST(ImportTopology, RefusesABaseWithOtherLinks) {
  try {
    machine_from("network.yml", "mi300x-8");
    FAIL();
  } catch (const UserError& error) {
    const std::string message = error.what();
    EXPECT_NE(
        message.find(
            "network.yml:2: topology[0]: its GPUs are joined by a switch, GPUs of 'mi300x-8' by a mesh; "
            "give --machine one of "),
        std::string::npos)
        << message;
    EXPECT_NE(message.find("h200-8"), std::string::npos) << message;
  }
}

TEST(ImportTopology, RefusesWithPlaceValueAndWhatIsAllowed) {
  const auto astra = [](const std::string& topology, const std::string& count, const std::string& bandwidth) {
    return "topology: [" + topology + "]\nnpus_count: [" + count + "]\nbandwidth: [" + bandwidth +
           "]\nlatency: [500]\n";
  };
  EXPECT_EQ(refusal_of_topology(astra("Torus", "8", "50")),
            "t.yml:1: topology[0]: 'Torus' is not allowed; give Ring, FullyConnected or Switch");
  EXPECT_EQ(refusal_of_topology(astra("Ring", "8", "50")),
            "t.yml:1: topology[0]: 'Ring' is not allowed; give FullyConnected or Switch: in a node every GPU "
            "reaches every "
            "other one directly; a Ring may have two");
  EXPECT_EQ(refusal_of_topology(astra("Switch", "8.5", "50")),
            "t.yml:2: npus_count[0]: '8.5' is not allowed; give a whole number from 1 to 1024");
  EXPECT_EQ(refusal_of_topology(astra("Switch", "8", "-1")),
            "t.yml:3: bandwidth[0]: '-1' is not allowed; give a number above 0");
  EXPECT_EQ(
      refusal_of_topology(astra("Switch", "8", "50, 25")),
      "t.yml:3: bandwidth: a list of 2 is not allowed; give one entry a dimension, 1 as 'topology' has");
  EXPECT_EQ(refusal_of_topology("npus_count: [8]\n"), "t.yml:1: the file: the key 'topology' is missing");
  EXPECT_TRUE(refusal_of_topology("a: [1, 2\n").starts_with("t.yml:")) << refusal_of_topology("a: [1, 2\n");
  EXPECT_TRUE(refusal_of_topology("a: 1\n").starts_with("t.yml: not a topology: "));
}

TEST(ImportTopology, RefusesEndsOfEdgesThatAComponentDoesNotHave) {
  const auto graph = [](const std::string& end) {
    return R"(
devices:
- name: server
  components: [{name: xpu, choice: xpu, count: 2}, {name: a, choice: switch, count: 4}]
  links: [{name: fast, physical: {bandwidth: {gigabytes_per_second: 200}}}]
  edges:
  - {ep1: {component: xpu}, ep2: {component: ")" +
           end + R"("}, scheme: many2many, link: fast}
)";
  };
  EXPECT_DOUBLE_EQ(parse_topology_file(graph("a[0:4]"), "t.yml", "").link->value, 800);
  EXPECT_NE(refusal_of_topology(graph("a[0:400]")).find("'a' has the numbers 0 to 3"), std::string::npos);
  EXPECT_NE(refusal_of_topology(graph("a[9223372036854775807]")).find("give NAME, NAME[3]"),
            std::string::npos);
}

TEST(ImportTopology, AsksWhichLinkWhereSeveralJoinTheGpus) {
  const std::string graph = R"(
devices:
- name: server
  components: [{name: xpu, choice: xpu, count: 2}, {name: a, choice: switch}, {name: b, choice: switch}]
  links: [{name: fast, physical: {bandwidth: {gigabytes_per_second: 200}}}, {name: slow}]
  edges:
  - {ep1: {component: xpu}, ep2: {component: a}, scheme: many2many, link: fast}
  - {ep1: {component: xpu}, ep2: {component: b}, scheme: many2many, link: slow}
)";
  const std::string message = refusal_of_topology(graph);
  EXPECT_NE(message.find("name the link that joins its GPUs with --link: fast, slow"), std::string::npos)
      << message;
  const TopologyFile fast = parse_topology_file(graph, "t.yml", "fast");
  EXPECT_DOUBLE_EQ(fast.link->value, 200);
  EXPECT_FALSE(parse_topology_file(graph, "t.yml", "slow").link.has_value());  // as in the base
  EXPECT_NE(refusal_of_topology(graph, "none").find("--link: fast, slow"), std::string::npos);
}

}  // namespace
}  // namespace tritax
