#include "cli/calibrate_grid.hpp"

#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>

#include "cli/terminal.hpp"
#include "model/core/error.hpp"
#include "model/core/with_place.hpp"
#include "sim/study/fit_grid_models.hpp"

namespace tritax::cli {

namespace {

Table grid_model_table(const GridModels& models) {
  Table table{{{"option", "kernel"},
               {"dtype", "dtype"},
               {"runs", "runs"},
               {"a_us", "a", "us", 3},
               {"b_us", "b", "us", 3},
               {"c_us", "c", "us", 4},
               {"d_us", "d", "us", 3},
               {"b_over_c", "b/c", "", 2},
               {"d_over_c", "d/c", "", 2},
               {"median_error_percent", "median error", "%"},
               {"worst_error_percent", "worst", "%"}},
              {}};
  for (const FittedGridModel& one : models.models) {
    const GridModel& model = one.fit.model;
    table.add({one.option, std::string(name_of(one.dtype)), one.runs, model.a / 1e3, model.b / 1e3,
               model.c / 1e3, model.d / 1e3, model.b / model.c, model.d / model.c, 100 * one.fit.median_error,
               100 * one.fit.worst_error});
  }
  return table;
}

bool is_measured(const std::string& file) { return file.ends_with(".csv") || file.ends_with(".csv.gz"); }

void append_samples(GridSamples& all, GridSamples more) {
  all.left_out += more.left_out;
  all.samples.insert(all.samples.end(), std::make_move_iterator(more.samples.begin()),
                     std::make_move_iterator(more.samples.end()));
}

GridSamples samples_of(const GridCalibration& asked, const Machine& machine) {
  GridSamples all;
  std::vector<MeasuredFile> measured;
  std::vector<Scenario> simulated;
  for (const std::string& file : asked.files) {
    if (is_measured(file)) {
      measured.push_back(read_measured(file));
    } else {
      for (Scenario& scenario : read_scenarios(file)) {
        if (scenario.machine != asked.machine) {
          throw UserError(fmt::format("{}: '{}' is for machine {}, but --machine is {}; give '--machine {}'",
                                      file, scenario.id, scenario.machine, asked.machine, scenario.machine));
        }
        simulated.push_back(std::move(scenario));
      }
    }
  }
  if (!measured.empty()) {
    append_samples(all, measured_grid_samples(match_scenarios(measured, {}, false, asked.machine), machine));
  }
  if (!simulated.empty()) {
    ParallelOptions parallel;
    parallel.threads = asked.threads.value_or(0);
    append_samples(all, simulated_grid_samples(simulated, machine, parallel));
  }
  return all;
}

}  // namespace

void calibrate_grid_models(const GridCalibration& asked, const Machine& machine) {
  const bool to_stdout = is_standard_output(asked.output);
  Outputs outputs(asked.tables, to_stdout ? "--output" : "");
  std::optional<OutputFile> file;
  if (!to_stdout) file.emplace(asked.output, "--output");
  const GridSamples samples = samples_of(asked, machine);
  const FittedGridModels fitted =
      with_place("--grid-model: ", [&] { return fit_grid_models(samples.samples, machine); });
  const std::string text = fitted.models.to_json();
  if (file) {
    file->commit(text);
  } else {
    write_standard_output(text);
  }
  const Table table = grid_model_table(fitted.models);
  outputs.print(fmt::format("time(g) = a + b [peers > 1] + c iterations + d (peers - 1), {} on {}\n\n",
                            fitted.models.workload, machine.title()));
  outputs.print(table);
  for (const std::string& reason : fitted.undecided) outputs.print("\nNot decided: " + reason + "\n");
  if (samples.left_out > 0) {
    outputs.print(
        fmt::format("\n{} runs were skipped: they share work in other ways, or have more workgroups than "
                    "compute units.\n",
                    samples.left_out));
  }
  outputs.csv(table);
  if (asked.tables.json) outputs.json_text(text);
}

}  // namespace tritax::cli
