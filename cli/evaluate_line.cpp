#include "cli/evaluate_line.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <new>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/operation_limit.hpp"
#include "cli/options.hpp"
#include "cli/report.hpp"
#include "model/core/error.hpp"
#include "model/core/printable.hpp"
#include "model/machine/topology.hpp"
#include "model/scenario/scenario.hpp"
#include "model/schedule/check.hpp"
#include "model/schedule/json.hpp"
#include "model/schedule/json_reader.hpp"
#include "model/schedule/operations.hpp"
#include "model/select/bounds.hpp"
#include "model/workloads/registry.hpp"
#include "sim/simulate.hpp"

namespace tritax::cli {

namespace {

using nlohmann::ordered_json;

const std::string kLine = "line";  // prefix of messages of the JSON reader
constexpr std::array<std::string_view, 8> kLineKeys{"id",      "machine", "workload", "pattern",
                                                    "problem", "knobs",   "schedule", "seed"};
constexpr std::size_t kLongestId = 200;

std::string spelt(const ordered_json& answer) {
  return answer.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

// A value of a field or knob in the spelling of the options.
std::string value_as_option(const nlohmann::json& value, const std::string& place) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "on" : "off";
  if (value.is_number()) return value.dump();
  const bool numbers =
      value.is_array() &&
      std::all_of(value.begin(), value.end(), [](const nlohmann::json& one) { return one.is_number(); });
  if (!numbers) {
    throw UserError(fmt::format("{}: give a number, true or false, a text, or an array of numbers", place));
  }
  std::vector<std::string> parts;
  for (const nlohmann::json& one : value) parts.push_back(one.dump());
  return fmt::format("{}", fmt::join(parts, "x"));
}

// Sets `values` from the object under `key`.
void give_all(const nlohmann::json& candidate, const char* key, Values& values) {
  if (!candidate.contains(key)) return;
  std::vector<std::string_view> names;
  for (const Spec& spec : values.specs()) names.push_back(spec.name);
  const JsonValue root(candidate, kLine);
  root.at(key).expect_object(names);
  for (const auto& [name, value] : candidate.at(key).items()) {
    const std::string place = fmt::format("{}.{}", key, name);
    const auto spec = static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
    give_text(values, spec, value_as_option(value, place), place);
  }
}

void require_fields(const Problem& problem) {
  for (const Spec& field : problem.workload->fields) {
    if (!field.required || field.counts_gpus || problem.values.given(field.column(0))) continue;
    throw UserError(fmt::format("problem.{}: missing; {} needs it", field.name, problem.workload->name));
  }
}

std::string text_or(const nlohmann::json& candidate, const char* key, const std::string& fallback) {
  if (!candidate.contains(key)) return fallback;
  return JsonValue(candidate, kLine).at(key).string();
}

// The id of the line, which identifies its answer.
std::optional<nlohmann::json> id_of_line(const nlohmann::json& candidate) {
  if (!candidate.is_object() || !candidate.contains("id")) return std::nullopt;
  const nlohmann::json& id = candidate.at("id");
  const bool text = id.is_string() && id.get_ref<const std::string&>().size() <= kLongestId;
  if (text || id.is_number()) return id;
  throw UserError(fmt::format("id: give a number or a text of at most {} bytes", kLongestId));
}

}  // namespace

Scenario scenario_of_line(const nlohmann::json& candidate, const Workload& usual, const Machine& machine) {
  const std::string workload = text_or(candidate, "workload", std::string(usual.name));
  Problem problem = problem_of(find_workload(workload, "workload"));
  give_all(candidate, "problem", problem.values);
  require_fields(problem);
  Scenario scenario = scenario_of(problem_on(std::move(problem), machine));
  scenario.pattern = text_or(candidate, "pattern", scenario.pattern);
  give_all(candidate, "knobs", scenario.knobs);
  return scenario;
}

ordered_json time_of(const Schedule& schedule, const Machine& machine, const SimulationOptions& options,
                     const std::optional<std::int64_t>& max_operations) {
  require_few_operations(schedule, 1, max_operations, "");
  const TimeBound bound = time_bound(schedule, machine, build_topology(machine, schedule.ranks));
  const SimulationResult result = simulate(schedule, machine, options);
  return {{"time_us", us(result.makespan_ns)},
          {"bound_us", us(bound.total_ns)},
          {"operations", executed_operations(schedule)},
          {"critical_path", json_of(result.account)}};
}

LineEvaluator::LineEvaluator(LineDefaults defaults) : defaults_(std::move(defaults)) {
  if (defaults_.machine.empty()) return;
  machines_.emplace(defaults_.machine, find_machine_option(defaults_.machine, defaults_.changes));
}

// Lines cannot name files, only the command line can: a file of a line might be the very stream of the lines.
const Machine& LineEvaluator::machine_of(const nlohmann::json& candidate) {
  const std::string name = text_or(candidate, "machine", defaults_.machine);
  if (name.empty()) throw UserError("machine: missing; name one, or give --machine for all lines");
  const auto known = machines_.find(name);
  if (known != machines_.end()) return known->second;
  const std::vector<std::string> shipped = shipped_machines();
  if (std::find(shipped.begin(), shipped.end(), name) == shipped.end()) {
    const std::string nearest = nearest_name(name, shipped);
    throw UserError(fmt::format(
        "machine: '{}' is not a shipped machine{}; shipped are {}; give a file with --machine", name,
        nearest.empty() ? "" : fmt::format(" (did you mean '{}'?)", nearest), fmt::join(shipped, ", ")));
  }
  return machines_.emplace(name, changed(find_machine(name), defaults_.changes)).first->second;
}

Schedule LineEvaluator::schedule_of(const nlohmann::json& candidate, const Machine& machine) const {
  if (candidate.contains("schedule")) {
    for (const char* key : {"workload", "pattern", "problem", "knobs"}) {
      if (candidate.contains(key)) {
        throw UserError(fmt::format("{}: a schedule runs unchanged; leave out one of them", key));
      }
    }
    Schedule schedule = schedule_from_tree(candidate.at("schedule"), "schedule");
    require_sound(check_schedule(schedule), "schedule");
    require_sound(check_schedule_on(schedule, machine), "schedule");
    return schedule;
  }
  return build_scenario(scenario_of_line(candidate, *defaults_.workload, machine), machine);
}

ordered_json LineEvaluator::evaluate(const nlohmann::json& candidate) {
  JsonValue(candidate, kLine).expect_object(kLineKeys);
  SimulationOptions options;
  options.seed = defaults_.seed;
  if (candidate.contains("seed")) {
    options.seed = static_cast<std::uint64_t>(
        JsonValue(candidate, kLine).at("seed").integer(0, std::numeric_limits<std::int64_t>::max()));
  }
  const Machine& machine = machine_of(candidate);
  return time_of(schedule_of(candidate, machine), machine, options, defaults_.max_operations);
}

std::string LineEvaluator::answer(std::string_view line) {
  ordered_json answer = ordered_json::object();
  try {
    if (std::all_of(line.begin(), line.end(), [](char c) { return c == ' ' || c == '\t' || c == '\r'; })) {
      throw UserError("the line is empty; give a JSON object");
    }
    const nlohmann::json candidate = parse_json(line, kLine);
    if (const std::optional<nlohmann::json> id = id_of_line(candidate)) answer["id"] = *id;
    answer.update(evaluate(candidate));
  } catch (const UserError& error) {
    answer["invalid"] = error.what();
  } catch (const std::bad_alloc&) {
    answer["invalid"] = "out of memory; give a smaller problem or larger tiles";
  }
  return spelt(answer);
}

std::string invalid_line(const std::string& reason) { return spelt({{"invalid", reason}}); }

LineRead read_line(std::istream& in, std::size_t longest, std::string& line) {
  line.clear();
  std::streambuf& bytes = *in.rdbuf();
  bool too_long = false;
  constexpr int kEnd = std::istream::traits_type::eof();
  int byte = bytes.sbumpc();
  if (byte == kEnd) return LineRead::end;
  for (; byte != kEnd && byte != '\n'; byte = bytes.sbumpc()) {
    if (line.size() == longest) {
      too_long = true;
      line = std::string();
    }
    if (!too_long) line += static_cast<char>(byte);
  }
  return too_long ? LineRead::too_long : LineRead::read;
}

}  // namespace tritax::cli
