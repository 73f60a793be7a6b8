// tritax measure: runs the simulated schedules on the GPUs of this machine.
#include <CLI/CLI.hpp>
#include <memory>

#include "backend_hip/options.hpp"
#include "cli/commands.hpp"
#include "cli/gpu.hpp"

namespace tritax::cli {

namespace {

struct MeasureArguments {
  gpu::MeasureOptions measure;
  gpu::RunOptions run;
};

int run(MeasureArguments& options) {
#if defined(TRITAX_WITH_GPU)
  options.measure.command = gpu::command_line();
  return gpu::measure_scenarios(options.measure, options.run) ? 0 : 1;
#else
  static_cast<void>(options);
  refuse_without_gpu("measure");
#endif
}

}  // namespace

Run add_measure(CLI::App& program, const Workload& /*workload*/) {
  auto options = std::make_shared<MeasureArguments>();
  CLI::App& command = *program.add_subcommand(
      "measure", "Run scenarios on the GPUs of this machine: times, operations, timelines");
  gpu::add_measure_options(command, options->measure, options->run);
  command.footer(
      "Needs a build with a GPU backend: cmake -DTRITAX_GPU=amd (or nvidia). Every result is checked; a\n"
      "wrong one sets exit code 1. Rows are written as they are measured. 'tritax validate' compares them\n"
      "with the model.\n\n"
      "Examples:\n"
      "  tritax measure scenarios/iris-six-shapes.toml -o my-node.csv\n"
      "  tritax measure scenarios/measured/h200-4.toml --gpus 2,4 -o my-node.csv --ops my-node-ops.csv\n");
  return [options] { return run(*options); };
}

}  // namespace tritax::cli
