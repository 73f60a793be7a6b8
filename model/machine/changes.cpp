#include "model/machine/changes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "model/core/error.hpp"
#include "model/machine/check_machine.hpp"
#include "model/machine/parameters.hpp"

namespace tritax {

namespace {

constexpr std::string_view kNodes = "nodes";
constexpr std::string_view kGpusPerNode = "gpus_per_node";
constexpr std::string_view kShareUnit = "share";

// Integers of a machine that are not parameters with a source.
struct Size {
  std::string_view key;
  int Machine::*field;
  int high;
};
constexpr std::array kSizes{Size{kNodes, &Machine::nodes, kMostNodes},
                            Size{kGpusPerNode, &Machine::gpus_per_node, kMostGpusPerNode}};

const Size* find_size(std::string_view key) {
  const auto* found = std::find_if(kSizes.begin(), kSizes.end(), [&](const Size& s) { return s.key == key; });
  return found == kSizes.end() ? nullptr : found;
}

constexpr std::array<std::string_view, 4> kPorts{"fabric.store_egress", "fabric.store_ingress",
                                                 "fabric.load_ingress", "fabric.load_egress"};

// Parameters that stay in proportion to a parameter.
std::vector<std::string_view> followers_of(std::string_view key, const Machine& machine) {
  if (key == "fabric.link") {
    std::vector<std::string_view> all(kPorts.begin(), kPorts.end());
    all.push_back("copy_engine.rate");
    return all;
  }
  if (key == kGpusPerNode && machine.fabric.kind == LinkKind::mesh) return {kPorts.begin(), kPorts.end()};
  if (key == "gpu.hbm_bandwidth") return {"gpu.hbm_write_bandwidth"};
  if (key == "gpu.l2_bandwidth") return {"gpu.l2_lock_step_bandwidth"};
  if (key == "gpu.lds_per_cu") return {"gpu.lds_per_workgroup_max"};
  return {};
}

std::vector<std::string> all_keys() {
  std::vector<std::string> keys{std::string(kNodes), std::string(kGpusPerNode)};
  for (const ParameterSpec& spec : parameter_specs()) {
    if (spec.table == "gpu.matrix") {
      for (const std::string_view dtype : kDTypeNames) {
        keys.push_back(fmt::format("gpu.matrix.{}.{}", dtype, spec.name));
      }
    } else {
      keys.push_back(spec.table.empty() ? std::string(spec.name)
                                        : fmt::format("{}.{}", spec.table, spec.name));
    }
  }
  return keys;
}

// "link" means fabric.link; otherwise the key with the nearest spelling.
std::string nearest_key(const std::string& key) {
  const std::vector<std::string> keys = all_keys();
  for (const std::string& known : keys) {
    if (known.ends_with("." + key)) return known;
  }
  return nearest_name(key, keys);
}

bool is_parameter(const std::string& key) {
  const std::vector<std::string> keys = all_keys();
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

std::string_view option_of(ChangeKind kind) { return kind == ChangeKind::set ? "--set" : "--scale"; }

// Name of a change of kind `kind` in messages: as option or argument, like `change`.
std::string_view name_like(const ParameterChange& change, ChangeKind kind) {
  const std::string_view option = option_of(kind);
  return change.given_as == GivenAs::option ? option : option.substr(option.find_first_not_of('-'));
}

std::string as_given(const ParameterChange& change) {
  return fmt::format("{} {}", name_like(change, change.kind), change.text);
}

[[noreturn]] void refuse(const ParameterChange& change, const std::string& problem) {
  throw UserError(fmt::format("{}: {}", as_given(change), problem));
}

std::string with_unit(double value, std::string_view unit, Dimension dimension) {
  if (dimension == Dimension::boolean) return value != 0 ? "true" : "false";
  return unit.empty() ? fmt::format("{}", value) : fmt::format("{} {}", value, unit);
}

// Number and unit of "32GB/s", "32 GB/s", "0.5", "true".
void read_amount(ParameterChange& change, std::string_view amount) {
  const ParameterSpec* spec = find_parameter_spec(change.key);
  if (change.kind == ChangeKind::set && spec != nullptr && spec->dimension == Dimension::boolean) {
    if (amount != "true" && amount != "false") refuse(change, "the value is true or false");
    change.value = amount == "true" ? 1 : 0;
    return;
  }
  const char* const end = amount.data() + amount.size();
  const auto [stop, error] = std::from_chars(amount.data(), end, change.value);
  if (error == std::errc::invalid_argument) {
    refuse(change, fmt::format("'{}' does not begin with a number", amount));
  }
  if (error == std::errc::result_out_of_range || !std::isfinite(change.value)) {
    refuse(change, fmt::format("'{}' is out of range", amount));
  }
  std::string_view unit(stop, static_cast<std::size_t>(end - stop));
  unit.remove_prefix(std::min(unit.find_first_not_of(' '), unit.size()));
  change.unit = unit;
}

void check_set(ParameterChange& change) {
  if (const Size* size = find_size(change.key)) {
    const bool whole = change.value == std::floor(change.value);
    if (!change.unit.empty() || !whole || change.value < 1 || change.value > size->high) {
      refuse(change, fmt::format("must be a whole number from 1 to {}", size->high));
    }
    return;
  }
  const ParameterSpec& spec = *find_parameter_spec(change.key);
  if (spec.dimension == Dimension::share && change.unit.empty()) change.unit = kShareUnit;
  if (change.unit.empty() && unit_factor(spec.dimension, "") == 0) {
    refuse(change, fmt::format("has no unit; give one of {}", unit_names(spec.dimension)));
  }
  const std::string problem = value_problem(spec, change.value, change.unit);
  if (!problem.empty()) refuse(change, problem);
}

void check_scale(const ParameterChange& change) {
  const ParameterSpec* spec = find_parameter_spec(change.key);
  if (spec == nullptr) refuse(change, fmt::format("only {} changes it", name_like(change, ChangeKind::set)));
  if (spec->dimension == Dimension::boolean) {
    refuse(change, fmt::format("it is true or false; use {}", name_like(change, ChangeKind::set)));
  }
  if (!change.unit.empty()) {
    refuse(change, fmt::format("'{}' is behind the factor; a factor has no unit", change.unit));
  }
  if (!(change.value > 0)) refuse(change, "a factor is above 0");
}

Parameter* find_entry(Machine& machine, std::string_view key) {
  const auto found = std::find_if(machine.parameters.begin(), machine.parameters.end(),
                                  [&](const Parameter& p) { return p.key == key; });
  return found == machine.parameters.end() ? nullptr : &*found;
}

// Changes of one machine, one after the other.
class Changer {
 public:
  Changer(Machine& machine, std::span<const ParameterChange> changes)
      : machine_(machine), changes_(changes) {}

  void apply(const ParameterChange& change) {
    if (const Size* size = find_size(change.key)) {
      const int was = machine_.*(size->field);
      machine_.*(size->field) = static_cast<int>(change.value);
      note({change.key, fmt::format("{}", change.value), fmt::format("{}", was), false});
      // A mesh has a link to each other GPU. One GPU alone has none, and its ports do not matter.
      const bool links = change.key == kGpusPerNode && was > 1 && change.value > 1;
      if (links) follow(change, (change.value - 1) / (was - 1));
      return;
    }
    const ParameterSpec& spec = *find_parameter_spec(change.key);
    const double before = parameter_value(machine_, change.key);
    if (change.kind == ChangeKind::set) {
      write(change, change.key, change.value, change.unit, false);
    } else {
      const Parameter* entry = find_entry(machine_, change.key);
      if (entry == nullptr || entry->value == 0) {
        refuse(change, fmt::format("'{}' has none to scale; {} gives it one", machine_.name,
                                   name_like(change, ChangeKind::set)));
      }
      const double value = entry->value * change.value;
      if (const std::string problem = value_problem(spec, value, entry->unit); !problem.empty()) {
        refuse(change, problem);
      }
      write(change, change.key, value, entry->unit, false);
    }
    if (before > 0) follow(change, parameter_value(machine_, change.key) / before);
  }

 private:
  void follow(const ParameterChange& change, double ratio) {
    for (const std::string_view key : followers_of(change.key, machine_)) {
      const bool given =
          std::any_of(changes_.begin(), changes_.end(), [&](const auto& other) { return other.key == key; });
      const Parameter* entry = find_entry(machine_, key);
      if (given || entry == nullptr || entry->value == 0) continue;
      const double value = entry->value * ratio;
      const std::string problem = value_problem(*find_parameter_spec(key), value, entry->unit);
      if (!problem.empty()) refuse(change, fmt::format("{}, which follows it: {}", key, problem));
      write(change, std::string(key), value, entry->unit, true);
    }
  }

  // Writes a checked value and its provenance; the value of the file again is no change.
  void write(const ParameterChange& change, const std::string& key, double value, const std::string& unit,
             bool follows) {
    const ParameterSpec& spec = *find_parameter_spec(key);
    if (parameter_value(machine_, key) == value * unit_factor(spec.dimension, unit)) return;  // as it is
    Parameter* entry = find_entry(machine_, key);
    std::string was;
    if (entry == nullptr) {
      require_table(change);
      entry = &machine_.parameters.emplace_back();
      entry->key = key;
    } else {
      was = with_unit(entry->value, entry->unit, spec.dimension);
    }
    entry->source = fmt::format("{} {}{}", option_of(change.kind), change.text,
                                was.empty() ? "" : fmt::format("; in the file: {}, {}", was, entry->source));
    entry->value = value;
    entry->unit = unit;
    entry->how = Provenance::assumed;
    entry->serves.clear();  // those rows did not set the new value
    entry->residual = 0;
    set_parameter_value(machine_, key, value * unit_factor(spec.dimension, unit));
    note({key, with_unit(value, unit, spec.dimension), was, follows});
  }

  // A table of a dtype is complete or absent.
  void require_table(const ParameterChange& change) const {
    const std::string table = change.key.substr(0, change.key.rfind('.') + 1);
    if (!table.starts_with("gpu.matrix.")) return;
    const bool there =
        std::any_of(machine_.parameters.begin(), machine_.parameters.end(),
                    [&](const Parameter& parameter) { return parameter.key.starts_with(table); });
    if (!there) {
      refuse(change, fmt::format("the matrix cores of '{}' do not have this dtype; a machine file with "
                                 "base = \"{}\" can give it to them",
                                 machine_.name, machine_.name));
    }
  }

  void note(MachineChange change) { machine_.changes.push_back(std::move(change)); }

  Machine& machine_;
  std::span<const ParameterChange> changes_;
};

std::string texts_of(std::span<const ParameterChange> changes) {
  std::vector<std::string> texts;
  for (const ParameterChange& change : changes) texts.push_back(as_given(change));
  return fmt::format("{}", fmt::join(texts, " "));
}

void require_sense(const Machine& machine, std::span<const ParameterChange> changes) {
  if (const std::vector<Inconsistency> found = find_inconsistencies(machine); !found.empty()) {
    throw UserError(fmt::format("{}: machine '{}' makes no sense then: {}: {}", texts_of(changes),
                                machine.name, found.front().key, found.front().problem));
  }
  for (const ParameterSpec& spec : parameter_specs()) {
    if (spec.presence != Presence::several_nodes || machine.nodes == 1) continue;
    const std::string key = fmt::format("{}.{}", spec.table, spec.name);
    if (parameter_value(machine, key) > 0) continue;
    throw UserError(fmt::format("{}: a machine of {} nodes needs {} ({}); {} it as well", texts_of(changes),
                                machine.nodes, key, spec.meaning,
                                name_like(changes.front(), ChangeKind::set)));
  }
}

}  // namespace

std::string ParameterChange::as_option() const {
  const bool blank = text.find(' ') != std::string::npos;
  return fmt::format(" {} {}{}{}", option_of(kind), blank ? "'" : "", text, blank ? "'" : "");
}

ParameterChange parse_change(ChangeKind kind, const std::string& text, GivenAs given_as) {
  ParameterChange change;
  change.kind = kind;
  change.text = text;
  change.given_as = given_as;
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    refuse(change, kind == ChangeKind::set ? "is no KEY=VALUE, for example fabric.link=32GB/s"
                                           : "is no KEY=FACTOR, for example gpu.hbm_bandwidth=0.5");
  }
  change.key = text.substr(0, equals);
  if (find_size(change.key) == nullptr && !is_parameter(change.key)) {
    const std::string nearest = nearest_key(change.key);
    refuse(change,
           fmt::format("'{}' is no parameter of a machine{}; 'tritax machines show NAME' lists them",
                       change.key, nearest.empty() ? "" : fmt::format(" (did you mean '{}'?)", nearest)));
  }
  read_amount(change, std::string_view(text).substr(equals + 1));
  if (kind == ChangeKind::set) {
    check_set(change);
  } else {
    check_scale(change);
  }
  return change;
}

Machine changed(Machine machine, std::span<const ParameterChange> changes) {
  if (changes.empty()) return machine;
  Changer changer(machine, changes);
  for (std::size_t i = 0; i < changes.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (changes[i].key == changes[j].key) {
        refuse(changes[i], fmt::format("{} changes it too; give one", as_given(changes[j])));
      }
    }
    changer.apply(changes[i]);
  }
  require_sense(machine, changes);
  return machine;
}

std::vector<std::string> describe_changes(const Machine& machine) {
  std::vector<std::string> texts;
  for (const MachineChange& change : machine.changes) {
    texts.push_back(fmt::format("{}={} ({})", change.key, change.value,
                                change.was.empty() ? "none in the file" : "was " + change.was));
  }
  return texts;
}

std::string Machine::title() const {
  std::string text = name;
  for (const MachineChange& change : changes) {
    if (change.follows) continue;
    text += fmt::format("{}{}={}", text.size() == name.size() ? " with " : ", ", change.key, change.value);
  }
  return text;
}

}  // namespace tritax
