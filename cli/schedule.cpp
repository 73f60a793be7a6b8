// tritax schedule: writes the tile schedule of a scenario or a pattern as JSON.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cli/record.hpp"
#include "cli/run_input.hpp"
#include "model/core/error.hpp"
#include "model/schedule/items.hpp"
#include "model/schedule/json.hpp"

namespace tritax::cli {

namespace {

struct ScheduleArguments {
  OutputOptions output;
  RunInputOptions run_input;
  bool pretty = false;
};

Table kernel_table(const Schedule& schedule) {
  Table table{{{"kernel", "kernel"},
               {"gpu", "GPU"},
               {"workgroups", "workgroups"},
               {"operations", "operations"},
               {"threads", "threads"},
               {"registers_per_thread", "registers/thread"},
               {"lds_bytes", "LDS", "B"},
               {"placement", "placement"}},
              {}};
  for (const Kernel& kernel : schedule.kernels) {
    std::int64_t operations = 0;
    for (std::size_t p = 0; p < program_count(kernel); ++p) {
      operations += program_of(kernel, p).op_count;
    }
    table.add({kernel.name, std::int64_t{kernel.rank}, static_cast<std::int64_t>(kernel.workgroups.size()),
               operations, std::int64_t{kernel.resources.threads},
               std::int64_t{kernel.resources.registers_per_thread}, std::int64_t{kernel.resources.lds_bytes},
               std::string(kPlacementNames[static_cast<std::size_t>(kernel.placement)])});
  }
  return table;
}

int run(ScheduleArguments options) {
  if (options.pretty && options.output.csv && !options.output.json) {
    throw UserError("--pretty: it indents JSON, and --csv writes none; leave it out, or give --json too");
  }
  if (!options.output.json && !options.output.csv) {
    options.output.json = "-";
  }
  Outputs outputs(options.output);
  const RunInput run_input = load_run_input(single_source(options.run_input));
  const Table table = kernel_table(run_input.schedule);
  outputs.print(run_input.title + "\n\n");
  outputs.print(table);
  outputs.csv(with_record(table, record_of(run_input)));
  if (options.output.json) {
    outputs.json_text(schedule_to_json(run_input.schedule, options.pretty) + '\n');
  }
  return 0;
}

}  // namespace

Run add_schedule(CLI::App& program, const Workload& workload) {
  auto options = std::make_shared<ScheduleArguments>();
  CLI::App& command =
      *program.add_subcommand("schedule", "Write the tile schedule of a scenario or pattern as JSON");
  add_run_input_options(command, workload, options->run_input);
  add_output_options(command, options->output);
  command
      .add_option_function<std::string>(
          "-o,--output",
          [options](const std::string& file) {
            options->output.json = file;
            options->output.json_flag = "--output";
          },
          "Same as --json; without either, the schedule goes to standard output")
      ->type_name("FILE")
      ->excludes("--json")
      ->group(kOutputGroup);
  command.add_flag("--pretty", options->pretty, "Indent the JSON")->group(kOutputGroup);
  command.footer(
      "docs/schedule-format.md describes the JSON; --csv lists the kernels. The schedule can be edited\n"
      "and run: 'tritax simulate SCHEDULE.json --machine NAME'.\n\n"
      "Examples:\n"
      "  tritax schedule --pattern fused-sequential -M 8192 -N 4608 -K 36864 --machine mi300x-8 -o s.json\n"
      "  tritax schedule scenarios/16384-cubed.toml --id fused-sequential --pretty\n");
  return [options] { return run(*options); };
}

}  // namespace tritax::cli
