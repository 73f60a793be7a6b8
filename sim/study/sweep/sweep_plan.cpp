#include "sim/study/sweep/sweep_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "model/core/error.hpp"
#include "model/core/with_place.hpp"
#include "model/machine/changes.hpp"
#include "model/scenario/toml_reader.hpp"
#include "model/workloads/registry.hpp"
#include "sim/study/sweep/sweep_values.hpp"

namespace tritax {

namespace {

constexpr std::array<std::string_view, 4> kGroups{"problem", "knobs", "set", "scale"};
constexpr std::array<std::string_view, 6> kPointKeys{"machine", "sustained", "workload",
                                                     "pattern", "seed",      "max_operations"};
constexpr std::array<std::string_view, 6> kLayerKeys{"model", "tp",       "phase",
                                                     "batch", "sequence", "sequence_parallel"};
constexpr std::array<std::string_view, 4> kAxisTables{"product", "zip", "random", "latin_hypercube"};
constexpr std::size_t kMostSamples = 1'000'000;

// "problem" and "m" of "problem.m"; "" and the key if it has no group.
std::pair<std::string, std::string> parts_of_key(const std::string& key) {
  const std::size_t dot = key.find('.');
  const std::string group = key.substr(0, dot);
  if (dot == std::string::npos || std::find(kGroups.begin(), kGroups.end(), group) == kGroups.end())
    return {"", key};
  return {group, key.substr(dot + 1)};
}

void give_point(nlohmann::json& point, const std::string& key, const nlohmann::json& value) {
  const auto [group, name] = parts_of_key(key);
  (group.empty() ? point : point[group])[name] = value;
}

// A table of one kind; there may be several of a kind: [zip] or [[zip]].
struct AxisTable {
  std::string_view kind;
  const toml::table* table = nullptr;
};

std::vector<AxisTable> axis_tables(TomlReader& reader, const std::string& origin) {
  std::vector<AxisTable> tables;
  for (const std::string_view kind : kAxisTables) {
    const toml::node* node = reader.find(kind);
    if (node == nullptr) continue;
    if (const toml::table* table = node->as_table()) {
      tables.push_back({kind, table});
      continue;
    }
    const toml::array* array = node->as_array();
    if (array == nullptr || array->empty() || !array->is_homogeneous(toml::node_type::table)) {
      throw UserError(fmt::format("{}:{}: {} must be a table", origin, node->source().begin.line, kind));
    }
    for (const toml::node& one : *array) tables.push_back({kind, one.as_table()});
  }
  std::stable_sort(tables.begin(), tables.end(), [](const AxisTable& a, const AxisTable& b) {
    return a.table->source().begin.line < b.table->source().begin.line;
  });
  return tables;
}

void add_product(SweepPlan& plan, const std::vector<SweepKey>& keys) {
  for (const SweepKey& key : keys) {
    SweepAxis axis{{key.name}, {}};
    for (nlohmann::json& value : sweep_values(key)) axis.rows.push_back({std::move(value)});
    plan.axes.push_back(std::move(axis));
  }
}

void add_zip(SweepPlan& plan, const std::vector<SweepKey>& keys) {
  SweepAxis axis;
  for (const SweepKey& key : keys) {
    const std::vector<nlohmann::json> values = sweep_values(key);
    if (axis.keys.empty()) axis.rows.resize(values.size());
    if (values.size() != axis.rows.size()) {
      throw UserError(fmt::format("{}{} values, but {} has {}; keys side by side need equally many",
                                  key.place, values.size(), axis.keys.front(), axis.rows.size()));
    }
    axis.keys.push_back(key.name);
    for (std::size_t i = 0; i < values.size(); ++i) axis.rows[i].push_back(values[i]);
  }
  plan.axes.push_back(std::move(axis));
}

void add_samples(SweepPlan& plan, const AxisTable& table, const std::string& origin,
                 const std::vector<SweepKey>& keys) {
  TomlReader reader({table.table}, origin, fmt::format("[{}]", table.kind));
  const auto count = static_cast<std::size_t>(reader.integer("samples", 1, kMostSamples));
  std::mt19937_64 random(static_cast<std::uint64_t>(reader.integer_or("seed", 0, std::int64_t{1} << 53, 1)));
  SweepAxis axis;
  axis.rows.resize(count);
  for (const SweepKey& key : keys) {
    axis.keys.push_back(key.name);
    std::vector<double> shares;
    if (table.kind == "latin_hypercube") {
      shares = latin_shares(count, random);
    } else {
      for (std::size_t i = 0; i < count; ++i) shares.push_back(uniform_share(random));
    }
    for (std::size_t i = 0; i < count; ++i) axis.rows[i].push_back(sampled_sweep_value(key, shares[i]));
  }
  plan.axes.push_back(std::move(axis));
}

void add_axes(SweepPlan& plan, const AxisTable& table, const std::string& origin,
              std::vector<SweepKey>& all_keys) {
  const bool sampled = table.kind == "random" || table.kind == "latin_hypercube";
  const std::vector<std::string> own =
      sampled ? std::vector<std::string>{"samples", "seed"} : std::vector<std::string>{};
  const std::vector<SweepKey> keys = sweep_keys(*table.table, origin, own);
  if (keys.empty()) {
    throw UserError(fmt::format("{}:{}: [{}] varies nothing; give it a key such as problem.m", origin,
                                table.table->source().begin.line, table.kind));
  }
  if (sampled) {
    add_samples(plan, table, origin, keys);
  } else if (table.kind == "zip") {
    add_zip(plan, keys);
  } else {
    add_product(plan, keys);
  }
  all_keys.insert(all_keys.end(), keys.begin(), keys.end());
}

// All values of `key` in the points.
std::vector<nlohmann::json> values_in(const SweepPlan& plan, const std::string& key) {
  std::vector<nlohmann::json> values;
  if (plan.common.contains(key)) values.push_back(plan.common.at(key));
  for (const SweepAxis& axis : plan.axes) {
    const auto found = std::find(axis.keys.begin(), axis.keys.end(), key);
    if (found == axis.keys.end()) continue;
    const auto place = static_cast<std::size_t>(found - axis.keys.begin());
    for (const auto& row : axis.rows) values.push_back(row[place]);
  }
  return values;
}

// The workloads that the points name; an unknown name is refused with its points.
std::vector<const Workload*> workloads_of(const SweepPlan& plan) {
  std::vector<const Workload*> named;
  const std::vector<nlohmann::json> names = values_in(plan, "workload");
  for (const Workload* one : workloads()) {
    const bool is_named =
        names.empty() ? one == workloads().front()
                      : std::any_of(names.begin(), names.end(), [&](const auto& name) {
                          return name.is_string() && is_called(*one, name.template get<std::string>());
                        });
    if (is_named) named.push_back(one);
  }
  return named;
}

[[noreturn]] void refuse_key(const SweepKey& key, const std::string& name, const std::string& what,
                             const std::vector<std::string>& known) {
  const std::string nearest = nearest_name(name, known);
  throw UserError(fmt::format("{}there is no such {}{}; allowed: {}", key.place, what,
                              nearest.empty() ? "" : fmt::format(" (did you mean '{}'?)", nearest),
                              fmt::join(known, ", ")));
}

void check_key(const SweepPlan& plan, const SweepKey& key) {
  const auto parts = parts_of_key(key.name);
  const auto& group = parts.first;
  const auto& name = parts.second;
  std::vector<std::string> known;
  if (group.empty()) {
    for (const std::string_view one : kPointKeys) known.emplace_back(one);
    for (const std::string_view one : kLayerKeys) known.emplace_back(one);
    for (const std::string_view one : {"dtype", "selector"}) known.emplace_back(one);
    for (const std::string_view one : kGroups) known.push_back(fmt::format("{}.KEY", one));
    if (std::find(known.begin(), known.end(), name) == known.end()) refuse_key(key, name, "key", known);
    return;
  }
  if (group == "set" || group == "scale") {
    const bool scales = group == "scale";
    const std::vector<nlohmann::json> values = values_in(plan, key.name);
    const nlohmann::json value = values.empty() ? one_sweep_value(key) : values.front();
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    with_place(key.place, [&] {
      parse_change(scales ? ChangeKind::scale : ChangeKind::set, fmt::format("{}={}", name, text),
                   GivenAs::argument);
    });
    return;
  }
  for (const Workload* one : workloads_of(plan)) {
    for (const Spec& spec : group == "problem" ? one->fields : one->knobs) known.emplace_back(spec.name);
  }
  if (std::find(known.begin(), known.end(), name) == known.end())
    refuse_key(key, name, group == "problem" ? "field" : "knob", known);
}

void check_keys(const SweepPlan& plan, const std::vector<SweepKey>& keys) {
  std::vector<std::string> seen;
  for (const SweepKey& key : keys) {
    if (std::find(seen.begin(), seen.end(), key.name) != seen.end()) {
      throw UserError(key.place + "it is given twice; leave one of them out");
    }
    seen.push_back(key.name);
    if (key.name != "ask") check_key(plan, key);
  }
  double count = 1;
  for (const SweepAxis& axis : plan.axes) count *= static_cast<double>(axis.rows.size());
  if (count > static_cast<double>(kMostSweepPoints)) {
    throw UserError(fmt::format("{}: {:.3g} points are more than the {} of one sweep; split it",
                                keys.front().place.substr(0, keys.front().place.find(':')), count,
                                kMostSweepPoints));
  }
}

}  // namespace

SweepQuestion SweepPlan::question() const {
  const auto found =
      std::find(kSweepQuestionNames.begin(), kSweepQuestionNames.end(), common.at("ask").get<std::string>());
  return static_cast<SweepQuestion>(found - kSweepQuestionNames.begin());
}

std::size_t SweepPlan::count() const {
  std::size_t count = 1;
  for (const SweepAxis& axis : axes) count *= axis.rows.size();
  return count;
}

nlohmann::json SweepPlan::point(std::size_t number) const {
  nlohmann::json point = common;
  std::size_t block = count();
  for (const SweepAxis& axis : axes) {
    block /= axis.rows.size();
    const auto& row = axis.rows[number / block % axis.rows.size()];
    for (std::size_t i = 0; i < axis.keys.size(); ++i) give_point(point, axis.keys[i], row[i]);
  }
  return point;
}

SweepPlan parse_sweep(std::string_view toml, const std::string& origin, const std::string& name) {
  const toml::table root = parse_toml(toml, origin);
  TomlReader reader({&root}, origin, "sweep");
  SweepPlan plan;
  plan.name = reader.text_or("name", name);
  if (plan.name.empty()) throw UserError(fmt::format("{}: name: it is empty", reader.where("name")));
  const int question = reader.choice("ask", kSweepQuestionNames, 0);
  plan.common = {{"ask", kSweepQuestionNames[static_cast<std::size_t>(question)]}};
  std::vector<SweepKey> keys;
  for (const toml::table* table : reader.tables("point")) {
    keys = sweep_keys(*table, origin, {});
    for (const SweepKey& key : keys) {
      if (key.name == "ask") throw UserError(key.place + "it stands above the tables, for all points");
      give_point(plan.common, key.name, one_sweep_value(key));
    }
  }
  for (const AxisTable& table : axis_tables(reader, origin)) add_axes(plan, table, origin, keys);
  reader.finish();
  if (keys.empty()) throw UserError(origin + ": there is no point; give [point] and [product]");
  check_keys(plan, keys);
  return plan;
}

SweepPlan read_sweep(const std::string& path) {
  return parse_sweep(read_text_file(path), path, std::filesystem::path(path).stem().string());
}

}  // namespace tritax
