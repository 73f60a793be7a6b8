#include "model/machine/write_machine.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sstream>

#include "model/core/toml.hpp"
#include "model/machine/library_table.hpp"
#include "model/machine/parameters.hpp"

namespace tritax {

namespace {

// A TOML text in double quotes.
std::string quoted(const std::string& text) {
  std::ostringstream out;
  out << toml::value<std::string>(text);
  return out.str();
}

std::string table_of(const std::string& key) {
  const std::size_t dot = key.rfind('.');
  return dot == std::string::npos ? "" : key.substr(0, dot);
}

// `name = { value = …, unit = "…", … }`
std::string entry(const Parameter& parameter) {
  const ParameterSpec* spec = find_parameter_spec(parameter.key);
  const bool truth = spec != nullptr && spec->dimension == Dimension::boolean;
  std::string line =
      fmt::format("{} = {{ value = {}, unit = {}, source = {}, how = \"{}\"",
                  parameter.key.substr(parameter.key.rfind('.') + 1),
                  truth ? (parameter.value != 0 ? "true" : "false") : fmt::format("{}", parameter.value),
                  quoted(parameter.unit), quoted(parameter.source),
                  kProvenanceNames[static_cast<std::size_t>(parameter.how)]);
  if (!parameter.serves.empty()) line += fmt::format(", serves = {}", quoted(parameter.serves));
  if (parameter.residual > 0) line += fmt::format(", residual = {}", parameter.residual);
  return line + " }\n";
}

std::string ranges(const std::vector<FieldRange>& all) {
  std::string text;
  for (const FieldRange& range : all) {
    std::vector<std::string> names;
    for (const std::string& name : range.names) names.push_back(quoted(name));
    text += range.names.empty() ? fmt::format("{} = [{}, {}]\n", range.field, range.low, range.high)
                                : fmt::format("{} = [{}]\n", range.field, fmt::join(names, ", "));
  }
  return text;
}

// The entries of one table, in the order of `machine.parameters`.
std::string entries(const Machine& machine, const std::string& table) {
  std::string text;
  for (const Parameter& parameter : machine.parameters) {
    if (table_of(parameter.key) == table) text += entry(parameter);
  }
  return text;
}

}  // namespace

std::string write_machine(const Machine& machine, const std::string& head) {
  std::string text;
  std::istringstream lines(head);
  for (std::string line; std::getline(lines, line);) text += fmt::format("# {}\n", line);
  text += fmt::format("name = {}\ndescription = {}\nnodes = {}\ngpus_per_node = {}\n", quoted(machine.name),
                      quoted(machine.description), machine.nodes, machine.gpus_per_node);
  text += fmt::format("\n[gpu]\nname = {}\narch = {}\n", quoted(machine.gpu.name), quoted(machine.gpu.arch));
  text += entries(machine, "gpu");
  for (const std::string_view dtype : kDTypeNames) {
    const std::string table = fmt::format("gpu.matrix.{}", dtype);
    const std::string rates = entries(machine, table);
    if (!rates.empty()) text += fmt::format("\n[{}]\n{}", table, rates);
  }
  text += "\n[host]\n" + entries(machine, "host");
  const std::string engines = entries(machine, "copy_engine");
  if (!engines.empty()) text += "\n[copy_engine]\n" + engines;
  text += "\n[library]\n";
  const auto list = [&](std::string_view key, const auto& tables) {
    std::vector<std::string> names;
    for (const auto& table : tables) names.push_back(quoted(table->name()));
    if (!names.empty()) text += fmt::format("{} = [{}]\n", key, fmt::join(names, ", "));
  };
  list("products", machine.library_tables);
  list("collectives", machine.collective_tables);
  list("attention", machine.attention_tables);
  text += entries(machine, "library");
  text += fmt::format("\n[fabric]\nkind = \"{}\"\n",
                      kLinkKindNames[static_cast<std::size_t>(machine.fabric.kind)]);
  if (machine.fabric.multicast) text += "multicast = true\n";
  text += entries(machine, "fabric");
  const std::string network = entries(machine, "network");
  if (!network.empty() || machine.network.kind != NetworkKind::one_switch) {
    text += fmt::format("\n[network]\nkind = \"{}\"\n{}",
                        kNetworkKindNames[static_cast<std::size_t>(machine.network.kind)], network);
  }
  for (const Doubt& doubt : machine.doubts) {
    text += fmt::format("\n[[doubt]]\nworkload = {}\npattern = {}\n", quoted(doubt.workload),
                        quoted(doubt.pattern));
    text += ranges(doubt.ranges) + fmt::format("note = {}\n", quoted(doubt.note));
  }
  return text;
}

}  // namespace tritax
