#include "cli/run_input.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <functional>
#include <iterator>
#include <utility>

#include "cli/report.hpp"
#include "cli/terminal.hpp"
#include "model/core/error.hpp"
#include "model/core/with_place.hpp"
#include "model/schedule/check.hpp"
#include "model/schedule/json.hpp"

namespace tritax::cli {

namespace {

// Schedules are JSON, scenarios TOML.
bool is_schedule_file(const std::string& name) {
  const std::filesystem::path path(name);
  std::string extension = (path.extension() == ".gz" ? path.stem() : path).extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return extension == ".json";
}

// The first option of `group` on the command line besides --workload, "" if there is none.
std::string given_option(const CLI::App& command, const std::string& group) {
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_group() == group && option->count() > 0 && option->get_name() != "--workload") {
      return option->get_name();
    }
  }
  return "";
}

void refuse_group(const RunInputOptions& options, const std::string& group, const std::string& reason) {
  const std::string option = given_option(*options.command, group);
  if (!option.empty()) {
    throw UserError(fmt::format("{}: {}", option, reason));
  }
}

Scenario scenario_of_options(const RunInputOptions& options) {
  require_problem(options.problem, options.machine, options.message_bytes);
  Scenario scenario = scenario_of(problem_on(
      options.problem, find_machine_option(options.machine, options.changes), options.message_bytes));
  if (!options.pattern.empty()) scenario.pattern = options.pattern;
  scenario.id = scenario.pattern;
  scenario.machine = options.machine;
  return scenario;
}

// Scenarios with exactly this id, or all patterns of the id: "8192x4096x12288" means all,
// "8192x4096x12288/library" one. If none matches, the only id with this prefix.
std::vector<Scenario> chosen_by_id(const std::vector<Scenario>& scenarios, const std::string& id) {
  std::vector<Scenario> chosen;
  std::vector<Scenario> begun;
  for (const Scenario& scenario : scenarios) {
    if (scenario.id == id || scenario.id.starts_with(id + '/')) chosen.push_back(scenario);
    if (scenario.id.starts_with(id)) begun.push_back(scenario);
  }
  if (!chosen.empty() || begun.empty()) return chosen;
  // The patterns of one table of the file count as one scenario.
  const bool unique = std::all_of(begun.begin(), begun.end(),
                                  [&](const Scenario& one) { return one.where == begun.front().where; });
  return unique ? begun : std::vector<Scenario>{};
}

std::vector<Scenario> scenarios_of_file(const RunInputOptions& options) {
  refuse_group(options, kWorkloadGroup,
               fmt::format("the workload comes from '{}'; give a file or sizes", options.file));
  std::vector<Scenario> scenarios = read_scenarios(options.file);
  if (options.id.empty()) return scenarios;
  std::vector<Scenario> chosen = chosen_by_id(scenarios, options.id);
  if (!chosen.empty()) return chosen;
  std::vector<std::string> ids;
  std::vector<std::string> names;
  std::vector<std::string> begun;
  std::string table;  // of the previous scenario
  for (const Scenario& scenario : scenarios) {
    ids.push_back(scenario.id);
    names.push_back(scenario.id);
    names.push_back(scenario.id.substr(0, scenario.id.rfind('/')));  // for all its patterns
    const bool first = std::exchange(table, scenario.where) != scenario.where;
    if (first && scenario.id.starts_with(options.id)) begun.push_back(scenario.id);
  }
  if (!begun.empty()) {
    throw UserError(fmt::format("--id: several scenarios of '{}' begin with '{}': {}; give a longer id",
                                options.file, options.id, fmt::join(begun, ", ")));
  }
  const std::string nearest = nearest_name(options.id, names);
  throw UserError(fmt::format("--id: '{}' has no scenario '{}'{}; it has {}", options.file, options.id,
                              nearest.empty() ? "" : fmt::format(" (did you mean '{}'?)", nearest),
                              fmt::join(ids, ", ")));
}

// A file with several patterns has one scenario per pattern; --pattern selects one, if present.
void keep_pattern(std::vector<Scenario>& scenarios, const std::string& pattern) {
  if (pattern.empty()) return;
  const auto has_pattern = [&pattern](const Scenario& scenario) { return scenario.pattern == pattern; };
  if (std::any_of(scenarios.begin(), scenarios.end(), has_pattern)) {
    scenarios.erase(std::remove_if(scenarios.begin(), scenarios.end(), std::not_fn(has_pattern)),
                    scenarios.end());
  }
}

// Replaces machine, pattern and knobs of the scenario by those of the command line.
Scenario with_overrides(Scenario scenario, const RunInputOptions& options) {
  if (!options.machine.empty()) {
    scenario.machine = options.machine;
  }
  const Workload& workload = *scenario.problem.workload;
  if (!options.pattern.empty()) {
    scenario.pattern = find_pattern(workload, options.pattern, "--pattern").name;
  }
  scenario.changes = options.changes;
  scenario.knobs =
      scenario.knobs.with(pins_of(workload, options.pins, fmt::format("scenario '{}'", scenario.id)));
  return scenario;
}

// Throws UserError for a knob of the command line that no pattern uses. Knobs of a file may be meant for
// other patterns of the file.
void refuse_unused_knobs(const std::vector<Source>& sources, const Values& pins) {
  std::vector<const Pattern*> patterns;
  for (const Source& source : sources) {
    if (!source.scenario->pattern.empty()) patterns.push_back(&pattern_of(*source.scenario));
  }
  const auto has = [&patterns](const Spec& knob) {
    return knob.of_every_run || std::any_of(patterns.begin(), patterns.end(),
                                            [&](const Pattern* one) { return one->uses(knob.name); });
  };
  std::vector<std::string> options;
  for (const Spec& knob : pins.specs()) {
    if (has(knob) && !knob.of_every_run) options.push_back(knob.option_name());
  }
  for (const Spec& knob : pins.specs()) {
    if (patterns.empty() || !pins.given(knob.column(0)) || has(knob)) continue;
    std::vector<std::string_view> names;
    for (const Pattern* pattern : patterns) {
      if (std::find(names.begin(), names.end(), pattern->name) == names.end()) names.push_back(pattern->name);
    }
    throw UserError(fmt::format("{}: {} has no such knob; it has {}", knob.option_name(),
                                fmt::join(names, ", "),
                                options.empty() ? "none" : fmt::format("{}", fmt::join(options, ", "))));
  }
}

std::string describe_scenario(const Scenario& scenario, const Machine& machine) {
  const Problem& problem = scenario.problem;
  const Pattern& pattern = pattern_of(scenario);
  const std::string knobs = describe(pattern, scenario.knobs);
  return fmt::format("{}: {} on {} of {}, {}{}{}", scenario.id, problem.workload->size_text(problem),
                     problem.gpus(), machine.title(), pattern.name, knobs.empty() ? "" : ", ", knobs);
}

// Adds the knobs that the machine decides, so that they are shown and can be varied like given knobs.
Scenario resolved(Scenario scenario, const Machine& machine) {
  scenario.knobs = resolved_knobs(scenario, machine);
  for (std::size_t i = 0; i < scenario.knobs.columns(); ++i) scenario.knobs.give_at(i, scenario.knobs.at(i));
  return scenario;
}

Rebuild rebuild_of(const Scenario& scenario) {
  Rebuild rebuild;
  rebuild.knobs = scenario.knobs;
  rebuild.pattern = &pattern_of(scenario);
  // Without the scenario's place, because errors are not about knobs of the file.
  rebuild.build = [pattern = rebuild.pattern, problem = scenario.problem](const Machine& machine,
                                                                          const Values& knobs) {
    return build_schedule(*pattern, problem, machine, knobs);
  };
  return rebuild;
}

}  // namespace

void add_run_input_options(CLI::App& command, const Workload& workload, RunInputOptions& options) {
  options.command = &command;
  command.add_option("FILE", options.file,
                     "Scenario file (TOML) or schedule (JSON); or give --pattern and sizes");
  command.add_option("--id", options.id, "Id of the scenario in FILE")->type_name("ID");
  add_machine_options(command, options, true);
  add_pattern_option(command, options);
  add_problem_options(command, workload, options);
  add_knob_options(command, workload, options);
}

void add_sustained_option(CLI::App& command, bool& sustained) {
  command.add_flag("--sustained", sustained,
                   "Assume sustained load at the power limit: lower clocks, where the machine file has them");
}

void require_no_id(const std::string& id) {
  if (!id.empty()) throw UserError("--id: there is no scenario file to choose from");
}

namespace {

// Sources of options without axes.
std::vector<Source> sources_of_point(const RunInputOptions& options) {
  std::vector<Source> sources;
  if (options.file.empty()) {
    const Workload& workload = *options.problem.workload;
    if (options.pattern.empty() && workload.usual_pattern.empty()) {
      throw UserError(fmt::format("no input: give a scenario file, a schedule file, or --pattern with {}",
                                  required_options(workload)));
    }
    require_no_id(options.id);
    const Scenario scenario = with_overrides(scenario_of_options(options), options);
    Source& source = sources.emplace_back();
    source.machine = scenario.machine;
    source.scenario = scenario;
  } else if (is_schedule_file(options.file)) {
    const std::string reason = fmt::format("'{}' is a schedule, which runs unchanged", options.file);
    refuse_group(options, kWorkloadGroup, reason);
    refuse_group(options, kKnobGroup, reason);
    if (!options.pattern.empty() || !options.id.empty()) {
      throw UserError(fmt::format("{}: {}", options.pattern.empty() ? "--id" : "--pattern", reason));
    }
    if (options.machine.empty() && !options.changes.empty()) {
      throw UserError(
          fmt::format("{}: there is no machine to change; give --machine", options.changes.front().text));
    }
    Source& source = sources.emplace_back();
    source.schedule_file = options.file;
    source.machine = options.machine;
  } else {
    std::vector<Scenario> scenarios = scenarios_of_file(options);
    keep_pattern(scenarios, options.pattern);
    for (Scenario& scenario : scenarios) {
      Scenario overridden = with_overrides(std::move(scenario), options);
      Source& source = sources.emplace_back();
      source.machine = overridden.machine;
      if (options.machine.empty()) source.machine_place = place_of(overridden);
      source.scenario = std::move(overridden);
    }
  }
  if (sources.front().scenario) refuse_unused_knobs(sources, options.pins);
  for (Source& source : sources) {
    source.changes = options.changes;
    source.sustained = options.sustained;
    source.at = options.at;
  }
  return sources;
}

}  // namespace

std::vector<Source> sources_of(const RunInputOptions& options) {
  std::vector<Source> sources;
  for (const RunInputOptions& point : points_of(options)) {
    const std::string place = options.axes.empty() ? "" : describe_point(point) + ": ";
    std::vector<Source> more = with_place(place, [&] { return sources_of_point(point); });
    std::move(more.begin(), more.end(), std::back_inserter(sources));
  }
  return sources;
}

Source single_source(const RunInputOptions& options) {
  require_no_axes(options, options.command->get_name());
  std::vector<Source> sources = sources_of(options);
  if (sources.size() == 1) {
    return std::move(sources.front());
  }
  std::vector<std::string> ids;
  for (const Source& source : sources) {
    ids.push_back(source.scenario->id);
  }
  throw UserError(fmt::format("--id: '{}' has {} scenarios; choose one: {}", options.file, ids.size(),
                              fmt::join(ids, ", ")));
}

Machine machine_of(const Source& source) {
  if (source.machine.empty()) {
    throw UserError(
        fmt::format("--machine: missing; schedules name no machine, so give one that 'tritax machines' "
                    "lists, or a TOML file, for '{}'",
                    source.schedule_file));
  }
  Machine machine =
      changed(with_place(source.machine_place, [&] { return find_machine(source.machine); }), source.changes);
  return source.sustained ? sustained(std::move(machine)) : machine;
}

namespace {
RunInput load_scenario(const Scenario& unresolved, Machine machine) {
  RunInput run_input;
  run_input.machine = std::move(machine);
  const Scenario scenario = resolved(unresolved, run_input.machine);
  run_input.id = scenario.id;
  run_input.place = place_of(scenario);
  run_input.schedule = build_scenario(scenario, run_input.machine);
  run_input.title = describe_scenario(scenario, run_input.machine);
  run_input.rebuild = rebuild_of(scenario);
  run_input.scenario = scenario;
  return run_input;
}

// Reads the file first: with a missing or damaged file, a message about a missing machine does not help.
RunInput load_schedule(const Source& source, bool require_sound_file) {
  RunInput run_input;
  run_input.file = source.schedule_file;
  run_input.place = source.schedule_file + ": ";
  run_input.schedule = read_schedule(source.schedule_file);
  run_input.machine = machine_of(source);
  run_input.id = run_input.schedule.name;
  run_input.title = printable(fmt::format("{}: schedule '{}' of {} GPUs on {}", source.schedule_file,
                                          run_input.id, run_input.schedule.ranks, run_input.machine.title()));
  if (require_sound_file) {
    require_sound(check_schedule(run_input.schedule), source.schedule_file);
    require_sound(check_schedule_on(run_input.schedule, run_input.machine), source.schedule_file);
  }
  return run_input;
}
}  // namespace

RunInput load_run_input(const Source& source, bool require_sound_file) {
  return source.scenario ? load_scenario(*source.scenario, machine_of(source))
                         : load_schedule(source, require_sound_file);
}

}  // namespace tritax::cli
