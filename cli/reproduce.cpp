// tritax reproduce: every published number beside its prediction, and the verdicts that follow from pairs of
// numbers.
#include "sim/study/reproduce.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/interrupt.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "cli/record.hpp"
#include "cli/report.hpp"
#include "cli/terminal.hpp"
#include "cli/trust.hpp"
#include "cli/verdicts.hpp"
#include "cli/version.hpp"
#include "sim/study/compared_rows.hpp"

namespace tritax::cli {

namespace {

using nlohmann::ordered_json;

struct ReproduceArguments {
  OutputOptions output;
  std::vector<std::string> files;
  std::string group;
  std::optional<int> threads;
};

Cell cell_of(const std::optional<double>& value) { return value ? Cell{*value} : Cell{}; }

Cell error_percent(const ReproducedRow& row) { return row.error ? Cell{100 * *row.error} : Cell{}; }

std::string mark_of(const ReproducedRow& row) {
  if (row.calibration) {
    return "calibration";
  }
  if (!row.failure.empty()) {
    return "failed";
  }
  return row.within_published_range ? "in published range" : row.bound ? "bound" : "";
}

// The table of one group for people, rounded to significant digits.
Table group_table(const std::vector<ReproducedRow>& rows, const std::string& group) {
  Table table{{{"id", "id"},
               {"metric", "metric"},
               {"unit", "unit"},
               {"predicted", "predicted"},
               {"published", "published"},
               {"error", "error", "%"},
               {"mark", "mark"}},
              {}};
  const auto digits = [](const std::optional<double>& value) {
    return value ? fmt::format("{:.4g}", *value) : "-";
  };
  for (const ReproducedRow& row : rows) {
    if (row.group == group) {
      table.add({row.id, row.metric, row.unit, digits(row.predicted), digits(row.published),
                 error_percent(row), mark_of(row)});
    }
  }
  return table;
}

// The scenarios of rows by their ids, with machines and all knobs.
class Scenarios {
 public:
  explicit Scenarios(const std::vector<PublishedEntry>& entries) {
    for (const PublishedEntry& entry : entries) entries_.emplace(entry.id, &entry);
  }

  // One scenario per variant. Numbers without a prediction may have none.
  const std::vector<Scenario>& of(const ReproducedRow& row) const { return entries_.at(row.id)->scenarios; }

  // Knobs that the scenario leaves open have the machine's defaults. `knobs` keeps them.
  Record record(const Scenario& scenario, Values& knobs) {
    Record record;
    record.problem = &scenario.problem;
    if (!scenario.pattern.empty()) record.pattern = &pattern_of(scenario);
    record.machine = &machine_of(scenario);
    knobs = resolved_knobs(scenario, *record.machine);
    record.knobs = &knobs;
    return record;
  }

  const Machine& machine_of(const Scenario& scenario) {
    const auto found = machines_.find(scenario.machine);
    if (found != machines_.end()) return found->second;
    return machines_.emplace(scenario.machine, find_machine_of(scenario)).first->second;
  }

 private:
  std::map<std::string, const PublishedEntry*> entries_;
  std::map<std::string, Machine> machines_;
};

Table all_rows(const std::vector<ReproducedRow>& rows, Scenarios& scenarios) {
  Table table{{{"id", "id"},
               {"group", "group"},
               {"metric", "metric"},
               {"unit", "unit"},
               {"published", "published"},
               {"predicted", "predicted"},
               {"error", "error"},
               {"calibration", "calibration"},
               {"source", "source"},
               {"failure", "failure"},
               {"variants", "variants"}},
              {}};
  RecordTable all;
  if (rows.empty()) all.add(table, {});
  for (const ReproducedRow& row : rows) {
    const std::vector<Scenario>& variants = scenarios.of(row);
    table.rows.clear();
    table.add({row.id, row.group, row.metric, row.unit, row.published, cell_of(row.predicted),
               cell_of(row.error), std::string(row.calibration ? "true" : "false"), row.source, row.failure,
               static_cast<std::int64_t>(variants.size())});
    Values knobs;
    all.add(table, scenarios.record(variants.front(), knobs));  // JSON has all variants
  }
  return all.table();
}

ordered_json reproduced_json(const std::vector<ReproducedRow>& rows, Scenarios& scenarios) {
  ordered_json list = ordered_json::array();
  for (const ReproducedRow& row : rows) {
    list.push_back({{"id", row.id},
                    {"group", row.group},
                    {"metric", row.metric},
                    {"unit", row.unit},
                    {"published", row.published},
                    {"predicted", json_of(row.predicted)},
                    {"error", json_of(row.error)},
                    {"calibration", row.calibration},
                    {"source", row.source},
                    {"low", json_of(row.low)},
                    {"high", json_of(row.high)},
                    {"confidence", row.confidence},
                    {"chosen", row.chosen},
                    {"notes", row.notes}});
    if (!row.failure.empty()) {
      list.back()["failure"] = row.failure;
    }
    list.back()["version"] = version();
    ordered_json& variants = list.back()["scenarios"] = ordered_json::array();
    for (const Scenario& scenario : scenarios.of(row)) {
      Values knobs;
      variants.push_back(json_of(scenarios.record(scenario, knobs)));
    }
  }
  return {{"schema", "tritax.reproduce/1"}, {"version", version()}, {"rows", std::move(list)}};
}

std::int64_t within(const std::vector<ReproducedRow>& rows, const std::string& group, double bound) {
  return std::count_if(rows.begin(), rows.end(), [&](const ReproducedRow& row) {
    return row.group == group && !row.calibration && row.error && std::abs(*row.error) <= bound;
  });
}

Table summary_table(const std::vector<ReproducedRow>& rows) {
  Table table{{{"group", "group"},
               {"predictions", "predictions"},
               {"within_12_percent", "within 12 %"},
               {"within_20_percent", "within 20 %"},
               {"median_error_percent", "median |error|", "%"},
               {"worst_error_percent", "worst |error|", "%"},
               {"calibration", "calibration"},
               {"failed", "failed"}},
              {}};
  for (const GroupSummary& summary : summarise(rows)) {
    const bool any = summary.predictions > 0;
    table.add({summary.group, static_cast<std::int64_t>(summary.predictions),
               within(rows, summary.group, 0.12), within(rows, summary.group, 0.20),
               any ? Cell{100 * summary.median_error} : Cell{},
               any ? Cell{100 * summary.worst_error} : Cell{}, static_cast<std::int64_t>(summary.calibration),
               static_cast<std::int64_t>(summary.failed)});
  }
  return table;
}

void print_rows(const std::vector<ReproducedRow>& rows, const std::vector<ComparedSet>& compared,
                const Outputs& outputs) {
  for (const GroupSummary& summary : summarise(rows)) {
    outputs.print(styled(summary.group, Style::bold) + '\n');
    outputs.print(group_table(rows, summary.group));
    outputs.print("\n");
  }
  for (const ReproducedRow& row : rows) {
    if (!row.failure.empty()) {
      outputs.print(fmt::format("{}: {}\n", row.id, row.failure));
    }
  }
  outputs.print("\n" + styled("Summary of the predictions; calibration rows do not count", Style::bold) +
                '\n');
  outputs.print(summary_table(rows));
  outputs.print('\n' + styled("Comparisons, as lines of scenarios/compared.csv", Style::bold) + '\n');
  outputs.print(compared_table(compared));
}

// Reports on standard error which numbers could not be predicted, with the reason for the first. Returns
// false if there are any.
bool tell_failures(const Reproduced& all) {
  std::size_t failed = 0;
  std::string first;
  const auto look_at = [&](const std::string& id, const std::string& failure) {
    if (failure.empty()) return;
    if (failed++ == 0) first = fmt::format("'{}' cannot be predicted: {}", id, failure);
  };
  for (const ReproducedRow& row : all.rows) look_at(row.id, row.failure);
  for (const JudgedQuestion& verdict : all.verdicts) look_at(verdict.id, verdict.failure);
  if (failed == 0) return false;
  tell(fmt::format("tritax: {} ({} of {} numbers failed)\n", first, failed,
                   all.rows.size() + all.verdicts.size()));
  return true;
}

PublishedNumbers numbers_of(const ReproduceArguments& options) {
  require_each_once(options.files, "FILE");
  const auto group = options.group.empty() ? std::nullopt : std::optional<std::string>(options.group);
  return wanted_numbers(options.files, group, "--group");
}

// For the group of verdicts, the rows behind the verdicts are compared as rows.
std::vector<ComparedSet> compared_of(const Reproduced& all, const PublishedNumbers& numbers,
                                     bool only_verdicts) {
  std::vector<Comparison> comparisons = comparisons_of_questions(all, numbers);
  if (!only_verdicts) {
    const std::vector<Comparison> of_rows = comparisons_of_rows(all.rows, numbers.entries);
    comparisons.insert(comparisons.begin(), of_rows.begin(), of_rows.end());
  }
  return compared_sets(comparisons);
}

void write(const Reproduced& all, const PublishedNumbers& numbers, bool only_verdicts, bool interrupted,
           Outputs& outputs) {
  Scenarios scenarios(numbers.entries);
  const std::vector<ComparedSet> compared = compared_of(all, numbers, only_verdicts);
  if (!only_verdicts) print_rows(all.rows, compared, outputs);
  if (!only_verdicts && !all.verdicts.empty()) outputs.print("\n");
  print_verdicts(all.verdicts, outputs);
  outputs.csv(only_verdicts ? verdict_table(all.verdicts) : all_rows(all.rows, scenarios), !interrupted);
  ordered_json json = reproduced_json(all.rows, scenarios);
  json["verdicts"] = verdicts_json(all.verdicts);
  json["score"] = score_json(all.verdicts);
  json["compared"] = json_of(compared);
  json["interrupted"] = interrupted;
  outputs.json(json);
}

int run(const ReproduceArguments& options) {
  Outputs outputs(options.output);
  const PublishedNumbers numbers = numbers_of(options);
  InterruptibleWork work;
  Progress progress("reproducing");
  ReproduceOptions reproduce_options;
  reproduce_options.threads = options.threads.value_or(0);
  reproduce_options.progress = [&progress](std::size_t done, std::size_t all) { progress.update(done, all); };
  reproduce_options.cancelled = [&work] { return work.interrupted(); };
  const Reproduced all = reproduce(numbers, reproduce_options);
  progress.clear();
  if (work.interrupted()) {
    const std::size_t wanted = numbers.entries.size() + numbers.verdicts.size();
    tell(fmt::format("tritax: interrupted; {} of {} numbers are missing\n",
                     wanted - all.rows.size() - all.verdicts.size(), wanted));
  }
  const bool only_verdicts = options.group == kVerdictGroup && !numbers.verdicts.empty();
  write(all, numbers, only_verdicts, work.interrupted(), outputs);
  if (work.interrupted()) return interrupted_exit_code();
  return tell_failures(all) ? kUserErrorExitCode : 0;
}

}  // namespace

Run add_reproduce(CLI::App& program, const Workload& /*workload*/) {
  auto options = std::make_shared<ReproduceArguments>();
  CLI::App& command =
      *program.add_subcommand("reproduce", "Recompute published numbers: predicted, published, error");
  command.add_option("FILE", options->files, "Files of published numbers (default: all shipped)");
  command.add_option("--group", options->group, "Only this group")->type_name("NAME");
  add_threads_option(command, options->threads);
  add_output_options(command, options->output);
  command.footer(
      "Rows marked 'calibration' helped to set a machine parameter or to choose a scenario's knobs; they\n"
      "are not predictions.\n"
      "'--group verdicts' asks which of two ways to do the same work is faster, and counts how often the\n"
      "published answer is the same. Your own files of numbers work too; docs/scenarios.md has the\n"
      "format.\n\n"
      "Examples:\n"
      "  tritax reproduce\n"
      "  tritax reproduce --group xgmi-microbench\n"
      "  tritax reproduce --group verdicts --csv verdicts.csv\n"
      "  tritax reproduce my-numbers.toml --json - > rows.json\n");
  return [options] { return run(*options); };
}

}  // namespace tritax::cli
