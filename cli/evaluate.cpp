// tritax evaluate: reads one candidate per line, and prints its time or its error as one line.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <optional>
#include <utility>

#include "cli/commands.hpp"
#include "cli/evaluate_line.hpp"
#include "cli/operation_limit.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "model/core/error.hpp"

namespace tritax::cli {

namespace {

struct EvaluateArguments : Asked {
  bool from_standard_input = false;
  std::optional<std::int64_t> seed;
  std::optional<std::int64_t> max_operations;
};

int evaluate_lines(const EvaluateArguments& arguments) {
  if (!arguments.from_standard_input) {
    throw UserError("--stdin: missing; candidates are read from standard input, one JSON object per line");
  }
  LineDefaults defaults;
  defaults.workload = arguments.problem.workload;
  defaults.machine = arguments.machine;
  defaults.changes = arguments.changes;
  defaults.seed = static_cast<std::uint64_t>(arguments.seed.value_or(1));
  defaults.max_operations = arguments.max_operations;
  LineEvaluator evaluator(std::move(defaults));
  std::ios::sync_with_stdio(false);
  std::string line;
  for (;;) {
    const LineRead read = read_line(std::cin, kLongestLine, line);
    if (read == LineRead::end) return 0;
    const std::string answer =
        read == LineRead::too_long
            ? invalid_line(fmt::format("the line is longer than {} bytes", kLongestLine))
            : evaluator.answer(line);
    write_standard_output(answer + '\n');
    if (standard_output_was_cut()) return 0;
  }
}

}  // namespace

Run add_evaluate(CLI::App& program, const Workload& workload) {
  auto options = std::make_shared<EvaluateArguments>();
  CLI::App& command =
      *program.add_subcommand("evaluate", "Answer candidates from another program, one JSON object per line");
  command.add_flag("--stdin", options->from_standard_input,
                   "Read candidates from standard input until it ends, and answer each at once");
  add_machine_options(command, *options, false);
  options->problem.workload = &workload;
  add_workload_option(command, workload);
  add_seed_option(command, options->seed);
  add_max_operations_option(command, options->max_operations);
  command.footer(
      "A line has \"problem\" and \"knobs\" (objects), \"pattern\" and \"workload\", or instead "
      "\"schedule\"\n"
      "(docs/schedule-format.md). It may have \"machine\", \"seed\" and \"id\"; the answer repeats the id. "
      "The\n"
      "answer has \"time_us\", \"bound_us\", \"operations\" and \"critical_path\" with the taxes, or "
      "\"invalid\"\n"
      "with the reason.\n\n"
      "Example:\n"
      "  echo '{\"id\": 1, \"problem\": {\"m\": 8192, \"n\": 4608, \"k\": 36864}, \"pattern\": "
      "\"producer-consumer\",\n"
      "         \"knobs\": {\"tile\": \"256x256x64\"}}' | tr '\\n' ' ' | tritax evaluate --stdin --machine "
      "mi300x-8\n");
  return [options] { return evaluate_lines(*options); };
}

}  // namespace tritax::cli
