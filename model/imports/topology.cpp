#include "model/imports/topology.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "model/core/error.hpp"
#include "model/core/read_file.hpp"
#include "model/core/with_place.hpp"
#include "model/imports/astra_network.hpp"
#include "model/imports/infragraph.hpp"

namespace tritax {

namespace {

constexpr std::size_t kLargestTopology = std::size_t{64} << 20;

std::string_view name_of_kind(LinkKind kind) { return kind == LinkKind::mesh ? "a mesh" : "a switch"; }

// Shipped machines with links of that kind.
std::string machines_with(LinkKind kind) {
  std::vector<std::string> names;
  for (const std::string& name : shipped_machines()) {
    if (find_machine(name).fabric.kind == kind) names.push_back(name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

// A value of the file as a change of the base, and where it stands.
struct SourcedChange {
  std::string text;
  std::string source;
};

// What crosses the link has its latency in it, once or both ways, beside what the base knows of it.
struct Passing {
  std::string_view key;
  double Fabric::*latency_ns;
  double passes;
};
constexpr std::array<Passing, 3> kPassing{{{"fabric.load_round_trip", &Fabric::load_round_trip_ns, 2},
                                           {"fabric.flag_latency", &Fabric::flag_latency_ns, 1},
                                           {"fabric.signal_round_trip", &Fabric::signal_round_trip_ns, 2}}};

void add_passing(const TopologyValue& latency, const Machine& base, std::span<const ParameterChange> given,
                 std::vector<SourcedChange>& all) {
  for (const Passing& one : kPassing) {
    const double before = base.fabric.*one.latency_ns;
    const bool asked =
        std::any_of(given.begin(), given.end(), [&](const auto& change) { return change.key == one.key; });
    if (before <= 0 || asked) continue;
    const double more = one.passes * (latency.value - base.fabric.store_latency_ns);
    const double value = std::max(before + more, one.passes * latency.value);
    all.push_back(
        {fmt::format("{}={:.10g}ns", one.key, value),
         fmt::format("{}, {} of it in place of the base's", latency.source, one.passes > 1 ? "two" : "one")});
  }
}

std::vector<SourcedChange> changes_by(const TopologyFile& topology, const Machine& base,
                                      std::span<const ParameterChange> given) {
  std::vector<SourcedChange> all;
  const auto add = [&all](std::string_view key, const std::optional<TopologyValue>& value,
                          std::string_view unit) {
    if (value) all.push_back({fmt::format("{}={:.10g}{}", key, value->value, unit), value->source});
  };
  if (topology.gpus_per_node != base.gpus_per_node) {
    all.push_back({fmt::format("gpus_per_node={}", topology.gpus_per_node), topology.size_source});
  }
  if (topology.nodes != base.nodes)
    all.push_back({fmt::format("nodes={}", topology.nodes), topology.size_source});
  add("fabric.link", topology.link, "GB/s");
  add("fabric.store_latency", topology.link_latency, "ns");
  if (topology.link_latency) add_passing(*topology.link_latency, base, given, all);
  add("fabric.network_bandwidth", topology.network, "GB/s");
  add("fabric.network_latency", topology.network_latency, "ns");
  return all;
}

// `changed` writes as the source of a value "--set KEY=VALUE", and of what follows too.
void tell_sources(Machine& machine, const std::vector<SourcedChange>& changes, std::string_view base) {
  for (const SourcedChange& change : changes) {
    const std::string given = "--set " + change.text;
    for (Parameter& entry : machine.parameters) {
      if (!entry.source.starts_with(given)) continue;
      const bool follows = !change.text.starts_with(entry.key + "=");
      std::string rest = entry.source.substr(given.size());
      if (rest.starts_with("; in the file: ")) rest = fmt::format("; {}: {}", base, rest.substr(15));
      entry.source =
          (follows ? fmt::format("in proportion to {}, ", change.text) : "") + change.source + rest;
      entry.how = Provenance::derived;
    }
  }
}

}  // namespace

TopologyFile parse_topology_file(const std::string& text, const std::string& origin,
                                 const std::string& link) {
  YamlPlace root = parse_yaml(text, origin);
  if (root.has("infrastructure")) root = root.at("infrastructure");
  if (root.has("npus_count")) {
    if (!link.empty())
      throw UserError(fmt::format(
          "--link: {} is a network of ASTRA-sim, whose links have no names; leave it out", origin));
    return read_astra_network(root, origin);
  }
  if (root.has("devices")) return read_infragraph(root, origin, link);
  throw UserError(
      fmt::format("{}: not a topology: give a network file of ASTRA-sim (with 'topology' and 'npus_count') "
                  "or an infrastructure of InfraGraph (with 'devices')",
                  origin));
}

TopologyFile read_topology_file(const std::string& path, const std::string& link) {
  return parse_topology_file(read_file(path, "a topology (YAML or JSON)", kLargestTopology), path, link);
}

Machine machine_of(const TopologyFile& topology, const Machine& base, const std::string& name,
                   std::span<const ParameterChange> changes) {
  if (topology.gpus_per_node > 1 && topology.kind != base.fabric.kind) {
    throw UserError(
        fmt::format("{}: its GPUs are joined by {}, GPUs of '{}' by {}; give --machine one of {}, or a file",
                    topology.kind_source, name_of_kind(topology.kind), base.name,
                    name_of_kind(base.fabric.kind), machines_with(topology.kind)));
  }
  const std::vector<SourcedChange> of_file = changes_by(topology, base, changes);
  std::vector<ParameterChange> all(changes.begin(), changes.end());
  for (const SourcedChange& one : of_file) {
    all.push_back(with_place(one.source + ": ",
                             [&] { return parse_change(ChangeKind::set, one.text, GivenAs::argument); }));
  }
  Machine machine = with_place(topology.file + ": ", [&] { return changed(base, all); });
  tell_sources(machine, of_file, base.name);
  machine.name = name;
  machine.description = fmt::format("{} of {}; all other parameters are those of {}", topology.form,
                                    topology.file, base.title());
  machine.changes.clear();
  // Those were of the base.
  machine.doubts.clear();
  return machine;
}

}  // namespace tritax
