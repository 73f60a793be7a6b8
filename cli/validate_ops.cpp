#include "cli/validate_ops.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/interrupt.hpp"
#include "cli/record.hpp"
#include "cli/report.hpp"
#include "cli/terminal.hpp"
#include "cli/version.hpp"
#include "model/schedule/op_traits.hpp"
#include "sim/study/validate_ops.hpp"

namespace tritax::cli {

namespace {

using nlohmann::ordered_json;

std::string side_of(bool remote) { return remote ? "remote" : "local"; }

std::string kind_name(OpKind kind) { return std::string(name_of(kind)); }

Cell percent(const std::optional<double>& share) { return share ? Cell(100 * *share) : Cell(); }

Table kind_table(const std::vector<OpKindResidual>& kinds) {
  Table table{{{"operation", "operation"},
               {"side", "side"},
               {"groups", "groups"},
               {"count", "count"},
               {"measured_median_us", "measured median", "us", 2},
               {"predicted_median_us", "predicted median", "us", 2},
               {"median_error_percent", "median error", "%"},
               {"median_abs_error_percent", "median |error|", "%"},
               {"measured_sum_ms", "measured sum", "ms"},
               {"sum_error_percent", "error of sum", "%"}},
              {}};
  for (const OpKindResidual& kind : kinds) {
    table.add({kind_name(kind.kind), side_of(kind.remote), kind.groups, kind.count, kind.measured_median_us,
               kind.predicted_median_us, percent(kind.median_error), percent(kind.median_abs_error),
               kind.measured_sum_us * 1e-3, percent(kind.sum_error)});
  }
  return table;
}

Table row_table(const std::vector<OpResidual>& rows) {
  Table table{{{"id", "scenario"},
               {"gpus", "GPUs"},
               {"kernel", "kernel"},
               {"operation", "operation"},
               {"side", "side"},
               {"size", "size"},
               {"measured_count", "count"},
               {"predicted_count", "predicted count"},
               {"measured_median_us", "measured median", "us", 2},
               {"predicted_median_us", "predicted median", "us", 2},
               {"error_percent", "error", "%"},
               {"measured_sum_us", "measured sum", "us"},
               {"predicted_sum_us", "predicted sum", "us"}},
              {}};
  for (const OpResidual& row : rows) {
    const OpTimes& times = row.measured.times;
    table.add({row.measured.id, std::int64_t{row.measured.gpus}, times.group.kernel,
               kind_name(times.group.kind), side_of(times.group.remote), times.group.size, times.count,
               row.predicted.count, times.median_us, row.predicted.median_us, percent(row.error()),
               times.sum_us, row.predicted.sum_us});
  }
  return table;
}

ordered_json times_json(const OpTimes& times) {
  return {{"count", times.count},
          {"median_us", times.median_us},
          {"p10_us", times.p10_us},
          {"p90_us", times.p90_us},
          {"sum_us", times.sum_us}};
}

// Record of a row; `machine` and `knobs` keep its parts.
Record record_of(const OpResidual& row, Machine& machine, Values& knobs) {
  machine = find_machine_of(row.scenario);
  knobs = resolved_knobs(row.scenario, machine);
  Record record;
  record.machine = &machine;
  record.problem = &row.scenario.problem;
  record.pattern = &pattern_of(row.scenario);
  record.knobs = &knobs;
  return record;
}

Table record_table(const std::vector<OpResidual>& rows) {
  RecordTable table;
  const Table all = row_table(rows);
  if (rows.empty()) table.add(all, {});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Machine machine;
    Values knobs;
    table.add({all.columns, {all.rows[i]}}, record_of(rows[i], machine, knobs));
  }
  return table.table();
}

ordered_json ops_json(const std::vector<OpResidual>& rows) {
  ordered_json kinds = ordered_json::array();
  for (const OpKindResidual& kind : summarise_ops(rows)) {
    kinds.push_back({{"operation", kind_name(kind.kind)},
                     {"side", side_of(kind.remote)},
                     {"groups", kind.groups},
                     {"count", kind.count},
                     {"measured_median_us", kind.measured_median_us},
                     {"predicted_median_us", kind.predicted_median_us},
                     {"median_error", json_of(kind.median_error)},
                     {"median_abs_error", json_of(kind.median_abs_error)},
                     {"measured_sum_us", kind.measured_sum_us},
                     {"predicted_sum_us", kind.predicted_sum_us},
                     {"sum_error", json_of(kind.sum_error)}});
  }
  ordered_json list = ordered_json::array();
  for (const OpResidual& row : rows) {
    const OpGroup& group = row.measured.times.group;
    list.push_back({{"id", row.measured.id},
                    {"pattern", row.measured.pattern},
                    {"machine", row.machine},
                    {"gpus", row.measured.gpus},
                    {"kernel", group.kernel},
                    {"operation", kind_name(group.kind)},
                    {"side", side_of(group.remote)},
                    {"size", group.size},
                    {"measured", times_json(row.measured.times)},
                    {"predicted", times_json(row.predicted)},
                    {"error", json_of(row.error())},
                    {"where", row.measured.where}});
    Machine machine;
    Values knobs;
    add_record(list.back(), record_of(row, machine, knobs));
  }
  return {{"version", version()},
          {"schema", "tritax.validate-ops/1"},
          {"stamping_cost", stamping_cost(rows)},
          {"operations", std::move(kinds)},
          {"rows", std::move(list)}};
}

}  // namespace

int run_validate_ops(const ValidateOpsOptions& options, const std::vector<Scenario>& scenarios,
                     Outputs& outputs) {
  std::vector<MeasuredOpsFile> files;
  for (const std::string& path : options.files) files.push_back(read_op_table(path));
  InterruptibleWork work;
  Progress progress("validating");
  ValidateOptions validate_options;
  validate_options.threads = options.threads.value_or(0);
  validate_options.progress = [&progress](std::size_t done, std::size_t all) { progress.update(done, all); };
  validate_options.cancelled = [&work] { return work.interrupted(); };
  const std::vector<OpResidual> rows = validate_ops(files, scenarios, options.machine, validate_options);
  progress.clear();
  if (work.interrupted()) tell("tritax: interrupted; some scenarios are missing\n");
  for (const MeasuredOpsFile& file : files) {
    outputs.print(fmt::format("{}: {}\n", file.origin,
                              file.remarks.empty() ? "does not say where it was measured" : file.remarks[0]));
  }
  outputs.print(
      fmt::format("stamping made the measured runs {:.1f} % longer (median)\n\n", 100 * stamping_cost(rows)));
  if (options.all_rows) {
    outputs.print(row_table(rows));
    outputs.print("\n");
  }
  outputs.print(kind_table(summarise_ops(rows)));
  outputs.print(
      "\nThe time of a store, copy or atomic add runs from its begin, or from the end of the previous one in "
      "its workgroup,\n"
      "until it has drained. Errors are predicted / measured - 1; below 0, the model is too fast.\n");
  outputs.csv(record_table(rows), !work.interrupted());
  ordered_json json = ops_json(rows);
  json["interrupted"] = work.interrupted();
  outputs.json(json);
  return work.interrupted() ? interrupted_exit_code() : 0;
}

}  // namespace tritax::cli
