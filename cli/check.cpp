// tritax check: what is wrong with a schedule, each finding with kernel, workgroup and operation.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cli/record.hpp"
#include "cli/subject.hpp"
#include "cli/terminal.hpp"
#include "model/schedule/check.hpp"
#include "model/schedule/json.hpp"

namespace tritax::cli {

namespace {

using nlohmann::ordered_json;

struct CheckArguments {
  OutputOptions output;
  SubjectOptions subject;
};

constexpr std::array<std::string_view, 6> kKindNames{"out-of-range", "meaningless",    "unsatisfiable-wait",
                                                     "deadlock",     "unordered-read", "resources"};

std::string_view kind_name(Finding::Kind kind) { return kKindNames[static_cast<std::size_t>(kind)]; }

std::vector<Finding> findings_of(const Schedule& schedule, const Machine* machine) {
  std::vector<Finding> findings = check_schedule(schedule);
  // Resources of a schedule with dangling references mean nothing.
  if (machine != nullptr && findings.empty()) {
    findings = check_schedule_on(schedule, *machine);
  }
  return findings;
}

struct Checked {
  Subject subject;
  std::vector<Finding> findings;
  bool on_machine = false;
};

Checked check_source(const Source& source) {
  if (source.machine.empty()) {
    Subject subject;
    subject.file = source.schedule_file;
    subject.schedule = read_schedule(source.schedule_file);
    subject.id = subject.schedule.name;
    std::vector<Finding> findings = findings_of(subject.schedule, nullptr);
    return {std::move(subject), std::move(findings), false};
  }
  Subject subject = load_subject(source, false);
  std::vector<Finding> findings = findings_of(subject.schedule, &subject.machine);
  return {std::move(subject), std::move(findings), true};
}

int run(const CheckArguments& options) {
  Outputs outputs(options.output);
  bool sound = true;
  RecordTable all;
  ordered_json schedules = ordered_json::array();
  for (const Source& source : sources_of(options.subject)) {
    const Checked checked = check_source(source);
    const std::string& id = checked.subject.id;
    const Record record = record_of(checked.subject);
    Table table{{{"id", "schedule"}, {"kind", "kind"}, {"where", "where"}, {"message", "message"}}, {}};
    ordered_json list = ordered_json::array();
    for (const Finding& finding : checked.findings) {
      table.add({id, std::string(kind_name(finding.kind)), finding.where, finding.message});
      list.push_back(
          {{"kind", kind_name(finding.kind)}, {"where", finding.where}, {"message", finding.message}});
      outputs.print(fmt::format("{}: {}: {}\n", printable(id), styled(kind_name(finding.kind), Style::bad),
                                printable(fmt::format("{}: {}", finding.where, finding.message))));
    }
    if (checked.findings.empty()) {
      outputs.print(fmt::format("{}: {}{}\n", printable(id), styled("sound", Style::good),
                                checked.on_machine ? "" : "; give --machine to check resources as well"));
    }
    ordered_json json{{"id", id}, {"sound", checked.findings.empty()}, {"findings", std::move(list)}};
    add_record(json, record);
    schedules.push_back(std::move(json));
    sound = sound && checked.findings.empty();
    all.add(table, record);
  }
  outputs.csv(all.table());
  outputs.json({{"schema", "tritax.check/1"}, {"schedules", std::move(schedules)}});
  return sound ? 0 : kUserErrorExitCode;
}

}  // namespace

Run add_check(CLI::App& program, const Workload& workload) {
  auto options = std::make_shared<CheckArguments>();
  CLI::App& command =
      *program.add_subcommand("check", "Find deadlocks, unordered reads and what does not fit in a schedule");
  add_subject_options(command, workload, options->subject);
  add_output_options(command, options->output);
  command.footer(
      "Exit code 0 when the schedule is sound, 2 when there are findings.\n\n"
      "Examples:\n"
      "  tritax check my-schedule.json\n"
      "  tritax check my-schedule.json --machine mi300x-8 --json -\n"
      "  tritax check --pattern producer-consumer -M 1000 -N 1000 -K 512 --machine h200-4\n");
  return [options] { return run(*options); };
}

}  // namespace tritax::cli
