#include "cli/validate_library.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/interrupt.hpp"
#include "cli/record.hpp"
#include "cli/terminal.hpp"
#include "cli/trust.hpp"
#include "sim/study/validate_library.hpp"

namespace tritax::cli {

namespace {

using nlohmann::ordered_json;

std::string_view name_of(LibraryForm form) { return kLibraryFormNames[static_cast<std::size_t>(form)]; }

// Size of the work; workloads that only move data by the size of a GPU's shard.
std::string work_text(const Problem& problem) {
  const Work work = work_of(problem);
  if (work.flops > 0 || work.peers == 0) return problem.workload->size_text(problem);
  return fmt::format("{} KiB per GPU", static_cast<std::int64_t>(work.bytes_per_gpu) / work.peers / 1024);
}

Table row_table(const std::vector<LibraryResidual>& rows) {
  Table table{{{"form", "form"},
               {"gpus", "GPUs"},
               {"work", "work"},
               {"measured_us", "measured", "us"},
               {"predicted_us", "predicted", "us"},
               {"error_percent", "error", "%"}},
              {}};
  for (const LibraryResidual& row : rows) {
    table.add({std::string(name_of(row.row.form)), std::int64_t{row.row.scenario.problem.gpus()},
               work_text(row.row.scenario.problem), row.row.measured_ns * 1e-3, row.predicted_ns * 1e-3,
               100 * row.error()});
  }
  return table;
}

Table form_table(const std::vector<LibraryResidual>& rows) {
  Table table{{{"form", "form"},
               {"rows", "rows"},
               {"median_abs_error_percent", "median |error|", "%"},
               {"p90_abs_error_percent", "p90 |error|", "%"},
               {"median_error_percent", "median error", "%"}},
              {}};
  for (std::size_t i = 0; i < kLibraryFormNames.size(); ++i) {
    const ErrorSummary summary = summarise_library(rows, static_cast<LibraryForm>(i));
    if (summary.rows == 0) continue;
    table.add({std::string(kLibraryFormNames[i]), static_cast<std::int64_t>(summary.rows),
               100 * summary.median_abs_error, 100 * summary.p90_abs_error, 100 * summary.median_error});
  }
  return table;
}

// Record of a row; `knobs` keeps its resolved knobs.
Record record_of(const LibraryResidual& row, const Machine& machine, Values& knobs) {
  const Scenario& scenario = row.row.scenario;
  knobs = resolved_knobs(scenario, machine);
  Record record;
  record.machine = &machine;
  record.problem = &scenario.problem;
  record.pattern = &pattern_of(scenario);
  record.knobs = &knobs;
  return record;
}

Table record_table(const std::vector<LibraryResidual>& rows, const Machine& machine) {
  RecordTable table;
  const Table all = row_table(rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Values knobs;
    table.add({all.columns, {all.rows[i]}}, record_of(rows[i], machine, knobs));
  }
  return table.table();
}

std::vector<ComparedSet> compared_of(const std::vector<LibraryResidual>& rows, const Machine& machine) {
  std::vector<Comparison> comparisons;
  for (const LibraryResidual& row : rows) {
    const Scenario& scenario = row.row.scenario;
    comparisons.push_back({set_of_place(row.row.where), machine.gpu.name, scenario.problem,
                           compared_of(pattern_of(scenario)), row.error()});
  }
  return compared_sets(comparisons);
}

ordered_json library_json(const std::vector<LibraryResidual>& rows, const Machine& machine) {
  ordered_json forms = ordered_json::array();
  for (std::size_t i = 0; i < kLibraryFormNames.size(); ++i) {
    const ErrorSummary summary = summarise_library(rows, static_cast<LibraryForm>(i));
    if (summary.rows == 0) continue;
    forms.push_back({{"form", kLibraryFormNames[i]},
                     {"rows", summary.rows},
                     {"median_abs_error", summary.median_abs_error},
                     {"p90_abs_error", summary.p90_abs_error},
                     {"median_error", summary.median_error}});
  }
  ordered_json list = ordered_json::array();
  for (const LibraryResidual& row : rows) {
    list.push_back({{"form", name_of(row.row.form)},
                    {"gpus", row.row.scenario.problem.gpus()},
                    {"work", work_text(row.row.scenario.problem)},
                    {"measured_us", row.row.measured_ns * 1e-3},
                    {"predicted_us", row.predicted_ns * 1e-3},
                    {"error", row.error()},
                    {"where", row.row.where}});
    Values knobs;
    add_record(list.back(), record_of(row, machine, knobs));
  }
  ordered_json json{{"schema", "tritax.validate-library/1"},
                    {"machine", machine.name},
                    {"forms", std::move(forms)},
                    {"rows", std::move(list)},
                    {"compared", json_of(compared_of(rows, machine))}};
  Record record;
  record.machine = &machine;
  add_record(json, record);
  return json;
}

}  // namespace

int run_validate_library(const ValidateLibraryOptions& options, Outputs& outputs) {
  const std::string machine = options.machine.empty() ? "h200-4" : options.machine;
  const Machine found = changed(find_machine(machine), options.changes);
  std::vector<LibraryFile> files;
  for (const std::string& path : options.files) files.push_back(read_library(path));
  InterruptibleWork work;
  Progress progress("validating");
  ValidateOptions validate_options;
  validate_options.threads = options.threads.value_or(0);
  validate_options.progress = [&progress](std::size_t done, std::size_t all) { progress.update(done, all); };
  validate_options.cancelled = [&work] { return work.interrupted(); };
  const std::vector<LibraryResidual> rows = validate_library(files, found, validate_options);
  progress.clear();
  if (work.interrupted()) tell("tritax: interrupted; some rows are missing\n");
  for (const LibraryFile& file : files) {
    outputs.print(fmt::format("{}: {}\n", file.origin,
                              file.remarks.empty() ? "does not say where it was measured" : file.remarks[0]));
  }
  if (options.all_rows) outputs.print(row_table(rows));
  outputs.print(form_table(rows));
  outputs.print("\nErrors are predicted / measured - 1; below 0, the model is too fast.\n");
  outputs.csv(record_table(rows, found), !work.interrupted());
  ordered_json json = library_json(rows, found);
  json["interrupted"] = work.interrupted();
  outputs.json(json);
  return work.interrupted() ? interrupted_exit_code() : 0;
}

}  // namespace tritax::cli
