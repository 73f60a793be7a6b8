// tritax check: faults of a schedule, each with kernel, workgroup and operation.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "cli/record.hpp"
#include "cli/run_input.hpp"
#include "cli/terminal.hpp"
#include "model/core/error.hpp"
#include "model/schedule/check.hpp"
#include "model/schedule/finding_names.hpp"
#include "model/schedule/json.hpp"
#include "model/schedule/operations.hpp"
#include "sim/functional.hpp"

namespace tritax::cli {

namespace {

using nlohmann::ordered_json;

struct CheckArguments {
  OutputOptions output;
  RunInputOptions run_input;
  bool execute = false;
  std::optional<std::int64_t> seed;  // of the numbers of `execute`
};

// A fault of a schedule, in the words of the reports.
struct Fault {
  std::string kind;
  std::string where;
  std::string message;
  std::size_t count = 1;  // places
};

// Limit of flops (multiplications and additions) on one core; more takes minutes.
constexpr double kMostFlops = 4e11;

double flops_of(const Schedule& schedule) {
  double flops = 0;
  for (const Op& op : schedule.ops) {
    flops += flops_of(op);
  }
  return flops;
}

// Executes a sound schedule on random numbers: finds unordered reads, and results that differ from the
// reference.
std::vector<Fault> execute(const Schedule& schedule, const Machine& machine, std::uint64_t seed) {
  if (schedule.reference.empty()) {
    throw UserError(
        "--execute: the schedule does not say what its buffers must hold at the end; allowed: a schedule "
        "with "
        "\"reference\"");
  }
  if (flops_of(schedule) > kMostFlops) {
    throw UserError(
        fmt::format("--execute: {:.3g} operations on numbers would take minutes; allowed: up to {:.3g}",
                    flops_of(schedule), kMostFlops));
  }
  const FunctionalResult result = execute_functionally(schedule, machine, seed);
  std::vector<Fault> faults;
  for (const std::string& read : result.stale_reads) faults.push_back({"stale-read", "execution", read});
  for (std::size_t rank = 0; rank < result.error_of_rank.size(); ++rank) {
    const double error = result.error_of_rank[rank];
    if (error <= result.right_within) continue;
    faults.push_back({"wrong-result", fmt::format("rank {}", rank),
                      std::isfinite(error)
                          ? fmt::format("differs from the reference by {:.3g} of its largest value", error)
                          : "elements that the reference expects are never written"});
  }
  return faults;
}

struct Checked {
  RunInput run_input;
  std::vector<Fault> faults;
  std::optional<LaunchOrders> orders;  // launch orders of a schedule that is sound on a machine
};

std::vector<Fault> faults_of(const std::vector<Finding>& findings) {
  std::vector<Fault> faults;
  for (const Finding& finding : findings) {
    faults.push_back({std::string(name_of(finding.kind)), finding.where, finding.message, finding.count});
  }
  return faults;
}

Checked check_source(const Source& source, const CheckArguments& options) {
  if (options.seed && !options.execute) {
    throw UserError("--seed: only --execute draws numbers; give both, or neither");
  }
  if (source.machine.empty()) {
    if (options.execute) {
      throw UserError("--execute runs the schedule on a machine; name it with --machine");
    }
    RunInput run_input;
    run_input.file = source.schedule_file;
    run_input.schedule = read_schedule(source.schedule_file);
    run_input.id = run_input.schedule.name;
    std::vector<Fault> faults = faults_of(check_schedule(run_input.schedule));
    return {std::move(run_input), std::move(faults), {}};
  }
  RunInput run_input = load_run_input(source, false);
  LaunchOrders orders = LaunchOrders::one;
  std::vector<Fault> faults = faults_of(check_schedule(run_input.schedule));
  // With dangling references, the resources of a schedule are meaningless.
  if (faults.empty()) {
    faults = faults_of(check_schedule_on(run_input.schedule, run_input.machine, 20, &orders));
  }
  if (options.execute && faults.empty()) {
    faults =
        execute(run_input.schedule, run_input.machine, static_cast<std::uint64_t>(options.seed.value_or(1)));
  }
  return {std::move(run_input), std::move(faults), orders};
}

// The scope of "sound" in the message.
std::string reach_of(const Checked& checked, bool executed) {
  std::string text;
  if (!checked.orders) return "; give --machine to check resources as well";
  if (*checked.orders != LaunchOrders::one) text += " " + describe(*checked.orders);
  return text + (executed ? ", and its results are right" : "");
}

int run(const CheckArguments& options) {
  Outputs outputs(options.output);
  bool sound = true;
  RecordTable all;
  ordered_json schedules = ordered_json::array();
  for (const Source& source : sources_of(options.run_input)) {
    const Checked checked = check_source(source, options);
    const std::string& id = checked.run_input.id;
    const Record record = record_of(checked.run_input);
    Table table{{{"id", "schedule"},
                 {"kind", "kind"},
                 {"where", "where"},
                 {"message", "message"},
                 {"count", "places"}},
                {}};
    ordered_json list = ordered_json::array();
    for (const Fault& fault : checked.faults) {
      table.add({id, fault.kind, fault.where, fault.message, static_cast<std::int64_t>(fault.count)});
      list.push_back(
          {{"kind", fault.kind}, {"where", fault.where}, {"message", fault.message}, {"count", fault.count}});
      outputs.print(
          fmt::format("{}: {}: {}\n", printable(id), styled(fault.kind, Style::bad),
                      printable(fmt::format("{}: {}", fault.where, with_count(fault.message, fault.count)))));
    }
    if (checked.faults.empty()) {
      outputs.print(fmt::format("{}: {}{}\n", printable(id), styled("sound", Style::good),
                                reach_of(checked, options.execute)));
    }
    ordered_json json{{"id", id}, {"sound", checked.faults.empty()}, {"findings", std::move(list)}};
    if (checked.faults.empty() && checked.orders) {
      json["launch_orders"] = kLaunchOrdersNames[static_cast<std::size_t>(*checked.orders)];
    }
    add_record(json, record);
    schedules.push_back(std::move(json));
    sound = sound && checked.faults.empty();
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
      *program.add_subcommand("check", "Find deadlocks, unordered reads and resource overruns in a schedule");
  add_run_input_options(command, workload, options->run_input);
  command.add_flag("--execute", options->execute,
                   "Also run the schedule on random numbers, and compare the results with its reference");
  add_seed_option(command, options->seed);
  add_output_options(command, options->output);
  command.footer(
      "Exit code 0 when the schedule is sound, 2 when there are findings.\n\n"
      "Examples:\n"
      "  tritax check my-schedule.json\n"
      "  tritax check my-schedule.json --machine mi300x-8 --json -\n"
      "  tritax check --pattern producer-consumer -M 1000 -N 1000 -K 512 --machine h200-4 --execute\n");
  return [options] { return run(*options); };
}

}  // namespace tritax::cli
