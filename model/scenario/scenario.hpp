// Scenarios describe in a TOML file what a user wants to predict. Format: docs/scenarios.md.
//
// A scenario names a machine, a workload with the values of its fields, and usually a pattern with knobs.
// `build_scenario` turns a scenario into a tile schedule, so one simulator predicts all scenarios.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/machine/changes.hpp"
#include "model/machine/machine.hpp"
#include "model/schedule/schedule.hpp"
#include "model/workload/workload.hpp"

namespace tritax {

struct Scenario {
  std::string id;
  std::string title;
  std::string machine;                   // a shipped name or a path
  std::vector<ParameterChange> changes;  // of the machine, from the command line
  Problem problem;
  std::string pattern;  // empty: not chosen yet, only `advise` can run it
  Values knobs;         // given knobs; `resolved_knobs` adds the defaults of the machine
  std::string where;    // "file:line", for messages; empty: not from a file
};

// A scenario with a problem only.
Scenario scenario_of(Problem problem);

// Prefix of messages about a scenario: "file:line: scenario "id": ", without the parts that the scenario does
// not have.
std::string place_of(const Scenario& scenario);

// The machine of a scenario, with the scenario's changes. Throws UserError that begins with the scenario's
// place.
Machine find_machine_of(const Scenario& scenario);

// The knobs of the scenario; knobs that are not given have the defaults of the machine.
Values resolved_knobs(const Scenario& scenario, const Machine& machine);

// The pattern of a scenario. Throws UserError with the scenario's place if there is no pattern, or no such
// pattern.
const Pattern& pattern_of(const Scenario& scenario);

// One line of text with everything that decides a prediction, without id, title and place: equal keys mean
// equal schedules.
std::string scenario_key(const Scenario& scenario);

// Reads the [[scenario]] tables of a file. Throws UserError with file, line, key, value and what is allowed:
// syntax, unknown keys (nearest name offered), values outside their range, unknown workloads and patterns,
// ids used twice. Machines are not looked up. `path` may be a shipped name ("llm").
std::vector<Scenario> read_scenarios(const std::string& path);

// Names of the scenario files that come with the program, sorted.
std::vector<std::string> shipped_scenarios();

// Same, from text; `origin` is used in messages.
std::vector<Scenario> parse_scenarios(std::string_view toml, const std::string& origin);

// The tile schedule of a scenario. Throws UserError that begins with the scenario's place when the machine
// does not allow it, or when it has no pattern.
Schedule build_scenario(const Scenario& scenario, const Machine& machine);

}  // namespace tritax
