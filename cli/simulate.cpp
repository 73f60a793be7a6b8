// tritax simulate: the time of a run, both accounts of its taxes, and what its GPUs and links did.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cli/report.hpp"
#include "cli/subject.hpp"
#include "cli/terminal.hpp"

namespace tritax::cli {

namespace {

using nlohmann::ordered_json;

struct Options {
  OutputOptions output;
  SubjectOptions subject;
  std::optional<std::int64_t> seed;
  bool links = false;
};

struct Simulated {
  Subject subject;
  SimulationResult result;
  Taxes taxes;
  double flops = 0;
};

Simulated simulate_source(const Source& source, const SimulationOptions& options) {
  Simulated run;
  run.subject = load_subject(source);
  run.result = simulate(run.subject.schedule, run.subject.machine, options);
  run.taxes = account_taxes(run.subject.schedule, run.subject.machine, options);
  run.flops = source.scenario ? flops_of(*source.scenario) : run.result.matrix_flops;
  return run;
}

void print_run(const Simulated& run, bool links, Outputs& outputs) {
  const SimulationResult& result = run.result;
  outputs.print(styled(run.subject.title, Style::bold) + '\n');
  outputs.print(fmt::format("time {:.1f} us, of which kernels {:.1f} us", us(result.makespan_ns),
                            us(result.kernels_ns)));
  if (run.flops > 0) {
    outputs.print(fmt::format(", {:.1f} TFLOP/s", run.flops / result.makespan_ns / 1000));
  }
  outputs.print("\n\n");
  outputs.print(account_table(result.account));
  outputs.print("\n");
  outputs.print(tax_table(run.taxes));
  outputs.print("\n");
  outputs.print(rank_table(result, run.subject.machine));
  outputs.print(fmt::format(
      "\noperand hits: L2 {:.1f} %, last-level cache {:.1f} % of the rest; HBM traffic {:.1f} MB\n",
      100 * result.l2_hit_fraction, 100 * result.llc_hit_fraction, result.hbm_bytes / 1e6));
  outputs.print(describe_links(result, run.subject.machine, run.subject.schedule.ranks));
  if (links) {
    outputs.print("\n");
    outputs.print(link_table(result, run.subject.machine, run.subject.schedule.ranks));
  }
  outputs.print("\n");
}

ordered_json run_json(const Simulated& run) {
  const SimulationResult& result = run.result;
  ordered_json gpus = ordered_json::array();
  for (const RankResult& gpu : result.ranks) {
    gpus.push_back({{"time_us", us(gpu.makespan_ns)},
                    {"kernels_us", us(gpu.kernels_ns)},
                    {"cu_busy_us", us(gpu.cu_busy_ns)},
                    {"critical_path", json_of(gpu.account)}});
  }
  return {{"id", run.subject.id},
          {"machine", run.subject.machine.name},
          {"time_us", us(result.makespan_ns)},
          {"kernels_us", us(result.kernels_ns)},
          {"flops", run.flops},
          {"critical_path", json_of(result.account)},
          {"taxes", json_of(run.taxes)},
          {"gpus", std::move(gpus)},
          {"l2_hit_fraction", result.l2_hit_fraction},
          {"llc_hit_fraction", result.llc_hit_fraction},
          {"hbm_bytes", result.hbm_bytes},
          {"links", links_json(result, run.subject.machine, run.subject.schedule.ranks)},
          {"tile_operations", result.tile_operations}};
}

// The GPU table of every run, with the run's id in front.
void append(Table& all, const Simulated& run) {
  Table table = rank_table(run.result, run.subject.machine);
  if (all.columns.empty()) {
    all.columns = table.columns;
    all.columns.insert(all.columns.begin(), Column{"id", "run"});
  }
  for (std::vector<Cell>& row : table.rows) {
    row.insert(row.begin(), run.subject.id);
    all.add(std::move(row));
  }
}

// One line a run, when there are several.
Table summary_table() {
  return {{{"id", "run"},
           {"time_us", "time", "us"},
           {"kernels_us", "kernels", "us"},
           {"tflops", "rate", "TFLOP/s"},
           {"launch_us", "launch tax", "us"},
           {"bulk_synchronous_us", "bulk-sync tax", "us"},
           {"locality_us", "locality tax", "us"},
           {"contention_us", "contention", "us"}},
          {}};
}

void append_summary(Table& table, const Simulated& run) {
  const SimulationResult& result = run.result;
  table.add({run.subject.id, us(result.makespan_ns), us(result.kernels_ns),
             run.flops / result.makespan_ns / 1000, us(result.account.launch_ns),
             us(result.account.bulk_synchronous_ns), us(result.account.locality_ns),
             us(result.account.contention_ns)});
}

int run(const Options& options) {
  Outputs outputs(options.output);
  const std::vector<Source> sources = sources_of(options.subject);
  SimulationOptions simulation;
  simulation.seed = static_cast<std::uint64_t>(options.seed.value_or(1));
  Table summary = summary_table();
  Table gpus;
  ordered_json runs = ordered_json::array();
  Progress progress("simulating");
  for (const Source& source : sources) {
    const Simulated simulated = simulate_source(source, simulation);
    progress.update(runs.size() + 1, sources.size());
    append_summary(summary, simulated);
    append(gpus, simulated);
    runs.push_back(run_json(simulated));
    if (sources.size() == 1) {
      progress.clear();
      print_run(simulated, options.links, outputs);
    }
  }
  progress.clear();
  if (sources.size() > 1) {
    outputs.print(summary);
    outputs.print(
        "\nTaxes along the critical path. 'tritax simulate FILE --id ID' shows one run in detail.\n");
  }
  outputs.csv(gpus);
  outputs.json({{"schema", "tritax.simulate/1"}, {"runs", std::move(runs)}});
  return 0;
}

}  // namespace

Run add_simulate(CLI::App& program) {
  auto options = std::make_shared<Options>();
  CLI::App& command =
      *program.add_subcommand("simulate", "Predict the time of a scenario, schedule or pattern");
  add_subject_options(command, options->subject);
  add_seed_option(command, options->seed);
  command.add_flag("--links", options->links, "List every link");
  add_output_options(command, options->output);
  command.footer(
      "All scenarios of a file are run, or the one with --id. The time is accounted twice: along the "
      "critical path,\n"
      "where the parts sum to the time, and by repeating the run without one tax at a time.\n\n"
      "Examples:\n"
      "  tritax simulate scenarios/iris.toml\n"
      "  tritax simulate my-schedule.json --machine mi300x-8 --json -\n"
      "  tritax simulate --pattern workgroup-specialised -M 8192 -N 3584 -K 14336 --machine mi300x-8 "
      "--comm-cus 48\n");
  return [options] { return run(*options); };
}

}  // namespace tritax::cli
