// Reads machine files: TOML → checked `Machine`. parameters.cpp lists the keys.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <span>
#include <tuple>
#include <utility>

#include "model/core/error.hpp"
#include "model/core/toml.hpp"
#include "model/machine/base_machine.hpp"
#include "model/machine/check_machine.hpp"
#include "model/machine/library_table.hpp"
#include "model/machine/machine.hpp"
#include "model/machine/parameters.hpp"
#include "model/machine/read_doubts.hpp"

namespace tritax {

namespace {

std::string dotted(std::string_view table, std::string_view name) {
  return table.empty() ? std::string(name) : fmt::format("{}.{}", table, name);
}

// One pass over one machine file.
class MachineReader {
 public:
  MachineReader(const toml::table& root, const std::string& origin) : root_(root), origin_(origin) {}

  Machine read();

 private:
  struct Number {
    double value = 0;   // as written
    std::string unit;   // as written
    double factor = 1;  // to the internal unit
  };

  // A node that comes from a base has its place in the file of the base.
  std::string place(const toml::node& node) const {
    const auto& path = node.source().path;
    const std::string base = path == nullptr || *path == origin_ ? "" : fmt::format("{}: base ", origin_);
    return fmt::format("{}{}:{}", base, base.empty() ? origin_ : *path,
                       std::max<std::uint32_t>(node.source().begin.line, 1));
  }
  [[noreturn]] void fail(const toml::node& node, const std::string& key, const std::string& problem) const {
    throw UserError(fmt::format("{}: {}: {}", place(node), key, problem));
  }

  const toml::node& require(const toml::table& table, std::string_view path, std::string_view name) const;
  const toml::table& subtable(const toml::table& table, std::string_view path, std::string_view name) const;
  std::string text(const toml::table& table, std::string_view path, std::string_view name) const;
  std::size_t kind_of(const toml::table& table, std::string_view path,
                      std::span<const std::string_view> names) const;
  int whole_number(std::string_view name, int high) const;

  void refuse_unknown_keys(const toml::table& table, std::string_view path,
                           const std::vector<std::string>& known) const;
  void read_table(const toml::table& table, std::string_view path, std::string_view spec_table,
                  const std::vector<std::string>& other_keys, MatrixRate* rate);
  void read_matrix_rates(const toml::table& gpu);
  void read_library_tables(const toml::table& library);
  template <typename Kind, typename Names, typename Find, typename FolderOf, typename Tables>
  void read_tables(const toml::table& library, std::string_view list, const Names& names, const Find& find,
                   const FolderOf& folder_of, Tables& tables);
  void read_parameter(const toml::node& node, const std::string& key, const ParameterSpec& spec,
                      MatrixRate* rate);
  Number read_value(const toml::table& entry, const std::string& key, const ParameterSpec& spec) const;
  void read_provenance(const toml::table& entry, Parameter& parameter) const;
  void assign(const ParameterTarget& target, double value, MatrixRate* rate);

  const toml::table& root_;
  const std::string& origin_;
  Machine machine_;
};

const toml::node& MachineReader::require(const toml::table& table, std::string_view path,
                                         std::string_view name) const {
  const toml::node* node = table.get(name);
  if (!node) fail(table, dotted(path, name), "is missing");
  return *node;
}

const toml::table& MachineReader::subtable(const toml::table& table, std::string_view path,
                                           std::string_view name) const {
  const toml::node& node = require(table, path, name);
  const toml::table* found = node.as_table();
  if (!found) fail(node, dotted(path, name), fmt::format("must be a table, [{}]", dotted(path, name)));
  return *found;
}

std::string MachineReader::text(const toml::table& table, std::string_view path,
                                std::string_view name) const {
  const toml::node& node = require(table, path, name);
  const auto* value = node.as_string();
  if (!value || value->get().empty()) fail(node, dotted(path, name), "must be a text that is not empty");
  return value->get();
}

// The index in `names` of the table's `kind`.
std::size_t MachineReader::kind_of(const toml::table& table, std::string_view path,
                                   std::span<const std::string_view> names) const {
  const std::string kind = text(table, path, "kind");
  const auto found = std::find(names.begin(), names.end(), kind);
  if (found == names.end()) {
    fail(*table.get("kind"), dotted(path, "kind"),
         fmt::format("\"{}\" is unknown; allowed: {}", kind, fmt::join(names, ", ")));
  }
  return static_cast<std::size_t>(found - names.begin());
}

int MachineReader::whole_number(std::string_view name, int high) const {
  const toml::node& node = require(root_, "", name);
  const auto* value = node.as_integer();
  if (!value || value->get() < 1 || value->get() > high) {
    fail(node, std::string(name), fmt::format("must be a whole number from 1 to {}", high));
  }
  return static_cast<int>(value->get());
}

void MachineReader::refuse_unknown_keys(const toml::table& table, std::string_view path,
                                        const std::vector<std::string>& known) const {
  for (const auto& [key, node] : table) {
    const std::string name(key.str());
    bool found = false;
    for (const std::string& candidate : known) found = found || candidate == name;
    if (found) continue;
    const std::string nearest = nearest_name(name, known);
    std::string cure;
    if (!nearest.empty()) {
      cure = fmt::format("; did you mean \"{}\"?", nearest);
    } else {
      cure = "; known here:";
      for (const std::string& candidate : known) cure += " " + candidate;
    }
    fail(node, dotted(path, name), "unknown key" + cure);
  }
}

// Reads all parameters of one table. The caller reads `other_keys`; `rate` receives the table of a dtype.
void MachineReader::read_table(const toml::table& table, std::string_view path, std::string_view spec_table,
                               const std::vector<std::string>& other_keys, MatrixRate* rate) {
  std::vector<std::string> known = other_keys;
  for (const ParameterSpec& spec : parameter_specs()) {
    if (spec.table == spec_table) known.emplace_back(spec.name);
  }
  refuse_unknown_keys(table, path, known);
  for (const ParameterSpec& spec : parameter_specs()) {
    if (spec.table != spec_table) continue;
    const std::string key = dotted(path, spec.name);
    const toml::node* node = table.get(spec.name);
    if (node) {
      read_parameter(*node, key, spec, rate);
      continue;
    }
    if (spec.presence == Presence::required) fail(table, key, fmt::format("is missing ({})", spec.meaning));
    if (spec.presence == Presence::several_nodes && machine_.nodes > 1) {
      fail(table, key, fmt::format("is missing; a machine of {} nodes needs it", machine_.nodes));
    }
  }
}

// A missing table of a dtype means that the matrix cores of the GPU do not support the dtype.
void MachineReader::read_matrix_rates(const toml::table& gpu) {
  const toml::table& matrix = subtable(gpu, "gpu", "matrix");
  std::vector<std::string> dtypes;
  for (const std::string_view dtype : kDTypeNames) dtypes.emplace_back(dtype);
  refuse_unknown_keys(matrix, "gpu.matrix", dtypes);
  if (matrix.empty())
    fail(matrix, "gpu.matrix", fmt::format("needs at least one dtype: {}", fmt::join(dtypes, ", ")));
  for (std::size_t i = 0; i < dtypes.size(); ++i) {
    if (!matrix.contains(dtypes[i])) continue;
    const toml::table& table = subtable(matrix, "gpu.matrix", dtypes[i]);
    read_table(table, "gpu.matrix." + dtypes[i], "gpu.matrix", {}, &machine_.gpu.matrix[i]);
  }
}

// `names`: kinds of rows of a table. No two tables may both have rows of one kind.
template <typename Kind, typename Names, typename Find, typename FolderOf, typename Tables>
void MachineReader::read_tables(const toml::table& library, std::string_view list, const Names& names,
                                const Find& find, const FolderOf& folder_of, Tables& tables) {
  const toml::node* given = library.get(list);
  if (given == nullptr) return;
  const std::string key = dotted("library", list);
  if (!given->is_array()) fail(*given, key, "must be a list of names of tables, or of paths of .csv files");
  for (const toml::node& name : *given->as_array()) {
    if (!name.is_string()) fail(name, key, "must be a list of texts");
    typename Tables::value_type table;
    try {
      table = find(name.as_string()->get(), folder_of(name));
    } catch (const UserError& error) {
      fail(name, key, error.what());
    }
    for (const auto& other : tables) {
      for (std::size_t i = 0; i < names.size(); ++i) {
        const auto kind = static_cast<Kind>(i);
        if (!table->knows(kind) || !other->knows(kind)) continue;
        fail(name, key,
             fmt::format("{} and {} both have rows of {}", other->name(), table->name(), names[i]));
      }
    }
    tables.push_back(std::move(table));
  }
}

// Names of tables of measured calls.
void MachineReader::read_library_tables(const toml::table& library) {
  // Relative to the file that names the table, which may be the file of a base.
  const auto folder_of = [&](const toml::node& node) {
    const auto& path = node.source().path;
    return std::filesystem::path(path == nullptr ? origin_ : *path).parent_path().string();
  };
  read_tables<DType>(library, "products", kDTypeNames, find_library_table, folder_of,
                     machine_.library_tables);
  read_tables<CollectiveKind>(library, "collectives", kCollectiveNames, find_collective_table, folder_of,
                              machine_.collective_tables);
  read_tables<DType>(library, "attention", kDTypeNames, find_attention_table, folder_of,
                     machine_.attention_tables);
}

void MachineReader::read_parameter(const toml::node& node, const std::string& key, const ParameterSpec& spec,
                                   MatrixRate* rate) {
  const toml::table* entry = node.as_table();
  if (!entry) {
    fail(node, key, "must be written { value = …, unit = \"…\", source = \"…\", how = \"…\" }");
  }
  refuse_unknown_keys(*entry, key, {"value", "unit", "source", "how", "serves", "residual"});
  const Number number = read_value(*entry, key, spec);
  Parameter parameter;
  parameter.key = key;
  parameter.value = number.value;
  parameter.unit = number.unit;
  read_provenance(*entry, parameter);
  machine_.parameters.push_back(parameter);
  assign(spec.target, number.value * number.factor, rate);
}

MachineReader::Number MachineReader::read_value(const toml::table& entry, const std::string& key,
                                                const ParameterSpec& spec) const {
  const toml::node& node = require(entry, key, "value");
  Number number;
  if (spec.dimension == Dimension::boolean) {
    const auto* truth = node.as_boolean();
    if (!truth) fail(node, key, "value must be true or false");
    number.value = truth->get() ? 1 : 0;
  } else if (const auto* integer = node.as_integer()) {
    number.value = static_cast<double>(integer->get());
  } else if (const auto* real = node.as_floating_point()) {
    number.value = real->get();
  } else {
    fail(node, key, "value must be a number");
  }
  if (const toml::node* unit = entry.get("unit")) {
    if (!unit->is_string()) fail(*unit, key, "unit must be a text");
    number.unit = unit->as_string()->get();
  }
  if (const std::string problem = value_problem(spec, number.value, number.unit); !problem.empty()) {
    fail(entry, key, problem);
  }
  number.factor = unit_factor(spec.dimension, number.unit);
  return number;
}

void MachineReader::read_provenance(const toml::table& entry, Parameter& parameter) const {
  const std::string how = text(entry, parameter.key, "how");
  std::string allowed;
  bool found = false;
  for (std::size_t i = 0; i < kProvenanceNames.size(); ++i) {
    allowed += fmt::format("{}{}", i == 0 ? "" : ", ", kProvenanceNames[i]);
    if (how != kProvenanceNames[i]) continue;
    parameter.how = static_cast<Provenance>(i);
    found = true;
  }
  if (!found) fail(entry, parameter.key, fmt::format("how = \"{}\" is unknown; allowed: {}", how, allowed));

  const auto* source = entry["source"].as_string();
  if (!source || source->get().empty()) {
    fail(entry, parameter.key,
         parameter.how == Provenance::assumed ? "an assumed value needs its reason in `source`"
                                              : "`source` must name where the value comes from");
  }
  parameter.source = source->get();

  if (entry.contains("serves")) parameter.serves = text(entry, parameter.key, "serves");
  if (const toml::node* residual = entry.get("residual")) {
    const auto value = residual->value<double>();
    if (!value || !(*value >= 0 && *value < 1))
      fail(*residual, parameter.key, "residual must be at least 0 and below 1");
    parameter.residual = *value;
  }
}

void MachineReader::assign(const ParameterTarget& target, double value, MatrixRate* rate) {
  MatrixRate none;
  const auto parts =
      std::tie(machine_, machine_.gpu, rate ? *rate : none, machine_.interpreter, machine_.host,
               machine_.copy_engine, machine_.library, machine_.fabric, machine_.network);
  std::visit([&]<typename Field, typename Part>(
                 Field Part::*member) { std::get<Part&>(parts).*member = static_cast<Field>(value); },
             target);
}

Machine MachineReader::read() {
  machine_.file = origin_;
  if (root_.contains("base")) machine_.base = text(root_, "", "base");
  machine_.name = text(root_, "", "name");
  machine_.description = text(root_, "", "description");
  machine_.nodes = whole_number("nodes", kMostNodes);
  machine_.gpus_per_node = whole_number("gpus_per_node", kMostGpusPerNode);
  read_table(root_, "", "",
             {"name", "base", "description", "nodes", "gpus_per_node", "gpu", "host", "copy_engine",
              "library", "fabric", "network", "doubt"},
             nullptr);
  const Refuse refuse = [this](const toml::node& node, const std::string& key, const std::string& problem) {
    fail(node, key, problem);
  };
  machine_.doubts = read_doubts(root_, refuse);

  const toml::table& gpu = subtable(root_, "", "gpu");
  machine_.gpu.name = text(gpu, "gpu", "name");
  machine_.gpu.arch = text(gpu, "gpu", "arch");
  read_table(gpu, "gpu", "gpu", {"name", "arch", "matrix"}, nullptr);
  read_matrix_rates(gpu);
  read_table(subtable(root_, "", "host"), "host", "host", {}, nullptr);
  if (root_.contains("copy_engine")) {
    read_table(subtable(root_, "", "copy_engine"), "copy_engine", "copy_engine", {}, nullptr);
  }
  const toml::table& library = subtable(root_, "", "library");
  read_table(library, "library", "library", {"products", "collectives", "attention"}, nullptr);
  read_library_tables(library);

  const toml::table& fabric = subtable(root_, "", "fabric");
  machine_.fabric.kind = static_cast<LinkKind>(kind_of(fabric, "fabric", kLinkKindNames));
  read_table(fabric, "fabric", "fabric", {"kind", "multicast"}, nullptr);
  if (const toml::node* multicast = fabric.get("multicast")) {
    if (!multicast->is_boolean()) fail(*multicast, "fabric.multicast", "must be true or false");
    machine_.fabric.multicast = multicast->as_boolean()->get();
    if (machine_.fabric.multicast && machine_.fabric.kind != LinkKind::node_switch)
      fail(*multicast, "fabric.multicast",
           fmt::format("needs a switch; fabric.kind is {}",
                       kLinkKindNames[static_cast<std::size_t>(machine_.fabric.kind)]));
  }
  if (root_.contains("network")) {
    const toml::table& network = subtable(root_, "", "network");
    machine_.network.kind = static_cast<NetworkKind>(kind_of(network, "network", kNetworkKindNames));
    read_table(network, "network", "network", {"kind"}, nullptr);
  }

  // Later changes may change the power limit; the load clocks stay measured under the limit of the file.
  Gpu& of_file = machine_.gpu;
  if (of_file.load_power_w == 0) of_file.load_power_w = of_file.power_limit_w;

  for (const Inconsistency& found : find_inconsistencies(machine_)) {
    const toml::node* node = root_.at_path(found.key).node();
    fail(node ? *node : root_, found.key, found.problem);
  }
  return std::move(machine_);
}

}  // namespace

Machine parse_machine(std::string_view toml, const std::string& origin) {
  const toml::table root = with_base(parse_toml(toml, origin), origin);
  return MachineReader(root, origin).read();
}

}  // namespace tritax
