// tritax calibrate: a machine file whose parameters are fitted to microbenchmarks.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "backend_hip/microbench.hpp"
#include "backend_hip/options.hpp"
#include "cli/calibrate_grid.hpp"
#include "cli/commands.hpp"
#include "cli/gpu.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "cli/record.hpp"
#include "cli/terminal.hpp"
#include "cli/version.hpp"
#include "model/core/error.hpp"
#include "model/core/quantile.hpp"
#include "model/core/read_file.hpp"
#include "model/machine/write_machine.hpp"
#include "sim/study/calibrate/calibrate.hpp"

namespace tritax::cli {

namespace {

using nlohmann::ordered_json;

struct CalibrateArguments {
  std::string output;
  std::vector<std::string> microbench;  // empty: run them
  std::vector<std::string> grid_model;  // runs; empty: calibrate a machine
  std::string machine = "h200-4";
  Asked asked;       // changes of the machine
  std::string name;  // "": the base's name
  std::string commit;
  std::optional<int> threads;
  OutputOptions tables;
};

// Runs the microbenchmarks of this machine; returns the file with their rows.
std::string run_microbenchmarks(const CalibrateArguments& options) {
  if (is_standard_output(options.output)) {
    throw UserError(
        "--output: measured rows are stored beside the machine file; give a file name, or rows with "
        "--microbench");
  }
#if defined(TRITAX_WITH_GPU)
  gpu::MicrobenchOptions micro;
  micro.output = std::filesystem::path(options.output).replace_extension().string() + "-microbench.csv";
  micro.command = gpu::command_line();
  micro.commit = options.commit;
  gpu::RunOptions run;
  run.executor.flush_bytes = 0;
  gpu::run_microbenchmarks(micro, run);
  return micro.output;
#else
  static_cast<void>(options);
  refuse_without_gpu("calibrate without --microbench");
#endif
}

// Determined parameters, or the others; without a choice all parameters, with a column that marks them.
Table parameter_table(const Calibration& calibration, std::optional<bool> determined) {
  Table table{{{"parameter", "parameter"},
               {"old", "old"},
               {"new", "new"},
               {"unit", "unit"},
               {"rows", "rows"},
               {"residual_percent", "residual", "%"},
               {"standard_error_percent", "std. error", "%"}},
              {}};
  if (!determined) table.columns.push_back({"determined", "determined"});
  for (const CalibratedParameter& p : calibration.parameters) {
    if (determined && p.determined != *determined) continue;
    std::vector<Cell> row{p.key,
                          fmt::format("{:.5g}", p.old_value),
                          fmt::format("{:.5g}", p.value),
                          p.unit,
                          std::int64_t{p.rows},
                          100 * p.residual,
                          100 * p.standard_error};
    if (!determined) row.push_back(std::string(p.determined ? "yes" : "no"));
    table.add(std::move(row));
  }
  return table;
}

// Errors of the calibrated machine on the rows of one kind, fitted or not.
struct KindErrors {
  std::string group;
  std::string name;
  std::int64_t fitted = 0;
  std::vector<double> errors;
};

std::vector<KindErrors> errors_by_kind(const Calibration& calibration) {
  std::vector<KindErrors> kinds;
  for (const CalibratedRow& row : calibration.rows) {
    auto kind = std::find_if(kinds.begin(), kinds.end(),
                             [&](const KindErrors& k) { return k.group == row.group && k.name == row.name; });
    if (kind == kinds.end()) kind = kinds.insert(kinds.end(), {row.group, row.name, 0, {}});
    kind->fitted += row.fitted ? 1 : 0;
    kind->errors.push_back(row.error());
  }
  return kinds;
}

Table error_table(const Calibration& calibration) {
  Table table{{{"group", "group"},
               {"name", "name"},
               {"rows", "rows"},
               {"fitted_rows", "fitted"},
               {"median_error_percent", "median error", "%"},
               {"lowest_error_percent", "lowest", "%"},
               {"highest_error_percent", "highest", "%"}},
              {}};
  for (const KindErrors& kind : errors_by_kind(calibration)) {
    const auto [low, high] = std::minmax_element(kind.errors.begin(), kind.errors.end());
    table.add({kind.group, kind.name, static_cast<std::int64_t>(kind.errors.size()), kind.fitted,
               100 * quantile(kind.errors, 0.5), 100 * *low, 100 * *high});
  }
  return table;
}

ordered_json calibration_json(const Calibration& calibration, const CalibrateArguments& options,
                              const std::vector<std::string>& measured) {
  ordered_json parameters = ordered_json::array();
  for (const CalibratedParameter& p : calibration.parameters) {
    parameters.push_back({{"key", p.key},
                          {"unit", p.unit},
                          {"old", p.old_value},
                          {"new", p.value},
                          {"determined", p.determined},
                          {"rows", p.rows},
                          {"residual", p.residual},
                          {"standard_error", std::isfinite(p.standard_error) ? ordered_json(p.standard_error)
                                                                             : ordered_json(nullptr)},
                          {"remark", p.remark}});
  }
  ordered_json rows = ordered_json::array();
  for (const CalibratedRow& row : calibration.rows) {
    rows.push_back({{"group", row.group},
                    {"name", row.name},
                    {"parameters", row.parameters},
                    {"measured_us", row.measured_us},
                    {"simulated_us", row.simulated_us},
                    {"fitted", row.fitted}});
  }
  return {{"schema", "tritax.calibrate/1"},
          {"version", version()},
          {"machine_changes", describe_changes(calibration.machine)},
          {"machine", calibration.machine.name},
          {"base", options.machine},
          {"microbench", measured},
          {"residual", calibration.residual},
          {"parameters", parameters},
          {"rows", rows}};
}

void print(const Calibration& calibration, const std::string& place, const Outputs& outputs) {
  outputs.print(fmt::format("{}\n\n", place));
  outputs.print(parameter_table(calibration, true));
  const Table poor = parameter_table(calibration, false);
  if (!poor.rows.empty()) {
    outputs.print("\nThe rows do not determine these parameters, which keep their old values:\n");
    outputs.print(poor);
  }
  for (const CalibratedParameter& p : calibration.parameters) {
    if (!p.remark.empty()) outputs.print(fmt::format("{}: {}\n", p.key, p.remark));
  }
  outputs.print("\nThe microbenchmarks, simulated on the calibrated machine (simulated / measured - 1):\n");
  outputs.print(error_table(calibration));
  outputs.print(
      fmt::format("\nresidual {:.1f} %: root mean square over fitted rows and all rows that fill links\n",
                  100 * calibration.residual));
}

void require_printable_name(const std::string& name) {
  const std::size_t at = find_control(name);
  if (at == std::string::npos) return;
  throw UserError(
      fmt::format("--name: control character 0x{:02x}; leave it out", static_cast<unsigned char>(name[at])));
}

// The machine file may be updated, but measured rows are not replaced by rows derived from them.
void refuse_measured_rows(const CalibrateArguments& options) {
  for (const std::string& rows : options.microbench) {
    std::error_code unknown;
    if (!std::filesystem::equivalent(rows, options.output, unknown)) continue;
    throw UserError(
        fmt::format("--output: cannot write '{}': --microbench reads it; give another file", options.output));
  }
}

int run_grid_models(const CalibrateArguments& options) {
  for (const auto& [given, flag] :
       {std::pair{!options.microbench.empty(), "--microbench"}, std::pair{!options.name.empty(), "--name"},
        std::pair{!options.commit.empty(), "--commit"}}) {
    if (given) throw UserError(fmt::format("{}: --grid-model does not use it; leave it out", flag));
  }
  const auto limit = limit_threads(options.threads);
  const Machine machine = find_machine_option(options.machine, options.asked.changes);
  calibrate_grid_models(
      {options.grid_model, options.output, options.machine, options.threads, options.tables}, machine);
  return 0;
}

int run(const CalibrateArguments& options) {
  if (!options.grid_model.empty()) return run_grid_models(options);
  require_printable_name(options.name);
  refuse_measured_rows(options);
  const auto limit = limit_threads(options.threads);
  const Machine base = find_machine_option(options.machine, options.asked.changes);
  const bool to_stdout = is_standard_output(options.output);
  Outputs outputs(options.tables, to_stdout ? "--output" : "");
  std::optional<OutputFile> file;
  if (!to_stdout) file.emplace(options.output, "--output", OutputKind::machine_file);
  const std::vector<std::string> measured =
      options.microbench.empty() ? std::vector{run_microbenchmarks(options)} : options.microbench;
  const MicrobenchTable table = read_microbench(measured, base.gpus_per_node, base.gpu.cu_count());
  Progress progress("simulating microbenchmarks");
  CalibrateOptions watched;
  watched.simulated = [&progress](std::uint64_t simulations) { progress.update(simulations, 0); };
  Calibration calibration = calibrate(base, table, options.name.empty() ? base.name : options.name, watched);
  progress.clear();
  // The doubts belong to the base machine.
  calibration.machine.doubts.clear();
  const std::string text = write_machine(
      calibration.machine, fmt::format("{}. Written by tritax calibrate; format: docs/machines.md.",
                                       calibration.machine.description));
  if (file) {
    file->commit(text);
  } else {
    write_standard_output(text);
  }
  print(calibration, table.place, outputs);
  Record record;
  record.machine = &calibration.machine;
  outputs.csv(with_record(parameter_table(calibration, std::nullopt), record));
  outputs.json(calibration_json(calibration, options, measured));
  return 0;
}

}  // namespace

Run add_calibrate(CLI::App& program, const Workload& /*workload*/) {
  auto options = std::make_shared<CalibrateArguments>();
  CLI::App& command = *program.add_subcommand("calibrate", "Fit a machine file to microbenchmarks of a node");
  command
      .add_option("-o,--output", options->output,
                  "Machine file to write, or grid models (JSON); '-': standard output")
      ->type_name("FILE")
      ->group(kOutputGroup)
      ->required();
  command
      .add_option("--microbench", options->microbench,
                  "Rows of 'tritax-gpu microbench' (default: measure on this machine's GPUs, and store the "
                  "rows beside the output); may be repeated")
      ->type_name("FILE.csv")
      ->allow_extra_args(false)
      ->take_all();
  command
      .add_option("--grid-model", options->grid_model,
                  "Fit grid models for 'tritax advise --selector' instead of a machine: to rows of 'tritax "
                  "measure', or to scenarios, which are simulated; may be repeated")
      ->type_name("FILE.csv|FILE.toml")
      ->allow_extra_args(false)
      ->take_all();
  command.add_option("--machine", options->machine, "Machine that gives every parameter that is not fitted")
      ->type_name("NAME|FILE")
      ->capture_default_str();
  command.add_option("--name", options->name, "Name of the calibrated machine (default: the base's)");
  command.add_option("--commit", options->commit, "Source revision, for the header of measured rows");
  add_change_options(command, options->asked, false);
  add_threads_option(command, options->threads);
  add_output_options(command, options->tables);
  command.footer(
      "Every microbenchmark is a schedule. The fit changes parameters until simulated times match the\n"
      "measured ones. Parameters that the rows do not determine keep the base's values and are listed.\n"
      "docs/calibrate.md says which rows determine which parameter.\n\n"
      "Examples:\n"
      "  tritax calibrate -o my-node.toml --machine mi300x-8 --name my-node\n"
      "  tritax calibrate -o h200-4.toml --microbench scenarios/measured/h200-4-microbench.csv\n"
      "  tritax validate --machine my-node.toml --measured my-node.csv\n"
      "  tritax calibrate --grid-model runs.csv --machine h100-4 -o grid.json\n");
  return [options] { return run(*options); };
}

}  // namespace tritax::cli
