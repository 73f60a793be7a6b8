#include "backend_hip/options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>

namespace tritax::gpu {

namespace {

// CLI::NonNegativeNumber prints 1.8e308 with 309 digits as the upper limit, and a negative seed would wrap.
CLI::Validator zero_or_more() {
  return {[](const std::string& text) -> std::string {
            double number = -1;
            const bool is_number = CLI::detail::lexical_cast(text, number);
            return is_number && std::isfinite(number) && number >= 0
                       ? ""
                       : "'" + text + "' is not allowed; give a number from 0 on";
          },
          ""};
}

// Rows are written one by one, between progress messages.
CLI::Validator no_standard_output() {
  return {[](const std::string& text) -> std::string {
            if (text == "-") return "standard output shows the progress; give the name of a new file";
            return text.ends_with(".gz") ? "rows are written as they come, uncompressed; give another name"
                                         : "";
          },
          ""};
}

void add_repeats(CLI::App& command, RunOptions& run, const char* help) {
  command.add_option("--repeat", run.repeats, help)->check(CLI::Range(1, 100000))->capture_default_str();
  command.add_option("--warmup", run.warmup, "Runs before them")
      ->check(CLI::Range(0, 100000))
      ->capture_default_str();
  command.add_option("--seed", run.seed, "Of the random data")->check(zero_or_more())->capture_default_str();
}

void add_flush(CLI::App& command, RunOptions& run) {
  command
      .add_option("--flush", run.executor.flush_bytes, "Bytes written on every GPU before each run; 0: none")
      ->check(zero_or_more());
}

CLI::Option* add_checks(CLI::App& command, RunOptions& run) {
  return command
      .add_option("--checks", run.checks, "Runs that are compared with the reference, each on fresh data")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
}

void add_selection(CLI::App& command, MeasureOptions& options) {
  command.add_option("SCENARIO", options.selection.files, "Scenario files (docs/scenarios.md)")->required();
  command
      .add_option("--id", options.selection.ids,
                  "Only scenarios with this id, or one that begins with it and '/'; may be repeated")
      ->allow_extra_args(false)
      ->type_name("ID");
  command.add_option("-o,--output", options.output, "Where the times go; the file must not exist")
      ->type_name("FILE.csv")
      ->check(no_standard_output())
      ->required();
}

void add_machine_and_commit(CLI::App& command, MeasureOptions& options) {
  command
      .add_option("--machine", options.selection.machine, "Machine whose compute units shape the schedules")
      ->type_name("NAME|FILE");
  command.add_option("--commit", options.commit, "Source revision, for the heads of the files");
}

}  // namespace

void add_run_options(CLI::App& command, RunOptions& run) {
  add_repeats(command, run, "Measured runs, at most; fewer when the median is known to 0.5 %");
  command.add_option("--spin-limit", run.executor.spin_limit_s, "Seconds that a wait may last")
      ->check(CLI::Range(1e-3, 600.0))
      ->capture_default_str();
  command
      .add_option("--pace", run.executor.pace_gb_per_s,
                  "GB/s that the matmul workgroups of a GPU together send to peers; 0: no limit")
      ->check(zero_or_more())
      ->capture_default_str();
  add_flush(command, run);
}

void add_check_options(CLI::App& command, RunOptions& run) {
  CLI::Option* const check =
      command.add_flag("--check", run.check, "Compare with an fp64 reference on fresh random data");
  add_checks(command, run)->needs(check);
  command
      .add_flag("--share-gpus", run.executor.share_gpus,
                "Ranks share the GPUs that there are: the result is checked, the times mean nothing")
      ->needs(check);
}

void add_library_options(CLI::App& command, MeasureOptions& options, RunOptions& run) {
  add_selection(command, options);
  add_machine_and_commit(command, options);
  add_repeats(command, run, "Measured runs");
  add_flush(command, run);
}

void add_measure_options(CLI::App& command, MeasureOptions& options, RunOptions& run) {
  add_selection(command, options);
  command.add_option("--ops", options.ops, "Also times by kind of operation, for 'tritax validate --ops'")
      ->type_name("FILE.csv")
      ->check(no_standard_output());
  command
      .add_option("--timeline", options.timelines,
                  "Also a timeline of every scenario, for Perfetto and 'tritax trace --measured'")
      ->type_name("FOLDER");
  command.add_option("--gpus", options.selection.gpus, "Numbers of GPUs, instead of the scenarios'")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(1, 1024));
  add_machine_and_commit(command, options);
  add_run_options(command, run);
  add_checks(command, run);
}

std::string command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string words{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  while (!words.empty() && words.back() == '\0') words.pop_back();
  std::replace(words.begin(), words.end(), '\0', ' ');
  std::replace(words.begin(), words.end(), '\n', ' ');
  return words;
}

}  // namespace tritax::gpu
