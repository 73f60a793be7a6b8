// RunInput of a command: scenarios of a file, a schedule file, or a pattern with sizes from the command line.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/options.hpp"
#include "model/machine/machine.hpp"
#include "model/scenario/scenario.hpp"
#include "model/schedule/schedule.hpp"
#include "sim/study/sensitivity.hpp"

namespace tritax::cli {

// The problem of the command line counts only without a file.
struct RunInputOptions : Asked {
  std::string file;  // SCENARIO.toml or SCHEDULE.json; "" when a pattern is given
  std::string id;    // id of a scenario in the file, with or without "/PATTERN"; "": all
  bool sustained = false;
  const CLI::App* command = nullptr;
};

// FILE, --id, --machine, --set, --scale, --pattern, and the fields and knobs of the workload.
void add_run_input_options(CLI::App& command, const Workload& workload, RunInputOptions& options);

// --sustained: clocks that hold after long load.
void add_sustained_option(CLI::App& command, bool& sustained);

// Source of a command's schedule: a scenario (from a file or the command line) or a schedule file.
struct Source {
  std::optional<Scenario> scenario;
  std::string schedule_file;
  std::string machine;                                  // name or path; "" only for a schedule file
  std::vector<ParameterChange> changes;                 // of the machine
  bool sustained = false;                               // the machine after long load
  std::string machine_place = "--machine: ";            // prefix of messages about the machine
  std::vector<std::pair<std::string, std::string>> at;  // on the axes of the command line; see Asked::at
};

// All sources that the options name; nothing is built yet. These are the scenarios of the file, or the
// scenario of --id, for every combination of option values. Throws UserError for contradicting options,
// unknown ids (nearest offered) and unreadable files.
std::vector<Source> sources_of(const RunInputOptions& options);

// Throws UserError for an `--id` without a scenario file.
void require_no_id(const std::string& id);

// The same, but exactly one source. Throws UserError that lists the ids when there are several.
Source single_source(const RunInputOptions& options);

// A schedule and the machine that it runs on.
struct RunInput {
  std::string id;     // of the scenario, or the name of the schedule
  std::string title;  // one line for people
  std::string file;   // file of a schedule; "" for a scenario
  std::string place;  // prefix of messages: "file: ", "file:line: scenario "id": "; "" without a file
  Machine machine;
  Schedule schedule;
  std::optional<Scenario> scenario;  // with all knobs; none for a schedule file
  std::optional<Rebuild> rebuild;    // only for a scenario
};

// Builds the schedule of a scenario, or reads a schedule file. Throws UserError; with `require_sound` also
// for findings of the checker in a schedule file.
RunInput load_run_input(const Source& source, bool require_sound = true);

// Throws UserError when the source has no machine.
Machine machine_of(const Source& source);

}  // namespace tritax::cli
