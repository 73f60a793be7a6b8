// tritax trace: the timeline of a run, as a file for Perfetto.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cli/record.hpp"
#include "cli/report.hpp"
#include "cli/run_input.hpp"
#include "model/core/with_place.hpp"
#include "model/machine/topology.hpp"
#include "model/timeline/perfetto.hpp"
#include "sim/timeline.hpp"

namespace tritax::cli {

namespace {

struct TraceArguments {
  OutputOptions output;
  RunInputOptions run_input;
  std::optional<std::int64_t> seed;
  std::string measured;
};

Table kernel_table(const Timeline& timeline, const Schedule& schedule) {
  Table table{{{"kernel", "kernel"},
               {"gpu", "GPU"},
               {"stream", "stream"},
               {"begin_us", "begin", "us"},
               {"end_us", "end", "us"},
               {"time_us", "time", "us"}},
              {}};
  for (const KernelInterval& interval : timeline.kernels) {
    const Kernel& kernel = schedule.kernels[interval.kernel];
    table.add({kernel.name, std::int64_t{kernel.rank}, std::int64_t{interval.stream}, us(interval.begin_ns),
               us(interval.end_ns), us(interval.end_ns - interval.begin_ns)});
  }
  return table;
}

int run(const TraceArguments& options) {
  std::optional<MeasuredTrace> measured;
  if (!options.measured.empty()) measured = read_measured_trace(options.measured);
  Outputs outputs(options.output);
  const RunInput run_input = load_run_input(single_source(options.run_input));
  TimelineRecorder recorder(run_input.schedule);
  SimulationOptions simulation;
  simulation.seed = static_cast<std::uint64_t>(options.seed.value_or(1));
  simulation.link_counters = true;
  simulation.observer = &recorder;
  const SimulationResult result = with_place(
      run_input.place, [&] { return simulate(run_input.schedule, run_input.machine, simulation); });
  const Timeline timeline = recorder.take();
  const Counters counters = recorder.take_counters();
  const Table table = kernel_table(timeline, run_input.schedule);
  outputs.print(run_input.title + "\n\n");
  outputs.print(table);
  const Record record = record_of(run_input, simulation.seed);
  outputs.csv(with_record(table, record));
  const std::string all = json_of(record).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  const std::string about = all.substr(1, all.size() - 2);
  const Topology topology = build_topology(run_input.machine, run_input.schedule.ranks);
  outputs.json_text(
      measured
          ? side_by_side_perfetto_json(timeline, run_input.schedule, topology, *measured, about, counters)
          : timeline_to_perfetto_json(timeline, run_input.schedule, topology, about, counters));
  outputs.print(fmt::format("\n{:.1f} us; open {} in https://ui.perfetto.dev\n", us(result.makespan_ns),
                            options.output.json.value_or("")));
  return 0;
}

}  // namespace

Run add_trace(CLI::App& program, const Workload& workload) {
  auto options = std::make_shared<TraceArguments>();
  CLI::App& command = *program.add_subcommand("trace", "Write the timeline of a run for Perfetto");
  add_run_input_options(command, workload, options->run_input);
  add_sustained_option(command, options->run_input.sustained);
  add_seed_option(command, options->seed);
  add_output_options(command, options->output);
  command.remove_option(command.get_option("--json"));
  options->output.json_flag = "--output";
  command
      .add_option_function<std::string>(
          "-o,--output,--json", [options](const std::string& file) { options->output.json = file; },
          "File for the trace; '-': standard output")
      ->type_name("FILE")
      ->required()
      ->group(kOutputGroup);
  command
      .add_option(
          "--measured", options->measured,
          "Show the timeline of 'tritax measure --timeline' beside the simulated one, aligned at the first "
          "kernels")
      ->type_name("FILE.json");
  command.footer(
      "The trace has one process per GPU, with a track per stream and compute unit. Counters show the\n"
      "clock of the matrix cores, reads from L2, last-level cache and memory, and the links. --csv lists\n"
      "the kernels.\n\n"
      "Examples:\n"
      "  tritax trace --pattern bulk-synchronous -M 8192 -N 4608 -K 36864 --machine mi300x-8 -o t.json\n"
      "  tritax trace my-schedule.json --machine mi300x-8 -o t.json\n"
      "  tritax trace my-scenarios.toml --id one/fused-sequential --measured measured.json -o both.json\n");
  return [options] { return run(*options); };
}

}  // namespace tritax::cli
