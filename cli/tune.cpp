// tritax tune: trains a selector over many problems, and scores its choices.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <utility>

#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "cli/report.hpp"
#include "cli/svg.hpp"
#include "cli/sweep_plot.hpp"
#include "cli/tune_grid.hpp"
#include "cli/tune_picks.hpp"
#include "cli/tune_tree.hpp"
#include "cli/version.hpp"
#include "model/core/error.hpp"
#include "model/core/quantile.hpp"
#include "model/core/with_place.hpp"
#include "model/scenario/scenario.hpp"
#include "sim/study/gemm_corpus.hpp"
#include "sim/study/pattern_choice.hpp"

namespace tritax::cli {

namespace {

using nlohmann::ordered_json;

constexpr std::array<std::string_view, 2> kCorpusTypes{"fp16", "fp64"};
constexpr std::array<std::string_view, 2> kTuned{"sieve", "tree"};
constexpr std::string_view kModelsEnding = ".json";  // a file to evaluate instead of training
constexpr std::size_t kMostDrawn = 3000;             // points per series in a picture

struct TuneArguments : Asked {
  OutputOptions output;
  std::string file;
  std::string corpus;
  std::string dtype = "fp16";
  std::optional<std::int64_t> count;
  std::optional<std::int64_t> simulate;
  std::optional<std::int64_t> seed;
  std::optional<std::int32_t> key_bits;
  std::optional<int> threads;
  double false_positive_rate = SieveDesign{}.false_positive_rate;
  double tolerance = 0.05;
  std::string sieve;
  std::string header;
  std::string plot;
  std::string selector{kTuned[0]};
  TreeTuning trees;

  bool wants_trees() const { return selector == kTuned[1]; }
  bool wants_grids() const { return selector.ends_with(kModelsEnding); }
  SieveDesign design() const { return {key_bits.value_or(SieveDesign{}.key_bits), false_positive_rate}; }
};

// Output files, opened before the work starts.
struct TuneFiles {
  explicit TuneFiles(const TuneArguments& asked) : outputs(asked.output) {
    const auto open = [](std::optional<OutputFile>& file, const std::string& path, const char* flag) {
      if (!path.empty()) file.emplace(path, flag);
    };
    open(sieve, asked.sieve, "--sieve");
    open(header, asked.header, "--header");
    if (!asked.plot.empty()) require_svg(asked.plot);
    open(plot, asked.plot, "--plot");
    open(tree, asked.trees.tree, "--tree");
  }
  TreeOutputs for_trees() { return {outputs, tree, header, plot}; }
  Outputs outputs;
  std::optional<OutputFile> sieve, header, plot, tree;
};

// The sieve of a table: its score as text and JSON, and the requested files.
void report_sieve(const TuneArguments& asked, const ChoiceTable& table, const TunedSieve& tuned, Table picks,
                  TuneFiles& files, ordered_json& json) {
  const SieveScore& score = tuned.score;
  const double every = std::nan("");
  add_pick(picks, "sieve, then the fastest left", score.lookup_ns, score.left, score.fastest);
  add_pick(picks, "sieve, then the first left", score.lookup_ns, 1, score.first);
  const auto held_out = divided(table.problems.size()).second;
  std::vector<std::size_t> best, usual(held_out.size(), 0);
  for (const std::size_t problem : held_out) best.push_back(table.best(problem));
  add_pick(picks, "exhaustive", every, static_cast<double>(table.options.size()),
           score_picks(table, held_out, best));
  add_pick(picks, fmt::format("always {}", table.options.front()), every, 1,
           score_picks(table, held_out, usual));
  files.outputs.print(
      fmt::format("sieve of {} options: {} problems for training, {} held out; {} bits\n"
                  "options slower than the best by more than {:g} %: {:.1f} % dropped, {:.1f} % kept; {} "
                  "problems keep no suitable option, {} lose the best option; {:.1f} % of problems have a "
                  "new key\n\n",
                  table.options.size(), score.trained, score.held_out, tuned.sieve.bits(),
                  100 * asked.tolerance, 100 * score.eliminated, 100 * score.false_positives,
                  score.false_negatives, score.best_lost, 100 * score.unknown));
  files.outputs.print(picks);
  json["sieve"] = {{"key_bits", asked.design().key_bits},
                   {"false_positive_rate", asked.false_positive_rate},
                   {"tolerance", asked.tolerance},
                   {"bits", tuned.sieve.bits()},
                   {"trained", score.trained},
                   {"held_out", score.held_out},
                   {"eliminated", score.eliminated},
                   {"false_positives", score.false_positives},
                   {"false_negatives", score.false_negatives},
                   {"best_lost", score.best_lost},
                   {"unknown", score.unknown}};
  json["selectors"] = json_of_table(picks);
  files.outputs.csv(picks);
  if (files.sieve) files.sieve->commit(tuned.sieve.to_json());
  if (files.header) files.header->commit(tuned.sieve.to_header("tritax_tuned"));
}

// The machine as in the paper.
Machine corpus_machine(const TuneArguments& asked) {
  return find_machine_option(asked.machine.empty() ? "a100-8-1005mhz" : asked.machine, asked.changes);
}

CorpusKernels corpus_kernels(const TuneArguments& asked, const Machine& machine) {
  if (asked.dtype == "fp16") return fp16_kernels(element_of(machine.gpu, DType::fp16));
  const Element fp64 = element_of(machine.gpu, DType::fp64);
  if (fp64.rate.flop_per_clk_per_cu <= 0) {
    throw UserError(fmt::format("--dtype: {} has no rate for fp64; give fp16", machine.gpu.name));
  }
  return fp64_kernels(fp64);
}

Table speedup_table(const CorpusKernels& kernels, const std::vector<GemmSize>& sizes,
                    const std::vector<CorpusTimes>& times) {
  Table table{{{"against", "Stream-K against"},
               {"gemms", "GEMMs"},
               {"mean", "mean", "", 3},
               {"std", "std", "", 3},
               {"min", "min", "", 3},
               {"max", "max", "", 2}},
              {}};
  const auto add = [&](const std::string& name, bool compute_bound, auto other_ns) {
    std::vector<double> speedups;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (compute_bound && intensity_of(sizes[i], kernels.element) < kernels.compute_bound) continue;
      speedups.push_back(other_ns(times[i]) / times[i].schedule_ns[3]);
    }
    const Distribution found = distribution_of(speedups);
    table.add(
        {name, static_cast<std::int64_t>(found.count), found.mean, found.deviation, found.least, found.most});
  };
  add("data-parallel, same tile", false, [](const CorpusTimes& one) { return one.schedule_ns[0]; });
  add("ensemble by a heuristic", false, [](const CorpusTimes& one) { return one.ensemble_ns; });
  add(fmt::format("… from {:g} flop/B on", kernels.compute_bound), true,
      [](const CorpusTimes& one) { return one.ensemble_ns; });
  add("oracle of tiles", false, [](const CorpusTimes& one) { return one.oracle_ns; });
  return table;
}

// Errors of every schedule against simulation, on the first GEMMs of the corpus.
void report_compared(const std::vector<ComparedRun>& runs, TuneFiles& files, ordered_json& json) {
  Table table{{{"schedule", "closed form against simulation"},
               {"gemms", "GEMMs"},
               {"median_error_pct", "median |error|", "%"},
               {"p90_error_pct", "90 % below", "%"},
               {"median_ratio", "median ratio", "", 3}},
              {}};
  const auto add = [&](const std::string& name, auto counts) {
    std::vector<double> errors, ratios;
    for (const ComparedRun& run : runs) {
      if (!counts(run)) continue;
      ratios.push_back(run.closed_ns / run.simulated_ns);
      errors.push_back(std::abs(ratios.back() - 1));
    }
    const auto count = static_cast<std::int64_t>(errors.size());
    table.add({name, count, 100 * quantile(errors, 0.5), 100 * quantile(errors, 0.9), quantile(ratios, 0.5)});
  };
  for (const std::string_view schedule : kCorpusSchedules) {
    add(std::string(schedule), [&](const ComparedRun& run) { return run.schedule == schedule; });
  }
  add("all", [](const ComparedRun&) { return true; });
  files.outputs.print(table);
  files.outputs.print("\n");
  json["against_simulation"] = json_of_table(table);
}

SweepPlot corpus_plot(const Machine& machine, const CorpusKernels& kernels,
                      const std::vector<GemmSize>& sizes, const std::vector<CorpusTimes>& times) {
  SweepPlot plot;
  plot.title = fmt::format("Data-parallel and Stream-K, {} GEMMs in {}", sizes.size(), kernels.element.name);
  plot.subtitle = fmt::format("closed form, {}, tile {}x{}x{}", machine.title(), kernels.tile.m,
                              kernels.tile.n, kernels.tile.k);
  plot.x_label = "arithmetic intensity (flop/B)";
  plot.y_label = "predicted time (us)";
  const std::size_t step = std::max<std::size_t>(1, sizes.size() / kMostDrawn);
  for (const std::size_t schedule : {std::size_t{0}, std::size_t{3}}) {
    SweepLine line{std::string(kCorpusSchedules[schedule]), {}, false};
    for (std::size_t i = 0; i < sizes.size(); i += step) {
      line.points.emplace_back(intensity_of(sizes[i], kernels.element), us(times[i].schedule_ns[schedule]));
    }
    plot.lines.push_back(std::move(line));
  }
  return plot;
}

int tune_corpus(const TuneArguments& asked, const Corpus& corpus, TuneFiles& files) {
  const Machine machine = corpus_machine(asked);
  const CorpusKernels kernels = corpus_kernels(asked, machine);
  const auto seed = static_cast<std::uint64_t>(asked.seed.value_or(1));
  const std::vector<GemmSize> sizes =
      log_sampled_gemms(asked.count.value_or(corpus.count), seed, corpus.least, corpus.most);
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<CorpusTimes> times = corpus_times(machine, kernels, sizes);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  ordered_json json{{"schema", "tritax.tune/1"},  {"version", version()},          {"corpus", corpus.name},
                    {"machine", machine.title()}, {"dtype", kernels.element.name}, {"seed", seed},
                    {"gemms", sizes.size()},      {"closed_form_s", taken.count()}};
  files.outputs.print(
      fmt::format("{} GEMMs in {}, tile {}x{}x{}, on one GPU of {}: {} schedules, an ensemble and an oracle "
                  "in {:.2f} s\n\n",
                  sizes.size(), kernels.element.name, kernels.tile.m, kernels.tile.n, kernels.tile.k,
                  machine.title(), sizes.size() * kCorpusSchedules.size(), taken.count()));
  const Table speedups = speedup_table(kernels, sizes, times);
  files.outputs.print(speedups);
  files.outputs.print("\n");
  json["speedups"] = json_of_table(speedups);
  if (asked.simulate) {
    const auto sample = std::min<std::size_t>(sizes.size(), static_cast<std::size_t>(*asked.simulate));
    const std::vector<GemmSize> some(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(sample));
    report_compared(compared_with_simulation(machine, kernels, some), files, json);
  }
  const ChoiceTable table = policy_choices(machine, kernels, sizes);
  report_sieve(asked, table, tune_sieve(table, asked.design(), asked.tolerance), pick_table(), files, json);
  if (files.plot) files.plot->commit(to_svg(corpus_plot(machine, kernels, sizes, times)));
  files.outputs.json(json);
  return 0;
}

std::vector<Scenario> scenarios_asked(const TuneArguments& asked) {
  std::vector<Scenario> scenarios = read_scenarios(asked.file);
  for (Scenario& scenario : scenarios) {
    if (!asked.machine.empty()) scenario.machine = asked.machine;
  }
  return scenarios;
}

int tune_scenarios(const TuneArguments& asked, TuneFiles& files) {
  const std::vector<Scenario> scenarios = scenarios_asked(asked);
  const Machine machine = changed(find_machine_of(scenarios.front()), asked.changes);
  const PatternTable found = pattern_table(scenarios, machine);
  const std::vector<std::size_t> held_out = divided(found.table.problems.size()).second;
  if (held_out.empty()) {
    throw UserError(fmt::format("{}: {} problems are too few to hold a tenth of them out", asked.file,
                                found.table.problems.size()));
  }
  std::vector<std::size_t> by_bound;
  for (const std::size_t problem : held_out) by_bound.push_back(found.by_bound[problem]);
  Table picks = pick_table();
  add_pick(picks, "lowest bound", found.bound_ns, 1, score_picks(found.table, held_out, by_bound));
  ordered_json json{{"schema", "tritax.tune/1"},
                    {"version", version()},
                    {"file", asked.file},
                    {"machine", machine.title()},
                    {"problems", found.table.problems.size()},
                    {"simulation_us", us(found.simulation_ns)}};
  report_sieve(asked, found.table, tune_sieve(found.table, asked.design(), asked.tolerance), std::move(picks),
               files, json);
  files.outputs.json(json);
  return 0;
}

bool is_table(const std::string& file) { return file.ends_with(".csv") || file.ends_with(".csv.gz"); }

int run_tune_trees(const TuneArguments& asked, const Corpus& corpus, TuneFiles& files) {
  const auto seed = static_cast<std::uint64_t>(asked.seed.value_or(1));
  if (!asked.corpus.empty()) {
    const Machine machine = corpus_machine(asked);
    const CorpusKernels kernels = corpus_kernels(asked, machine);
    const std::vector<GemmSize> sizes =
        log_sampled_gemms(asked.count.value_or(corpus.count), seed, corpus.least, corpus.most);
    TimedProblems problems = problems_of_choices(asked.trees, policy_choices(machine, kernels, sizes));
    problems.machine = machine.title();
    tune_trees(asked.trees, problems, seed, fmt::format("{} on {}", asked.corpus, machine.title()),
               files.for_trees());
  } else if (is_table(asked.file)) {
    tune_trees(asked.trees, problems_of_csv(asked.trees, asked.file), seed, asked.file, files.for_trees());
  } else {
    const std::vector<Scenario> scenarios = scenarios_asked(asked);
    const Machine machine = changed(find_machine_of(scenarios.front()), asked.changes);
    tune_trees(asked.trees, problems_of_scenarios(asked.trees, scenarios, machine), seed,
               fmt::format("{} on {}", asked.file, machine.title()), files.for_trees());
  }
  return 0;
}

// Options that make no sense with grid models, which are not trained.
void refuse_beside_grid_models(const TuneArguments& asked) {
  for (const auto& [given, flag] :
       {std::pair{!asked.corpus.empty(), "--corpus"}, std::pair{!asked.sieve.empty(), "--sieve"},
        std::pair{asked.key_bits.has_value(), "--key-bits"}, std::pair{!asked.header.empty(), "--header"},
        std::pair{!asked.plot.empty(), "--plot"}}) {
    if (given)
      throw UserError(fmt::format("{}: grid models are evaluated over scenarios; leave it out", flag));
  }
}

void refuse_what_does_not_go_together(const TuneArguments& asked) {
  if (asked.wants_grids()) {
    refuse_beside_grid_models(asked);
  } else {
    parse_name(asked.selector, "--selector", kTuned);
  }
  if (asked.wants_trees()) {
    for (const auto& [given, flag] :
         {std::pair{!asked.sieve.empty(), "--sieve"}, std::pair{asked.key_bits.has_value(), "--key-bits"},
          std::pair{asked.simulate.has_value(), "--simulate"}}) {
      if (given) throw UserError(fmt::format("{}: only a sieve has that; leave out --selector tree", flag));
    }
    if (is_table(asked.file) && (!asked.machine.empty() || !asked.changes.empty())) {
      throw UserError("--machine: a table has its own times; leave it out");
    }
  } else if (const std::string flag = asked.trees.given(); !flag.empty()) {
    throw UserError(fmt::format("{}: only decision trees have that; give --selector tree", flag));
  } else if (is_table(asked.file)) {
    throw UserError(
        fmt::format("{}: a table of times is for decision trees; give --selector tree", asked.file));
  }
}

int run_tune(const TuneArguments& asked) {
  if (asked.file.empty() == asked.corpus.empty()) {
    throw UserError("--corpus: give either a corpus or a scenario file with many problems");
  }
  refuse_what_does_not_go_together(asked);
  parse_name(asked.dtype, "--dtype", kCorpusTypes);
  if (asked.corpus.empty()) {
    for (const auto& [given, flag] :
         {std::pair{asked.count.has_value(), "--count"}, std::pair{asked.simulate.has_value(), "--simulate"},
          std::pair{asked.seed.has_value() && !asked.wants_trees(), "--seed"},
          std::pair{!asked.plot.empty() && !asked.wants_trees(), "--plot"}}) {
      if (given)
        throw UserError(fmt::format("{}: only a corpus has that; give --corpus, or leave it out", flag));
    }
  }
  Corpus corpus;
  if (!asked.corpus.empty()) corpus = with_place("--corpus: ", [&] { return find_corpus(asked.corpus); });
  TuneFiles files(asked);
  const std::unique_ptr<tbb::global_control> cores = limit_threads(asked.threads);
  if (asked.wants_trees()) return run_tune_trees(asked, corpus, files);
  if (asked.wants_grids()) {
    const std::vector<Scenario> scenarios = scenarios_asked(asked);
    const Machine machine = changed(find_machine_of(scenarios.front()), asked.changes);
    tune_grids(asked.selector, asked.file, scenarios, machine, files.outputs);
    return 0;
  }
  return asked.corpus.empty() ? tune_scenarios(asked, files) : tune_corpus(asked, corpus, files);
}

// A share in (0, 1), or [0, 1) with `zero`.
void add_share(CLI::App& app, const std::string& flag, double& target, bool zero, const std::string& help) {
  app.add_option_function<std::string>(
         flag,
         [&target, flag, zero](const std::string& text) {
           char* end = nullptr;
           const double value = std::strtod(text.c_str(), &end);
           const bool allowed = *end == '\0' && value < 1 && (zero ? value >= 0 : value > 0);
           if (!allowed) {
             throw UserError(fmt::format("{}: '{}' is not allowed; give a number {} and below 1", flag, text,
                                         zero ? "from 0" : "above 0"));
           }
           target = value;
         },
         help)
      ->type_name("SHARE");
}

}  // namespace

Run add_tune(CLI::App& program, const Workload& /*workload*/) {
  auto options = std::make_shared<TuneArguments>();
  CLI::App& command =
      *program.add_subcommand("tune", "Train a selector on many problems, and score its choices");
  command.add_option("FILE", options->file,
                     "Scenarios of one workload, one problem each; the selector chooses among patterns. For "
                     "trees also a table of times (CSV)");
  command
      .add_option("--selector", options->selector,
                  fmt::format("Selector to train: {} (default: sieve); or a file of grid models to evaluate "
                              "('tritax calibrate --grid-model')",
                              fmt::join(kTuned, ", ")))
      ->type_name("NAME|FILE.json");
  command
      .add_option(
          "--corpus", options->corpus,
          fmt::format("GEMMs instead of scenarios, timed by the closed form: a shipped corpus ({}) or a TOML "
                      "file",
                      fmt::join(shipped_corpora(), ", ")))
      ->type_name("NAME|FILE");
  add_machine_options(command, *options, false);
  command.add_option("--dtype", options->dtype, "Element type of the corpus: fp16 or fp64 (default fp16)")
      ->type_name("NAME");
  add_integer(command, "--count", options->count, "GEMMs to draw (default: as many as the corpus has)", 20,
              kMostGemms);
  add_integer(command, "--simulate", options->simulate,
              "Also simulate this many GEMMs of the corpus, in four schedules each, and compare", 1, 100'000);
  add_seed_option(command, options->seed);
  add_threads_option(command, options->threads);
  add_integer(command, "--key-bits", options->key_bits,
              "Binary digits after the leading one that distinguish numbers of problems (default: 4)", 0, 16);
  add_share(command, "--false-positives", options->false_positive_rate, false,
            "False-positive rate of the filters (default: 0.001)");
  add_share(command, "--tolerance", options->tolerance, true,
            "Options are suitable up to this share slower than the best (default: 0.05)");
  const auto add_file = [&](const char* flag, std::string& target, const char* help) {
    command.add_option(flag, target, help)->type_name("FILE")->group(kOutputGroup);
  };
  add_file("--sieve", options->sieve, "Write the sieve as JSON, for a kernel library to load");
  add_file("--tree", options->trees.tree, "Write the decision trees as JSON, for 'tritax advise --selector'");
  add_file("--header", options->header,
           "Write sieve or trees as a C++ header, for a kernel library to compile");
  add_file("--plot", options->plot,
           "Draw the trees, or the times of the corpus over arithmetic intensity (SVG)");
  add_tree_options(command, options->trees);
  add_output_options(command, options->output);
  command.footer(
      "The sieve has one Bloom filter per option. It is trained on nine tenths of the problems and scored\n"
      "on the others. Python's scikit-learn trains the decision trees; every problem is scored by trees\n"
      "that have not seen its group.\n\n"
      "Examples:\n"
      "  tritax tune --corpus stream-k --dtype fp64 --plot fp64.svg\n"
      "  tritax tune --corpus stream-k --simulate 1000 --header sieve.hpp\n"
      "  tritax tune llm --machine mi300x-8 --sieve sieve.json\n"
      "  tritax tune scenarios/measured/gemm-stream-k-2.toml --selector grid.json\n"
      "  tritax tune times.csv --selector tree --times csr_ms,ell_ms --features rows,nnz,nnz/rows --group "
      "matrix --tree tree.json\n");
  return [options] { return run_tune(*options); };
}

}  // namespace tritax::cli
