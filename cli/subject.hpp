// What a command is about: scenarios of a file, a schedule file, or a pattern on sizes given on the command
// line.
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

// The problem of the command line is for where there is no file.
struct SubjectOptions : Asked {
  std::string file;  // SCENARIO.toml or SCHEDULE.json; "" when a pattern is given
  std::string id;    // of a scenario in the file, with or without "/PATTERN"; "" means all
  bool sustained = false;
  const CLI::App* command = nullptr;
};

// FILE, --id, --machine, --set, --scale, --pattern, and the fields and knobs of the workload.
void add_subject_options(CLI::App& command, const Workload& workload, SubjectOptions& options);

// --sustained: clocks that hold after long load.
void add_sustained_option(CLI::App& command, bool& sustained);

// Where the schedule of a command comes from. Either a scenario (from a file or the command line) or a
// schedule file.
struct Source {
  std::optional<Scenario> scenario;
  std::string schedule_file;
  std::string machine;                                  // name or path; "" only for a schedule file
  std::vector<ParameterChange> changes;                 // of it
  bool sustained = false;                               // the machine after long load
  std::string machine_place = "--machine: ";            // in front of messages about it
  std::vector<std::pair<std::string, std::string>> at;  // on the axes of the command line; see Asked::at
};

// All that the options name, nothing built yet: the scenarios of the file, or the one with --id, for every
// combination of values of options that have several. Throws
// UserError for options that contradict each other, unknown ids (nearest offered) and unreadable files.
std::vector<Source> sources_of(const SubjectOptions& options);

// Throws UserError if there is an `--id` where no scenario file is.
void require_no_id(const std::string& id);

// Same, but exactly one. Throws UserError that lists the ids when there are several.
Source single_source(const SubjectOptions& options);

// A schedule and the machine that it runs on.
struct Subject {
  std::string id;     // of the scenario, or the name of the schedule
  std::string title;  // one line for people
  std::string file;   // of a schedule; "" of a scenario
  std::string place;  // in front of messages: "file: ", "file:line: scenario "id": "; "" if from no file
  Machine machine;
  Schedule schedule;
  std::optional<Scenario> scenario;  // with all knobs; none of a schedule file
  std::optional<Rebuild> rebuild;    // of a scenario
};

// Builds the schedule of a scenario, or reads that of a file. Throws UserError; with `require_sound` also for
// what the checker finds in a schedule file.
Subject load_subject(const Source& source, bool require_sound = true);

// Throws UserError when the source has no machine.
Machine machine_of(const Source& source);

}  // namespace tritax::cli
