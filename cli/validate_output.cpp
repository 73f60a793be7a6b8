// The output of `tritax validate`, for people and as CSV, JSON and a page.
#include "cli/validate_output.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "cli/fields.hpp"
#include "cli/report.hpp"
#include "cli/svg.hpp"
#include "cli/terminal.hpp"
#include "cli/trust.hpp"
#include "cli/version.hpp"

namespace tritax::cli {

namespace {

using nlohmann::ordered_json;

constexpr std::size_t kWorstRows = 10;  // shown without --rows

std::string shape_of(const Problem& problem) { return problem.workload->size_text(problem); }

// For tiled kernels the tile and the split of the compute units, else all knobs in short form.
std::string knobs_of(const ValidatedRow& row) {
  const Spec* tile = find_spec(row.knobs.specs(), "tile");
  if (tile == nullptr)
    return describe(find_pattern(*row.problem.workload, row.pattern, row.where), row.knobs);
  const std::string shape = text_of(row.knobs, static_cast<std::size_t>(tile - row.knobs.specs().data()));
  const std::int64_t comm_cus = row.knobs.get_or("comm_cus", 0);
  return comm_cus == 0 ? shape : fmt::format("{} {}+{}", shape, row.knobs.get_or("gemm_cus", 0), comm_cus);
}

Table row_table(const std::vector<ValidatedRow>& rows, MeasuredClock clock) {
  Table table{{{"shape", "shape"},
               {"gpus", "GPUs"},
               {"pattern", "pattern"},
               {"knobs", "knobs"},
               {"measured_us", "measured", "us"},
               {"predicted_us", "predicted", "us"},
               {"error_percent", "error", "%"}},
              {}};
  for (const ValidatedRow& row : rows) {
    table.add({shape_of(row.problem), std::int64_t{row.problem.gpus()}, row.pattern, knobs_of(row),
               row.measured_ns(clock) * 1e-3, row.predicted_on(clock) * 1e-3, 100 * row.error(clock)});
  }
  return table;
}

// Columns of fields and knobs of all rows, each once; without GPUs, which stand before them.
std::vector<std::string> value_columns(const std::vector<ValidatedRow>& rows) {
  std::vector<std::string> columns;
  std::set<const Workload*> seen;
  for (const ValidatedRow& row : rows) {
    if (!seen.insert(row.problem.workload).second) continue;
    for (const Values* values : {&row.problem.values, &row.knobs}) {
      for (const Spec& spec : values->specs()) {
        for (std::size_t part = 0; part < spec.columns() && !spec.counts_gpus; ++part) {
          std::string column = spec.column(part);
          if (std::find(columns.begin(), columns.end(), column) == columns.end())
            columns.push_back(std::move(column));
        }
      }
    }
  }
  return columns;
}

// The value of a column as a cell; empty where the row has no such column.
Cell value_cell(const ValidatedRow& row, const std::string& column) {
  for (const Values* values : {&row.problem.values, &row.knobs}) {
    if (!values->has(column)) continue;
    const Spec* spec = find_spec(values->specs(), column);  // null for a part of a shape, which is a number
    if (spec == nullptr || spec->kind == ValueKind::integer || spec->kind == ValueKind::bytes)
      return (*values)[column];
    return text_of(*values, static_cast<std::size_t>(spec - values->specs().data()));
  }
  return {};
}

// Adds every value by its name; shapes as arrays of numbers.
void add_values(ordered_json& json, const Values& values) {
  for (std::size_t i = 0; i < values.specs().size(); ++i) {
    const Spec& spec = values.specs()[i];
    const std::string name(spec.name);
    if (spec.counts_gpus) continue;
    if (spec.columns() == 1) {
      json[name] = json_of(values, i);
      continue;
    }
    for (std::size_t part = 0; part < spec.columns(); ++part) json[name].push_back(values[spec.column(part)]);
  }
}

ordered_json row_json(const ValidatedRow& row, MeasuredClock clock, const ValidatedMachines& machines) {
  ordered_json clocks = ordered_json::object();
  for (std::size_t i = 0; i < kMeasuredClockNames.size(); ++i) {
    const auto one = static_cast<MeasuredClock>(i);
    clocks[std::string(kMeasuredClockNames[i])] = {{"measured_us", row.measured[i].median_ns * 1e-3},
                                                   {"measured_p10_us", row.measured[i].p10_ns * 1e-3},
                                                   {"measured_p90_us", row.measured[i].p90_ns * 1e-3},
                                                   {"predicted_us", row.predicted_ns[i] * 1e-3},
                                                   {"error", row.error(one)}};
  }
  ordered_json json{{"id", row.id},
                    {"pattern", row.pattern},
                    {"machine", row.machine},
                    {"machine_changes", describe_changes(machines.at(row.machine))},
                    {"version", version()},
                    {"workload", row.problem.workload->name},
                    {"gpus", row.problem.gpus()}};
  add_values(json, row.problem.values);
  add_values(json, row.knobs);
  json.update({{"measured_us", row.measured_ns(clock) * 1e-3},
               {"predicted_us", row.predicted_on(clock) * 1e-3},
               {"error", row.error(clock)},
               {"band", row.band.known() ? ordered_json(row.band_on(clock)) : ordered_json()},
               {"in_band", json_of(row.in_band(clock))},
               {"clocks", std::move(clocks)},
               {"where", row.where}});
  return json;
}

Table error_table(const std::vector<ValidatedRow>& rows, MeasuredClock clock) {
  Table table{{{"pattern", "pattern"},
               {"gpus", "GPUs"},
               {"rows", "rows"},
               {"median_abs_error_percent", "median |error|", "%"},
               {"p90_abs_error_percent", "p90 |error|", "%"},
               {"median_error_percent", "median error", "%"}},
              {}};
  const auto add = [&](const std::string& name, const std::string& gpus, const auto& counts) {
    const ErrorSummary summary = summarise_errors(rows, clock, counts);
    table.add({name, gpus, static_cast<std::int64_t>(summary.rows), 100 * summary.median_abs_error,
               100 * summary.p90_abs_error, 100 * summary.median_error});
  };
  std::set<std::pair<std::string, int>> groups;
  std::set<std::string> names;
  for (const ValidatedRow& row : rows) {
    groups.emplace(row.pattern, row.problem.gpus());
    names.insert(row.pattern);
  }
  for (const std::string& name : names) {
    for (const auto& [pattern, gpus] : groups) {
      if (pattern != name) continue;
      add(name, std::to_string(gpus), [&name = name, gpus = gpus](const ValidatedRow& row) {
        return row.pattern == name && row.problem.gpus() == gpus;
      });
    }
    add(name, "all", [&name](const ValidatedRow& row) { return row.pattern == name; });
  }
  add("all", "all", [](const ValidatedRow&) { return true; });
  return table;
}

Table choice_table(const std::vector<Choice>& choices, MeasuredClock clock) {
  Table table{{{"shape", "shape"},
               {"gpus", "GPUs"},
               {"picked", "model's pick"},
               {"best", "measured best"},
               {"best_us", "best", "us"},
               {"regret_percent", "regret", "%"},
               {"pairs_in_order", "pairs in order"}},
              {}};
  for (const Choice& choice : choices) {
    table.add({shape_of(choice.problem), std::int64_t{choice.problem.gpus()},
               fmt::format("{} {}", choice.picked->pattern, knobs_of(*choice.picked)),
               fmt::format("{} {}", choice.best->pattern, knobs_of(*choice.best)),
               choice.best->measured_ns(clock) * 1e-3, 100 * choice.regret,
               fmt::format("{} of {}", choice.pairs_in_order(), choice.pairs())});
  }
  return table;
}

std::string clock_text(MeasuredClock clock) {
  return clock == MeasuredClock::wall ? "Clock: wall; measured from a common start to the end of every "
                                        "rank's host program, predicted as "
                                        "the makespan."
                                      : "Clock: device; measured from the first workgroup's begin to the "
                                        "last one's end on the slowest "
                                        "rank, predicted in the same way.";
}

std::vector<ValidatedRow> worst_first(std::vector<ValidatedRow> rows, MeasuredClock clock) {
  std::stable_sort(rows.begin(), rows.end(), [clock](const ValidatedRow& a, const ValidatedRow& b) {
    return std::abs(a.error(clock)) > std::abs(b.error(clock));
  });
  rows.resize(std::min(rows.size(), kWorstRows));
  return rows;
}

std::vector<ComparedSet> compared_of(const std::vector<ValidatedRow>& rows, MeasuredClock clock) {
  std::vector<Comparison> comparisons;
  for (const ValidatedRow& row : rows)
    comparisons.push_back({row.set, row.gpu, row.problem, Compared::own, row.error(clock)});
  return compared_sets(comparisons);
}

}  // namespace

ValidatedMachines machines_of(const std::vector<ValidatedRow>& rows,
                              const std::vector<ParameterChange>& changes) {
  ValidatedMachines machines;
  for (const ValidatedRow& row : rows) {
    if (machines.count(row.machine) == 0)
      machines.emplace(row.machine, changed(find_machine(row.machine), changes));
  }
  return machines;
}

Table validated_csv(const std::vector<ValidatedRow>& rows, const ValidatedMachines& machines) {
  const std::vector<std::string> columns = value_columns(rows);
  Table table{{{"id", ""}, {"pattern", ""}, {"gpus", ""}}, {}};
  for (const std::string& column : columns) table.columns.push_back({column, ""});
  for (const char* column :
       {"machine", "measured_wall_us", "predicted_wall_us", "wall_error", "measured_device_us",
        "predicted_device_us", "device_error", "workload", "machine_changes", "version"}) {
    table.columns.push_back({column, ""});
  }
  for (const ValidatedRow& row : rows) {
    std::vector<Cell> cells{row.id, row.pattern, std::int64_t{row.problem.gpus()}};
    for (const std::string& column : columns) cells.push_back(value_cell(row, column));
    cells.emplace_back(row.machine);
    for (const MeasuredClock clock : {MeasuredClock::wall, MeasuredClock::device}) {
      cells.emplace_back(row.measured_ns(clock) * 1e-3);
      cells.emplace_back(row.predicted_on(clock) * 1e-3);
      cells.emplace_back(row.error(clock));
    }
    cells.emplace_back(std::string(row.problem.workload->name));
    cells.emplace_back(fmt::format("{}", fmt::join(describe_changes(machines.at(row.machine)), "; ")));
    cells.emplace_back(std::string(version()));
    table.add(std::move(cells));
  }
  return table;
}

ordered_json validated_json(const std::vector<ValidatedRow>& rows, MeasuredClock clock,
                            const ValidatedMachines& machines) {
  const ValidationSummary summary = summarise(rows, clock);
  ordered_json list = ordered_json::array();
  for (const ValidatedRow& row : rows) list.push_back(row_json(row, clock, machines));
  ordered_json choices = ordered_json::array();
  for (const Choice& choice : choices_of(rows, clock)) {
    ordered_json& json = choices.emplace_back(json_of(choice.problem.values));
    json.update({{"picked", choice.picked->id},
                 {"best", choice.best->id},
                 {"best_pattern_picked", choice.same_pattern()},
                 {"predicted_order", choice.predicted_order},
                 {"measured_order", choice.measured_order},
                 {"regret", choice.regret},
                 {"workload", choice.problem.workload->name}});
  }
  return {{"schema", "tritax.validate/1"},
          {"version", version()},
          {"clock", kMeasuredClockNames[static_cast<std::size_t>(clock)]},
          {"summary", json_of(validation_fields(), summary)},
          {"choices", std::move(choices)},
          {"rows", std::move(list)},
          {"compared", json_of(compared_of(rows, clock))}};
}

void print_validated(const std::vector<ValidatedRow>& rows, bool all_rows, MeasuredClock clock,
                     const Outputs& outputs) {
  const auto title = [&](std::string_view text) { outputs.print('\n' + styled(text, Style::bold) + '\n'); };
  outputs.print(clock_text(clock) + '\n');
  title(all_rows ? "Rows" : "Rows with the largest errors (--rows shows all)");
  outputs.print(row_table(all_rows ? rows : worst_first(rows, clock), clock));
  title("The model's pick among the measured patterns");
  outputs.print(choice_table(choices_of(rows, clock), clock));
  title("Error of the predictions; below 0, the model is too fast");
  outputs.print(error_table(rows, clock));
  title("Comparisons, as lines of scenarios/compared.csv");
  outputs.print(compared_table(compared_of(rows, clock)));
  title("Summary");
  outputs.print(sentences_of(summarise(rows, clock)));
}

ParityPlot parity_plot(const std::vector<ValidatedRow>& rows, MeasuredClock clock) {
  const std::string_view clock_name = kMeasuredClockNames[static_cast<std::size_t>(clock)];
  const ErrorSummary errors = summarise_errors(rows, clock, [](const ValidatedRow&) { return true; });
  ParityPlot plot;
  std::set<std::string> machines;
  for (const ValidatedRow& row : rows) {
    machines.insert(row.machine);
    plot.points.push_back({row.measured_ns(clock) * 1e-3, row.predicted_on(clock) * 1e-3, row.pattern,
                           fmt::format("{} on {} GPUs: measured {:.1f} us, predicted {:.1f} us ({:+.1f} %)",
                                       row.id, row.problem.gpus(), row.measured_ns(clock) * 1e-3,
                                       row.predicted_on(clock) * 1e-3, 100 * row.error(clock))});
  }
  plot.title = fmt::format("Predicted and measured {} time, {}", clock_name, fmt::join(machines, ", "));
  plot.subtitle = fmt::format("{} rows: median |error| {:.1f} %, 90th percentile {:.1f} %", errors.rows,
                              100 * errors.median_abs_error, 100 * errors.p90_abs_error);
  plot.x_label = fmt::format("measured {} time (us)", clock_name);
  plot.y_label = fmt::format("predicted {} time (us)", clock_name);
  return plot;
}

Page validated_page(const std::vector<ValidatedRow>& rows, MeasuredClock clock, ordered_json result,
                    const ValidatedMachines& machines) {
  const ParityPlot plot = parity_plot(rows, clock);
  Page page;
  page.kind = "validate";
  page.title = plot.title;
  page.result = std::move(result);
  for (const auto& [name, machine] : machines) page.machines.push_back(machine);
  page.figure = to_svg(plot);
  return page;
}

}  // namespace tritax::cli
