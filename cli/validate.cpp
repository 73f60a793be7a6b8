// tritax validate: predictions compared with measurements on GPUs.
#include "sim/study/validate.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "cli/commands.hpp"
#include "cli/interrupt.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "cli/page.hpp"
#include "cli/parity_plot.hpp"
#include "cli/svg.hpp"
#include "cli/terminal.hpp"
#include "cli/validate_library.hpp"
#include "cli/validate_ops.hpp"
#include "cli/validate_output.hpp"
#include "model/core/error.hpp"

namespace tritax::cli {

namespace {

struct ValidateArguments {
  OutputOptions output;
  PageOptions page;
  std::vector<std::string> scenarios;
  std::vector<std::string> measured;
  Asked asked;        // the machine and its changes
  std::string clock;  // "": wall
  std::string plot;
  std::vector<std::string> ops;
  std::vector<std::string> library;
  bool all_rows = false;
  std::optional<int> threads;
};

// Notes where the files do not seem to match the machine.
void print_notes(const std::vector<MeasuredFile>& files, const std::vector<ValidatedRow>& rows,
                 const Outputs& outputs) {
  std::set<std::pair<std::size_t, std::string>> pairs;
  for (const ValidatedRow& row : rows) pairs.emplace(row.file, row.machine);
  for (const auto& [file, machine] : pairs) {
    const std::string gpu = find_machine(machine).gpu.name;
    const std::vector<std::string>& remarks = files[file].remarks;
    outputs.print(fmt::format("{}: {}\n", files[file].origin,
                              remarks.empty() ? "does not say where it was measured" : remarks.front()));
    const bool named = std::any_of(remarks.begin(), remarks.end(), [&gpu](const std::string& remark) {
      return remark.find(gpu) != std::string::npos;
    });
    if (!named) {
      outputs.print(fmt::format("note: its first lines do not name the {} of machine '{}'\n", gpu, machine));
    }
  }
}

std::vector<MeasuredFile> measurements_of(const ValidateArguments& options) {
  if (options.measured.empty()) return shipped_measurements();
  std::vector<MeasuredFile> files;
  for (const std::string& path : options.measured) files.push_back(read_measured(path));
  return files;
}

std::vector<Scenario> scenarios_of(const ValidateArguments& options) {
  if (options.scenarios.empty()) return shipped_measured_scenarios();
  std::vector<Scenario> scenarios;
  for (const std::string& path : options.scenarios) {
    std::vector<Scenario> more = read_scenarios(path);
    std::move(more.begin(), more.end(), std::back_inserter(scenarios));
  }
  return scenarios;
}

// Compares whole runs, by either clock.
int compare_runs(const ValidateArguments& options, PageOutput& page, Outputs& outputs) {
  const std::vector<ParameterChange>& changes = options.asked.changes;
  std::optional<OutputFile> plot;
  if (!options.plot.empty()) {
    require_svg(options.plot);
    plot.emplace(options.plot, "--plot");
  }
  const std::string clock_name(options.clock.empty() ? kMeasuredClockNames.front() : options.clock);
  const auto clock = static_cast<MeasuredClock>(parse_name(clock_name, "--clock", kMeasuredClockNames));
  const std::vector<MeasuredFile> files = measurements_of(options);
  std::vector<MeasuredScenario> measured =
      match_scenarios(files, scenarios_of(options), !options.scenarios.empty(), options.asked.machine);
  for (MeasuredScenario& row : measured) row.scenario.changes = changes;
  if (measured.empty()) {
    throw UserError(
        "no measured row has the id of a scenario in the files given; ids look like 'id/pattern'");
  }
  InterruptibleWork work;
  Progress progress("validating");
  ValidateOptions validate_options;
  validate_options.threads = options.threads.value_or(0);
  validate_options.progress = [&progress](std::size_t done, std::size_t all) { progress.update(done, all); };
  validate_options.cancelled = [&work] { return work.interrupted(); };
  const std::vector<ValidatedRow> rows = validate(measured, validate_options);
  progress.clear();
  if (work.interrupted()) {
    tell(fmt::format("tritax: interrupted; {} of {} rows are missing\n", measured.size() - rows.size(),
                     measured.size()));
  }
  print_notes(files, rows, outputs);
  print_validated(rows, options.all_rows, clock, outputs);
  const ValidatedMachines machines = machines_of(rows, changes);
  outputs.csv(validated_csv(rows, machines), !work.interrupted());
  nlohmann::ordered_json json = validated_json(rows, clock, machines);
  json["interrupted"] = work.interrupted();
  outputs.json(json);
  page.write([&] { return validated_page(rows, clock, std::move(json), machines); }, work, outputs);
  if (plot && work.interrupted()) {
    tell(fmt::format("tritax: --plot: '{}' is not written, since points are missing\n", options.plot));
  } else if (plot) {
    plot->commit(to_svg(parity_plot(rows, clock)));
  }
  return work.interrupted() ? interrupted_exit_code() : 0;
}

int run(const ValidateArguments& options) {
  PageOutput page(options.page);
  Outputs outputs(options.output, page.taken_by());
  if (page.wanted() && (!options.ops.empty() || !options.library.empty())) {
    throw UserError("report: a page shows only runs; leave out --ops and --library");
  }
  outputs.require_text(options.all_rows, "--rows");
  require_each_once(options.measured, "--measured");
  require_each_once(options.ops, "--ops");
  require_each_once(options.library, "--library");
  require_each_once(options.scenarios, "scenario files");
  if (!options.ops.empty() && !options.library.empty())
    throw UserError("--ops and --library: give one of them");
  const std::string& machine = options.asked.machine;
  const std::vector<ParameterChange>& changes = options.asked.changes;
  if (!machine.empty()) find_machine_option(machine, changes);  // so that an error names the flag, not a row
  if (!options.ops.empty()) {
    if (!options.plot.empty() || !options.measured.empty() || !options.clock.empty()) {
      throw UserError("--ops: compares operations, not runs; leave out --measured, --clock and --plot");
    }
    std::vector<Scenario> scenarios = scenarios_of(options);
    for (Scenario& scenario : scenarios) scenario.changes = changes;
    return run_validate_ops({options.ops, machine, options.all_rows, options.threads}, scenarios, outputs);
  }
  if (!options.library.empty()) {
    if (!options.plot.empty() || !options.measured.empty() || !options.scenarios.empty() ||
        !options.clock.empty()) {
      throw UserError(
          "--library: its files say what ran; leave out scenarios, --measured, --clock and --plot");
    }
    return run_validate_library({options.library, machine, changes, options.all_rows, options.threads},
                                outputs);
  }
  return compare_runs(options, page, outputs);
}

}  // namespace

Run add_validate(CLI::App& program, const Workload& /*workload*/) {
  auto options = std::make_shared<ValidateArguments>();
  CLI::App& command = *program.add_subcommand(
      "validate", "Compare predictions with measurements on GPUs: errors, picks, regret");
  command.add_option("SCENARIO", options->scenarios,
                     "Scenario files: only measured rows of these scenarios count (default: all rows)");
  command
      .add_option("--measured", options->measured,
                  "Files of 'tritax measure' (default: the shipped measurements)")
      ->type_name("FILE.csv");
  command
      .add_option("--machine", options->asked.machine,
                  "Machine for the predictions, instead of the scenario's (rows without a scenario: h200-4)")
      ->type_name("NAME|FILE");
  command
      .add_option("--clock", options->clock,
                  "wall: host programs from start to end (default); device: first to last workgroup")
      ->type_name("NAME");
  command.add_option("--plot", options->plot, "Draw a parity plot: predicted over measured")
      ->type_name("FILE.svg")
      ->group(kOutputGroup);
  command
      .add_option(
          "--ops", options->ops,
          "Compare tile operations by kind instead: a file of 'tritax measure --ops'; may be repeated")
      ->allow_extra_args(false)
      ->type_name("FILE.csv");
  command
      .add_option("--library", options->library,
                  "Compare the library baseline instead: a file that a script in backend_hip/baselines "
                  "wrote; may be repeated")
      ->allow_extra_args(false)
      ->type_name("FILE.csv");
  add_change_options(command, options->asked, false);
  command.add_flag("--rows", options->all_rows, "Show every row, not only those with the largest errors");
  add_threads_option(command, options->threads);
  add_output_options(command, options->output);
  add_page_options(command, options->page, PageShows::answers);
  command.footer(
      "No GPU is needed: the measurements come from files. An error is predicted / measured - 1; regret\n"
      "is how much longer the model's pick took than the measured best. Large errors are a result, not a\n"
      "failure: the exit code is 0. docs/validate-on-your-cluster.md says how to measure on your own\n"
      "GPUs.\n\n"
      "Examples:\n"
      "  tritax validate\n"
      "  tritax validate --clock device --plot parity.svg\n"
      "  tritax validate --measured my-node.csv --machine my-node.toml --json -\n"
      "  tritax validate --ops my-node-ops.csv --machine my-node.toml\n"
      "  tritax validate --library scenarios/measured/h200-4-library-2.csv --rows\n");
  return [options] { return run(*options); };
}

}  // namespace tritax::cli
