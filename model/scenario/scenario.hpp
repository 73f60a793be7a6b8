// Scenarios: what a user wants predicted, as text in a TOML file. Format: docs/scenarios.md.
//
// A scenario names a machine and a workload with the values of its fields, and mostly a pattern with knobs.
// Each becomes a tile schedule (`build_scenario`), so one simulator predicts them all.
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
  std::vector<ParameterChange> changes;  // of the machine, asked for on the command line
  Problem problem;
  std::string pattern;  // empty: not chosen yet, only `advise` can run it
  Values knobs;         // those that were given; `resolved_knobs` asks the machine for the others
  std::string where;    // "file:line", for messages; empty: not from a file
};

// A scenario of a problem with nothing else given.
Scenario scenario_of(Problem problem);

// What to put in front of messages about a scenario: "file:line: scenario "id": ", or less if there is less.
std::string place_of(const Scenario& scenario);

// The machine that a scenario names, changed as it says. Throws UserError that begins with the scenario's
// place.
Machine find_machine_of(const Scenario& scenario);

// The knobs with the defaults of the machine where nothing was given.
Values resolved_knobs(const Scenario& scenario, const Machine& machine);

// The pattern that it names. Throws UserError, with its place, when it names none or there is no such.
const Pattern& pattern_of(const Scenario& scenario);

// Everything that decides a prediction as one line of text, without id, title and place: equal keys, equal
// schedules.
std::string scenario_key(const Scenario& scenario);

// Reads the [[scenario]] tables of a file. Throws UserError with file, line, key, value and what is allowed:
// syntax, unknown keys (nearest name offered), values outside their range, unknown workloads and patterns,
// ids used twice. Machines are not looked up. A shipped name ("llm") is a path too.
std::vector<Scenario> read_scenarios(const std::string& path);

// Names of the scenario files that come with the program, sorted.
std::vector<std::string> shipped_scenarios();

// Same, from text; `origin` is used in messages.
std::vector<Scenario> parse_scenarios(std::string_view toml, const std::string& origin);

// The tile schedule of a scenario. Throws UserError that begins with the scenario's place when the machine
// does not allow it, or when it has no pattern.
Schedule build_scenario(const Scenario& scenario, const Machine& machine);

}  // namespace tritax
