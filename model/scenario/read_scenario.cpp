#include "model/scenario/read_scenario.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <span>
#include <utility>

#include "model/core/error.hpp"
#include "model/scenario/toml_reader.hpp"
#include "model/workload/file_values.hpp"
#include "model/workloads/registry.hpp"

namespace tritax {

namespace embedded {
// Defined in the generated file: (file stem, file text) of scenarios/*.toml.
std::span<const std::pair<std::string_view, std::string_view>> scenario_files();
}  // namespace embedded

namespace {

std::string allowed_shape(const Spec& spec) {
  const std::string numbers = spec.step > 1
                                  ? fmt::format("multiples of {} up to {}", spec.step, spec.high)
                                  : fmt::format("whole numbers between {} and {}", spec.low, spec.high);
  return fmt::format("an array of {} {}", spec.columns(), numbers);
}

// A usual value below the allowed range means "left out"; a file may also write this value.
std::int64_t lowest_of(const Spec& spec) {
  return spec.required ? spec.low : std::min(spec.low, spec.usual[0]);
}

// A shape as an array, or as `tritax advise` writes it: "256x256x64".
std::vector<std::int64_t> read_shape(TomlReader& reader, const Spec& spec) {
  const toml::node* node = reader.find(spec.name);
  if (node == nullptr || !node->is_string()) {
    return reader.integers(spec.name, spec.columns(), lowest_of(spec), spec.high, allowed_shape(spec));
  }
  const std::string text = reader.text(spec.name);
  std::vector<std::int64_t> numbers;
  const char* const end = text.data() + text.size();
  for (const char* begin = text.data(); begin <= end; ++begin) {
    std::int64_t number = 0;
    const auto [stop, error] = std::from_chars(begin, end, number);
    if (error != std::errc() || (stop != end && *stop != 'x') || number < lowest_of(spec) ||
        number > spec.high) {
      numbers.clear();
      break;
    }
    numbers.push_back(number);
    begin = stop;
  }
  if (numbers.size() == spec.columns()) return numbers;
  throw UserError(fmt::format("{}: {} must be {}", reader.where(spec.name), spec.name, allowed_shape(spec)));
}

// Either all parts of a shape are left out, or none.
void check_shape(const std::vector<std::int64_t>& numbers, TomlReader& reader, const Spec& spec) {
  const auto below =
      std::count_if(numbers.begin(), numbers.end(), [&](std::int64_t n) { return n < spec.low; });
  if (below == 0 || static_cast<std::size_t>(below) == numbers.size()) return;
  throw UserError(fmt::format("{}: {} must be {}", reader.where(spec.name), spec.name, allowed_shape(spec)));
}

// Reads one value of a table, if the file has it.
void read_value(TomlReader& reader, std::size_t index, Values& values) {
  const Spec& spec = values.specs()[index];
  if (!spec.required && !reader.has(spec.name)) return;
  const std::size_t column = values.first_column(index);
  if (spec.columns() > 1) {
    const std::vector<std::int64_t> numbers = read_shape(reader, spec);
    check_shape(numbers, reader, spec);
    for (std::size_t part = 0; part < numbers.size(); ++part) values.give_at(column + part, numbers[part]);
    return;
  }
  switch (spec.kind) {
    case ValueKind::integer:
      values.give_at(column, reader.integer(spec.name, lowest_of(spec), spec.high, spec.allowed));
      break;
    case ValueKind::name:
      values.give_at(column, reader.choice(spec.name, spec.names));
      break;
    case ValueKind::boolean:
      values.give_at(column, reader.boolean_or(spec.name, false) ? 1 : 0);
      break;
    case ValueKind::file:
      values.give_at(column, number_of_file(path_beside(reader.text(spec.name), reader.origin())));
      break;
    case ValueKind::bytes:
      values.give_at(column, reader.bytes(spec.name, spec.low, spec.high));
      break;
  }
}

Problem read_problem(TomlReader& reader) {
  const std::string name = reader.text("workload");
  Problem problem = problem_of(find_workload(name, reader.where("workload")));
  for (std::size_t i = 0; i < problem.values.specs().size(); ++i) read_value(reader, i, problem.values);
  complete_problem(problem, [&](std::string_view field) { return reader.where(field); });
  return problem;
}

void read_knobs(TomlReader& file, const std::string& origin, Values& knobs) {
  const auto tables = file.tables("knobs");
  if (tables.empty()) return;
  TomlReader reader(tables, origin, "table of knobs");
  for (std::size_t i = 0; i < knobs.specs().size(); ++i) read_value(reader, i, knobs);
  reader.finish();
}

// The patterns that a scenario names; without any, the usual pattern, or an empty name if a pattern must be
// chosen.
std::vector<std::string> read_patterns(TomlReader& reader, const Workload& workload) {
  if (reader.has("pattern")) {
    std::vector<std::string> patterns = reader.texts("pattern");
    for (const std::string& pattern : patterns) find_pattern(workload, pattern, reader.where("pattern"));
    return patterns;
  }
  const std::string key(workload.library_key);
  if (!key.empty() && reader.boolean_or(key, false)) return {key};
  return {std::string(workload.usual_pattern)};
}

// Ids identify the rows of `tritax measure`, in a table without quotes.
void check_id(const Scenario& scenario) {
  if (scenario.id.empty()) throw UserError(fmt::format("{}: this scenario has no 'id'", scenario.where));
  if (scenario.id.front() == '#' || scenario.id.find_first_of(",\"") != std::string::npos) {
    throw UserError(fmt::format(
        "{}: id '{}' is not allowed; ids have no commas and no quotation marks, and do not begin with #",
        scenario.where, scenario.id));
  }
}

}  // namespace

std::vector<Scenario> scenarios_from_tables(std::vector<const toml::table*> chain,
                                            const std::string& origin) {
  TomlReader reader(std::move(chain), origin, "scenario");
  Scenario scenario;
  scenario.where = reader.where();
  scenario.id = reader.text_or("id", "");
  scenario.title = reader.text_or("title", "");
  scenario.machine = reader.text("machine");
  if (scenario.machine.empty()) {
    throw UserError(scenario.where + ": machine is empty; give the name of a shipped one or a path");
  }
  scenario.problem = read_problem(reader);
  scenario.knobs = Values(scenario.problem.workload->knobs);
  read_knobs(reader, origin, scenario.knobs);
  const std::vector<std::string> patterns = read_patterns(reader, *scenario.problem.workload);
  reader.finish();
  std::vector<Scenario> scenarios;
  for (const std::string& pattern : patterns) {
    Scenario& one = scenarios.emplace_back(scenario);
    one.pattern = pattern;
    if (patterns.size() > 1) one.id += "/" + pattern;
  }
  return scenarios;
}

std::vector<Scenario> parse_scenarios(std::string_view toml, const std::string& origin) {
  const toml::table root = parse_toml(toml, origin);
  TomlReader file({&root}, origin, "scenario file");
  const auto defaults = file.tables("defaults");
  const toml::node* list = file.find("scenario");
  file.finish();
  const toml::array* tables = list == nullptr ? nullptr : list->as_array();
  if (tables == nullptr || tables->empty()) {
    throw UserError(fmt::format("{}: a scenario file holds at least one [[scenario]] table", origin));
  }
  std::vector<Scenario> scenarios;
  std::map<std::string, std::string> places;  // of the ids
  for (const toml::node& node : *tables) {
    const toml::table* table = node.as_table();
    if (table == nullptr)
      throw UserError(fmt::format("{}: scenario must be written as [[scenario]]", file.where(node)));
    std::vector<const toml::table*> chain{table};
    chain.insert(chain.end(), defaults.begin(), defaults.end());
    for (Scenario& scenario : scenarios_from_tables(std::move(chain), origin)) {
      check_id(scenario);
      const auto [place, fresh] = places.emplace(scenario.id, scenario.where);
      if (!fresh) {
        throw UserError(fmt::format("{}: id \"{}\" is already used at {}; ids must differ", scenario.where,
                                    scenario.id, place->second));
      }
      scenarios.push_back(std::move(scenario));
    }
  }
  return scenarios;
}

std::vector<std::string> shipped_scenarios() {
  std::vector<std::string> names;
  for (const auto& [name, text] : embedded::scenario_files()) names.emplace_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<Scenario> read_scenarios(const std::string& path) {
  for (const auto& [name, text] : embedded::scenario_files()) {
    if (name == path) return parse_scenarios(text, fmt::format("{}.toml (shipped)", name));
  }
  return parse_scenarios(read_text_file(path), path);
}

}  // namespace tritax
