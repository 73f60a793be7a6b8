// tritax explain: the account of a run's time, and the inputs that have no effect on it.
#include "sim/study/explain.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/levels.hpp"
#include "cli/output.hpp"
#include "cli/record.hpp"
#include "cli/report.hpp"
#include "cli/run_detail.hpp"
#include "cli/run_input.hpp"
#include "cli/terminal.hpp"
#include "model/core/with_place.hpp"

namespace tritax::cli {

namespace {

using nlohmann::ordered_json;

struct ExplainArguments {
  OutputOptions output;
  RunInputOptions run_input;
  std::optional<std::int64_t> seed;
  std::optional<int> threads;
  bool counterfactual = false;
  std::string level;  // "": the level of tiles
};

double change_percent(const Variation& variation, double makespan_ns) {
  return 100 * (variation.makespan_ns / makespan_ns - 1);
}

enum class Shown { all, that_ran };

// One line per variation of an input.
Table variation_table(const std::vector<Sensitivity>& inputs, double makespan_ns, Shown shown) {
  Table table{{{"input", "input"},
               {"value", "value"},
               {"varied_to", "varied to"},
               {"time_us", "time", "us"},
               {"change_percent", "change", "%", 2}},
              {}};
  for (const Sensitivity& input : inputs) {
    for (const Variation& variation : input.variations) {
      if (shown == Shown::that_ran && !variation.obstacle.empty()) continue;
      table.add({input.input, input.value, variation.value, us(variation.makespan_ns),
                 change_percent(variation, makespan_ns)});
    }
  }
  return table;
}

std::string names_of(const std::vector<Sensitivity>& inputs) {
  std::vector<std::string> names;
  for (const Sensitivity& input : inputs) {
    names.push_back(input.input);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

// Values that could not be run, of inputs with other values that could.
void print_obstacles(const Explanation& explanation, const Outputs& outputs) {
  std::string lines;
  for (const auto* inputs : {&explanation.with_effect, &explanation.without_effect}) {
    for (const Sensitivity& input : *inputs) {
      for (const Variation& variation : input.variations) {
        if (variation.obstacle.empty()) continue;
        lines +=
            fmt::format("{}, {} -> {}: {}\n", input.input, input.value, variation.value, variation.obstacle);
      }
    }
  }
  if (lines.empty()) return;
  outputs.print(fmt::format("\n{}\n{}", styled("Values that cannot be run", Style::bold), lines));
}

// Overlap of a GPU's communication with its products, and the share of the run for each kind of work.
Table overlap_table(const std::vector<Overlap>& overlaps, double run_ns) {
  Table table{{{"gpu", "GPU"},
               {"computing_us", "computing", "us"},
               {"computing_percent", "of run", "%"},
               {"communicating_us", "communicating", "us"},
               {"communicating_percent", "of run", "%"},
               {"both_us", "both", "us"},
               {"hidden_percent", "hidden", "%"},
               {"idle_us", "neither", "us"},
               {"idle_percent", "of run", "%"}},
              {}};
  const auto percent_of_run = [run_ns](double ns) { return run_ns > 0 ? 100 * ns / run_ns : 0; };
  for (std::size_t gpu = 0; gpu < overlaps.size(); ++gpu) {
    const Overlap& one = overlaps[gpu];
    table.add({static_cast<std::int64_t>(gpu), us(one.computing_ns), percent_of_run(one.computing_ns),
               us(one.communicating_ns), percent_of_run(one.communicating_ns), us(one.both_ns),
               100 * one.hidden(), us(one.idle_ns), percent_of_run(one.idle_ns)});
  }
  return table;
}

// Causes of waiting while a GPU neither computes nor communicates.
Table idle_table(const std::vector<Overlap>& overlaps) {
  Table table{{{"gpu", "GPU"},
               {"idle_us", "neither", "us"},
               {"launch_us", "host and launch", "us"},
               {"flag_us", "flags of peers", "us"},
               {"kernel_us", "ends of kernels", "us"},
               {"other_us", "other", "us"}},
              {}};
  for (std::size_t gpu = 0; gpu < overlaps.size(); ++gpu) {
    const Overlap& one = overlaps[gpu];
    table.add({static_cast<std::int64_t>(gpu), us(one.idle_ns), us(one.idle.launch_ns), us(one.idle.flag_ns),
               us(one.idle.kernel_ns), us(one.idle.other_ns)});
  }
  return table;
}

void print_explanation(const RunInput& run_input, const Explanation& explanation, bool counterfactual,
                       const Outputs& outputs) {
  outputs.print(styled(run_input.title, Style::bold) + "\n\n");
  for (const std::string& sentence : explanation.sentences) {
    outputs.print(wrapped(sentence));
  }
  outputs.print("\n");
  outputs.print(account_table(explanation.result.account));
  outputs.print("\n");
  if (counterfactual) {
    outputs.print(counterfactual_table(explanation.taxes));
    outputs.print("\n");
  }
  outputs.print(overlap_table(explanation.overlaps, explanation.result.makespan_ns));
  outputs.print("\n");
  outputs.print(idle_table(explanation.overlaps));
  outputs.print("\n");
  outputs.print(styled("Inputs that change the time, strongest first", Style::bold) + "\n");
  outputs.print(variation_table(explanation.with_effect, explanation.result.makespan_ns, Shown::that_ran));
  if (!explanation.without_effect.empty()) {
    outputs.print(fmt::format("\n{}\n{}", styled("Inputs that had no effect", Style::bold),
                              wrapped(names_of(explanation.without_effect))));
  }
  if (!explanation.not_variable.empty()) {
    outputs.print(fmt::format("\n{}\n", styled("Inputs that cannot be varied here", Style::bold)));
    for (const Sensitivity& input : explanation.not_variable) {
      const std::string reason =
          input.variations.empty() ? "at its bound" : input.variations.front().obstacle;
      outputs.print(fmt::format("{}: {}\n", input.input, reason));
    }
  }
  print_obstacles(explanation, outputs);
}

int run(const ExplainArguments& options) {
  Outputs outputs(options.output);
  const Level level = options.level.empty() ? Level::tile : parse_level(options.level);
  const RunInput run_input = load_run_input(single_source(options.run_input));
  if (level != Level::tile) {
    show_levels(run_input, level, outputs);
    return 0;
  }
  const std::unique_ptr<tbb::global_control> cores = limit_threads(options.threads);
  SimulationOptions simulation;
  simulation.seed = static_cast<std::uint64_t>(options.seed.value_or(1));
  Progress progress("varying inputs");
  const Explanation explanation = with_place(run_input.place, [&] {
    return explain(run_input.schedule, run_input.machine, run_input.rebuild ? &*run_input.rebuild : nullptr,
                   simulation,
                   [&progress](std::size_t done, std::size_t total) { progress.update(done, total); });
  });
  progress.clear();
  print_explanation(run_input, explanation, options.counterfactual, outputs);
  Table all = variation_table(explanation.with_effect, explanation.result.makespan_ns, Shown::all);
  for (const std::vector<Sensitivity>* inputs : {&explanation.without_effect, &explanation.not_variable}) {
    for (std::vector<Cell>& row : variation_table(*inputs, explanation.result.makespan_ns, Shown::all).rows) {
      all.add(std::move(row));
    }
  }
  const Record record = record_of(run_input, simulation.seed);
  outputs.csv(with_record(all, record));
  ordered_json json{{"schema", "tritax.explain/1"}};
  json.update(explanation_json(run_input, explanation));
  add_record(json, record);
  outputs.json(json);
  return 0;
}

}  // namespace

Run add_explain(CLI::App& program, const Workload& workload) {
  auto options = std::make_shared<ExplainArguments>();
  CLI::App& command =
      *program.add_subcommand("explain", "Show where the time goes and which inputs have no effect");
  add_run_input_options(command, workload, options->run_input);
  add_sustained_option(command, options->run_input.sustained);
  add_threads_option(command, options->threads);
  add_seed_option(command, options->seed);
  command.add_flag("--counterfactual", options->counterfactual,
                   "Also show what the run saves without each tax, one at a time");
  command.add_option("--level", options->level, "Show kernels below the tile instead: wave or instruction")
      ->type_name("NAME");
  add_output_options(command, options->output);
  command.footer(
      "The run is simulated again with every machine parameter 10 % smaller and 10 % larger, and with the\n"
      "neighbouring values of every knob. Inputs that do not change the time are listed.\n\n"
      "Examples:\n"
      "  tritax explain --pattern fused-sequential -M 8192 -N 4608 -K 36864 --machine mi300x-8\n"
      "  tritax explain my-schedule.json --machine h200-8 --json why.json\n"
      "  tritax explain --workload gemm -M 4096 -N 4096 -K 4096 --machine mi300x-8 --level instruction\n");
  return [options] { return run(*options); };
}

}  // namespace tritax::cli
