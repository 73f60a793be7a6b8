// tritax simulate: the time of a run, both accounts of its taxes, and the activity of its GPUs and links.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tbb/parallel_for.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "cli/bars_plot.hpp"
#include "cli/commands.hpp"
#include "cli/fields.hpp"
#include "cli/interrupt.hpp"
#include "cli/operation_limit.hpp"
#include "cli/output.hpp"
#include "cli/page.hpp"
#include "cli/record.hpp"
#include "cli/report.hpp"
#include "cli/run_detail.hpp"
#include "cli/run_input.hpp"
#include "cli/terminal.hpp"
#include "cli/trust.hpp"
#include "cli/version.hpp"
#include "model/core/error.hpp"
#include "model/core/with_place.hpp"
#include "sim/account_fields.hpp"
#include "sim/run_fields.hpp"
#include "sim/study/explain.hpp"
#include "sim/study/message_rates.hpp"
#include "sim/study/spread.hpp"

namespace tritax::cli {

namespace {

using nlohmann::ordered_json;

struct SimulateArguments {
  OutputOptions output;
  PageOptions page;
  RunInputOptions run_input;
  std::optional<std::int64_t> seed;
  Symmetry symmetry = Symmetry::automatic;
  std::optional<int> threads;
  std::optional<std::int64_t> max_operations;
  bool links = false;
  bool caches = false;
  bool counterfactual = false;

  // Whether the second account of the taxes is shown anywhere; it costs five more runs.
  bool wants_taxes() const { return counterfactual || output.json || page.offered; }
};

// A run without its schedule, which is large.
struct Simulated {
  RunInput run_input;
  std::vector<std::pair<std::string, std::string>> at;  // on the axes of the command line
  int gpus = 0;
  std::vector<std::string> buffers;  // their names
  SimulationResult result;
  Taxes taxes;  // if requested
  Spread spread;
  double flops = 0;
  std::optional<MessageRates> message;  // of a collective alone
  std::string untimed;                  // a sentence (Workload::untimed)
};

// At most: two runs in order and two by dependences, each of which may need one run for its places.
constexpr int kRunsForTaxes = 6;

// `watch` is notified of operations; may be null.
Simulated simulate_source(const Source& source, const SimulateArguments& arguments, SimulationOptions options,
                          ProgressOfOperations* watch) {
  RunInput run_input = load_run_input(source);
  Simulated run;
  with_place(run_input.place, [&] {
    const bool with_taxes = arguments.wants_taxes();
    require_few_operations(run_input.schedule, with_taxes ? 1 + kRunsForTaxes : 1, arguments.max_operations,
                           with_taxes ? "ask for one run (neither --json nor --counterfactual), " : "");
    if (watch != nullptr) watch->expect(run_input.schedule.ops.size());
    // An observer needs all ranks.
    const bool may_fold =
        options.symmetry == Symmetry::on || options.symmetry == Symmetry::ranks ||
        (options.symmetry == Symmetry::automatic && run_input.schedule.ranks > kMostRanksInFull);
    options.observer = may_fold ? nullptr : watch;
    run.result = simulate(run_input.schedule, run_input.machine, options);
    options.observer = nullptr;
    const bool shown = watch != nullptr || arguments.output.json || arguments.page.offered;
    if (shown) {
      run.spread = spread_of(run_input.schedule, run_input.machine, options, run.result.makespan_ns);
    }
    if (!with_taxes) return;
    CounterfactualMakespans makespans;
    simulate_in_order(run_input.schedule, run_input.machine, options, makespans);
    simulate_by_dependences(run_input.schedule, run_input.machine, options, makespans);
    run.taxes = taxes_of(run.result, makespans);
  });
  run.flops = source.scenario ? work_of(source.scenario->problem).flops : run.result.matrix_flops;
  if (source.scenario) {
    const Scenario& scenario = *source.scenario;
    run.message = message_rates(scenario.problem, run.result);
    run.untimed = untimed_of(*scenario.problem.workload, pattern_of(scenario), scenario.knobs);
  }
  run.gpus = run_input.schedule.ranks;
  run.buffers = buffer_names(run_input.schedule);
  run_input.schedule = Schedule();
  run.run_input = std::move(run_input);
  run.at = source.at;
  return run;
}

// Results in the order of the sources, without interrupted ones. Of several errors, the error of the first
// source is thrown, independent of timing.
std::vector<Simulated> simulate_all(const std::vector<Source>& sources, const SimulateArguments& arguments,
                                    const SimulationOptions& options, const InterruptibleWork& work) {
  std::vector<std::optional<Simulated>> found(sources.size());
  std::vector<std::exception_ptr> errors(sources.size());
  std::atomic<std::size_t> done{0};
  const bool several = sources.size() > 1;
  Progress progress(several ? "simulating" : "simulating, operations");
  ProgressOfOperations watch(progress);
  tbb::parallel_for(std::size_t{0}, sources.size(), [&](std::size_t i) {
    if (work.interrupted()) return;
    try {
      Simulated run = simulate_source(sources[i], arguments, options, several ? nullptr : &watch);
      if (!work.interrupted()) found[i] = std::move(run);
    } catch (...) {
      errors[i] = std::current_exception();
    }
    if (several) progress.update(++done, sources.size());
  });
  for (const std::exception_ptr& error : errors) {
    if (error) {
      std::rethrow_exception(error);
    }
  }
  std::vector<Simulated> runs;
  for (std::optional<Simulated>& one : found) {
    if (one) runs.push_back(std::move(*one));
  }
  return runs;
}

void print_counterfactual(const Taxes& taxes, Outputs& outputs) {
  outputs.print(counterfactual_table(taxes));
  if (const std::string longer = describe_longer(taxes); !longer.empty()) outputs.print(wrapped(longer));
  outputs.print("\n");
}

void print_run(const Simulated& run, const SimulateArguments& options, Outputs& outputs) {
  const SimulationResult& result = run.result;
  outputs.print(styled(run.run_input.title, Style::bold) + '\n');
  outputs.print(fmt::format("time {:.1f} us, of which kernels {:.1f} us", us(result.makespan_ns),
                            us(result.kernels_ns)));
  if (run.flops > 0) {
    outputs.print(fmt::format(", {:.1f} TFLOP/s", run.flops / result.makespan_ns / 1000));
  }
  if (run.message) {
    for (const Field<MessageRates>& rate : message_fields()) {
      outputs.print(fmt::format(", {} {:.1f} GB/s", rate.name, rate.get(*run.message).number()));
    }
  }
  if (run.spread.worth_saying()) {
    outputs.print(fmt::format("\nrandom shares of full links: {}", text_of(run.spread)));
  }
  if (const int simulated = result.simulated_ranks; simulated < run.gpus) {
    outputs.print(simulated == 1 ? fmt::format("\nsimulated GPU 0 of {}: all GPUs behave alike", run.gpus)
                                 : fmt::format("\nsimulated GPUs 0 to {} of {}: the others behave alike",
                                               simulated - 1, run.gpus));
  }
  if (!run.untimed.empty()) outputs.print('\n' + run.untimed);
  outputs.print("\n\n");
  outputs.print(account_table(result.account));
  outputs.print("\n");
  if (options.counterfactual) print_counterfactual(run.taxes, outputs);
  outputs.print(rank_table(result, run.run_input.machine, Ranks::that_differ));
  outputs.print(fmt::format(
      "\noperand hits: L2 {:.1f} %, last-level cache {:.1f} % of the rest; HBM traffic {:.1f} MB\n",
      100 * result.l2_hit_fraction, 100 * result.llc_hit_fraction, result.hbm_bytes / 1e6));
  if (options.caches) {
    outputs.print("\n");
    outputs.print(cache_table(result, run.buffers));
    outputs.print("\n");
    outputs.print(die_table(result));
    outputs.print("\n");
  }
  outputs.print(describe_links(result, run.run_input.machine, run.gpus));
  if (options.links) {
    outputs.print("\n");
    outputs.print(link_table(result, run.run_input.machine, run.gpus));
  }
  outputs.print("\n");
}

ordered_json run_json(const Simulated& run, const Record& record) {
  const SimulationResult& result = run.result;
  ordered_json json{{"id", run.run_input.id}, {"machine", run.run_input.machine.name}};
  put_fields(json, run_fields(), result);
  json["spread"] = json_of(run.spread);
  json["flops"] = run.flops;
  if (run.message) put_fields(json, message_fields(), *run.message);
  json["taxes"] = json_of(run.taxes);
  ordered_json& gpus = json["gpus"] = ordered_json::array();
  for (const RankResult& gpu : result.ranks) {
    gpus.push_back(json_of(rank_fields(), RankedResult{gpus.size(), &gpu}));
  }
  json["caches"] = caches_json(result, run.buffers);
  json["links"] = links_json(result, run.run_input.machine, run.gpus);
  if (result.simulated_ranks < run.gpus) json["simulated_gpus"] = result.simulated_ranks;
  add_record(json, record);
  return json;
}

// The GPU table of a run, with the run's id as first column.
Table gpu_table(const Simulated& run) {
  Table table = rank_table(run.result, run.run_input.machine, Ranks::all);
  table.columns.insert(table.columns.begin(), Column{"id", "run"});
  for (std::vector<Cell>& row : table.rows) row.insert(row.begin(), run.run_input.id);
  return table;
}

// One line per run, if there are several; the name is followed by the place on the axes of the command line.
Table summary_table(const std::vector<Simulated>& runs, const std::vector<Source>& sources) {
  Fields<Simulated> fields;
  include(fields, pick(run_fields(), {"time", "kernels"}), &Simulated::result, {.shows = shown::kText});
  fields.push_back({{.name = "tflops", .unit = FieldUnit::tflop_per_s, .title = "rate"},
                    [](const Simulated& run) { return run.flops / run.result.makespan_ns / 1000; }});
  const auto account = [](const Simulated& run) { return run.result.account; };
  include(fields, tax_fields(), account, {.shows = shown::kText, .title_end = " tax"});
  include(fields, pick(account_fields(), {"contention"}), account, {.shows = shown::kText});
  include(fields, pick(account_fields(), {"harness"}), account, {.shows = shown::kText});
  fields.back().if_any = false;
  Table table = table_of(fields, runs, shown::kText);
  std::vector<Column> front{{"id", "run"}};
  for (const auto& [name, value] : sources.front().at) front.push_back({name, name});
  table.columns.insert(table.columns.begin(), front.begin(), front.end());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    std::vector<Cell> cells{runs[i].run_input.id};
    for (const auto& [name, value] : runs[i].at) cells.emplace_back(value);
    table.rows[i].insert(table.rows[i].begin(), cells.begin(), cells.end());
  }
  return table;
}

std::string figure_of(const std::vector<Simulated>& runs) {
  BarsPlot plot;
  plot.title = runs.size() == 1 ? runs.front().run_input.title : fmt::format("{} runs", runs.size());
  plot.subtitle = "time along the critical path";
  for (const Simulated& run : runs) {
    std::string label = run.run_input.id;
    for (const auto& [name, value] : run.at) label += fmt::format(" {} {}", name, value);
    plot.bars.push_back({std::move(label), run.result.account, run.spread.relative(), ""});
  }
  return to_svg(plot);
}

// All runs side by side; for a single run all details.
Page page_of(const std::vector<Simulated>& runs, const std::vector<Source>& sources, ordered_json result,
             const SimulationOptions& simulation, Inputs inputs) {
  Page page;
  page.kind = "simulate";
  page.title = runs.size() == 1 ? runs.front().run_input.title : fmt::format("{} runs", runs.size());
  page.result = std::move(result);
  if (runs.size() == 1) page.run = run_detail_json(load_run_input(sources.front()), simulation, inputs);
  for (const Simulated& run : runs) {
    const bool known = std::any_of(page.machines.begin(), page.machines.end(), [&](const Machine& machine) {
      return machine.title() == run.run_input.machine.title();
    });
    if (!known) page.machines.push_back(run.run_input.machine);
  }
  page.figure = figure_of(runs);
  return page;
}

int run(const SimulateArguments& options) {
  PageOutput page(options.page);
  Outputs outputs(options.output, page.taken_by());
  const std::vector<Source> sources = sources_of(options.run_input);
  for (const auto& [given, flag] :
       {std::pair{options.links, "--links"}, std::pair{options.caches, "--caches"}}) {
    outputs.require_text(given, flag);
    if (!given || sources.size() == 1) continue;
    throw UserError(fmt::format(
        "{}: it details one run, but '{}' has {} scenarios; choose one with --id, or give --json FILE", flag,
        options.run_input.file, sources.size()));
  }
  SimulationOptions simulation;
  simulation.seed = static_cast<std::uint64_t>(options.seed.value_or(1));
  simulation.symmetry = options.symmetry;
  RecordTable gpus;
  ordered_json runs = ordered_json::array();
  const std::unique_ptr<tbb::global_control> cores = limit_threads(options.threads);
  const InterruptibleWork work;
  simulation.stop = &work.flag();
  const std::vector<Simulated> simulated_runs = simulate_all(sources, options, simulation, work);
  const bool complete = simulated_runs.size() == sources.size();
  if (!complete) {
    tell(fmt::format("tritax: interrupted; {} of {} runs are missing\n",
                     sources.size() - simulated_runs.size(), sources.size()));
  }
  for (const Simulated& simulated : simulated_runs) {
    const Record record = record_of(simulated.run_input, simulation.seed);
    gpus.add(gpu_table(simulated), record);
    runs.push_back(run_json(simulated, record));
    if (sources.size() == 1) {
      print_run(simulated, options, outputs);
    }
  }
  if (sources.size() > 1) {
    outputs.print(summary_table(simulated_runs, sources));
    outputs.print(
        "\nTaxes along the critical path. 'tritax simulate FILE --id ID' shows one run in detail.\n");
  }
  outputs.csv(gpus.table(), complete);
  ordered_json json{{"schema", "tritax.simulate/1"},
                    {"version", version()},
                    {"runs", std::move(runs)},
                    {"interrupted", !complete}};
  outputs.json(json);
  page.write(
      [&] { return page_of(simulated_runs, sources, std::move(json), simulation, options.page.inputs()); },
      work, outputs);
  return complete && !work.interrupted() ? 0 : interrupted_exit_code();
}

void add_symmetry_option(CLI::App& command, Symmetry& symmetry) {
  command
      .add_option_function<std::string>(
          "--symmetry",
          [&symmetry](const std::string& name) {
            const auto found = std::find(kSymmetryNames.begin(), kSymmetryNames.end(), name);
            if (found == kSymmetryNames.end()) {
              throw UserError(fmt::format("--symmetry: '{}' is unknown; allowed: {}", name,
                                          fmt::join(kSymmetryNames, ", ")));
            }
            symmetry = static_cast<Symmetry>(found - kSymmetryNames.begin());
          },
          fmt::format("Simulate nodes that behave alike once: auto (with more than {} GPUs), on, off; ranks: "
                      "GPUs of a node too, a few per cent too fast (default: auto)",
                      kMostRanksInFull))
      ->type_name("NAME");
}

}  // namespace

Run add_simulate(CLI::App& program, const Workload& workload) {
  auto options = std::make_shared<SimulateArguments>();
  CLI::App& command =
      *program.add_subcommand("simulate", "Predict the time of a scenario, schedule or pattern");
  add_run_input_options(command, workload, options->run_input);
  add_sustained_option(command, options->run_input.sustained);
  add_threads_option(command, options->threads);
  add_seed_option(command, options->seed);
  add_symmetry_option(command, options->symmetry);
  add_max_operations_option(command, options->max_operations);
  command.add_flag("--links", options->links, "List every link");
  command.add_flag("--caches", options->caches, "Show cache hits and memory traffic, by buffer and by die");
  command.add_flag("--counterfactual", options->counterfactual,
                   "Also show what the run saves without each tax, one at a time");
  add_output_options(command, options->output);
  add_page_options(command, options->page, PageShows::answers_and_run);
  command.footer(
      "All scenarios of a file are run, or the one with --id. Options with several values make a table.\n"
      "The time is accounted along the critical path, where the parts sum to the time. --counterfactual\n"
      "adds what a run saves without each tax.\n\n"
      "Examples:\n"
      "  tritax simulate scenarios/iris-six-shapes.toml\n"
      "  tritax simulate my-schedule.json --machine mi300x-8 --json -\n"
      "  tritax simulate --pattern workgroup-specialised -M 8192 -N 3584 -K 14336 --machine mi300x-8 "
      "--comm-cus 48\n"
      "  tritax simulate --pattern fused-sequential -M 64,512,8192 -N 4608 -K 36864 --machine mi300x-8 "
      "--gpus 2,4,8 \\\n"
      "    --set fabric.link=32GB/s,64GB/s\n");
  return [options] { return run(*options); };
}

}  // namespace tritax::cli
