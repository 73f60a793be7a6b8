#include "model/imports/astra_network.hpp"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "model/core/error.hpp"

namespace tritax {

namespace {

constexpr int kMostDimensions = 2;
constexpr double kPassesOfSwitch = 2;  // to it and from it

// One dimension of the network.
struct AstraDimension {
  std::string topology;
  YamlPlace kind;
  YamlPlace count;
  YamlPlace bandwidth;
  YamlPlace latency;

  double passes() const { return topology == "Switch" ? kPassesOfSwitch : 1; }
  TopologyValue rate() const { return {bandwidth.above_0(), bandwidth.where()}; }
  std::optional<TopologyValue> delay() const {
    if (latency.node().as<double>(-1) == 0) return std::nullopt;  // "not modelled"
    return TopologyValue{latency.above_0() * passes(),
                         latency.where() + (passes() > 1 ? ", to the switch and from it" : "")};
  }
};

AstraDimension dimension_of(const YamlPlace& root, std::size_t index) {
  const YamlPlace kind = root.at("topology").at(index);
  const std::string topology = kind.text();
  if (topology != "Ring" && topology != "FullyConnected" && topology != "Switch") {
    kind.refuse("give Ring, FullyConnected or Switch");
  }
  return {topology, kind, root.at("npus_count").at(index), root.at("bandwidth").at(index),
          root.at("latency").at(index)};
}

}  // namespace

TopologyFile read_astra_network(const YamlPlace& root, const std::string& origin) {
  const std::size_t dimensions = root.at("topology").size();
  for (const char* key : {"npus_count", "bandwidth", "latency"}) {
    if (root.at(key).size() != dimensions) {
      root.at(key).refuse(fmt::format("give one entry a dimension, {} as 'topology' has", dimensions));
    }
  }
  if (dimensions < 1 || dimensions > kMostDimensions) {
    root.at("topology")
        .refuse(
            "give one dimension, of a node, or two, of a node and of what joins nodes: machines have no "
            "more");
  }
  TopologyFile file;
  file.file = origin;
  file.form = "ASTRA-sim";
  const AstraDimension inside = dimension_of(root, 0);
  file.gpus_per_node = static_cast<int>(inside.count.whole(kMostGpusPerNode));
  file.size_source = root.at("npus_count").where();
  if (inside.topology == "Ring" && file.gpus_per_node > 2) {
    inside.kind.refuse(
        "give FullyConnected or Switch: in a node every GPU reaches every other one directly; a Ring may "
        "have two");
  }
  file.kind = inside.topology == "Switch" ? LinkKind::node_switch : LinkKind::mesh;
  file.kind_source = inside.kind.where();
  file.link = inside.rate();
  file.link_latency = inside.delay();
  if (dimensions == 1) return file;
  const AstraDimension between = dimension_of(root, 1);
  file.nodes = static_cast<int>(between.count.whole(kMostNodes));
  if (between.topology != "Switch" && file.nodes > 2) {
    between.kind.refuse("give Switch: between nodes every GPU has one port; of two nodes any will do");
  }
  file.network = between.rate();
  file.network_latency = between.delay();
  return file;
}

}  // namespace tritax
