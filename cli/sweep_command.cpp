#include "cli/sweep_command.hpp"

#include <fmt/format.h>
#include <tbb/info.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "cli/options.hpp"
#include "cli/output.hpp"
#include "cli/terminal.hpp"
#include "model/core/error.hpp"

namespace tritax::cli {

int SweepArguments::cores() const {
  return threads.value_or(0) > 0 ? *threads : tbb::info::default_concurrency();
}

void add_sweep_options(CLI::App& command, SweepArguments& arguments) {
  command.add_option("file", arguments.file, "Sweep file with the points (TOML)")->type_name("SWEEP.toml");
  command
      .add_option("-o,--output", arguments.database,
                  "Database of answers (default: the file's name with .db, in this folder)")
      ->type_name("FILE.db")
      ->group(kOutputGroup);
  command
      .add_option(
          "--shard", arguments.shard_text,
          "Answer only the I-th of N equal parts of the points, from 1; each machine writes its own database")
      ->type_name("I/N");
  add_threads_option(command, arguments.threads);
  command.add_flag("--retry", arguments.retry, "Ask refused points again");
}

void complete_sweep_arguments(SweepArguments& arguments) {
  if (arguments.file.empty()) throw UserError("SWEEP.toml: missing; give the file of points");
  if (arguments.database.empty())
    arguments.database = std::filesystem::path(arguments.file).stem().string() + ".db";
  if (arguments.database.ends_with(".toml")) {
    throw UserError(fmt::format("--output: '{}' is the name of an input; give one such as {}.db",
                                arguments.database, std::filesystem::path(arguments.file).stem().string()));
  }
  if (arguments.shard_text.empty()) return;
  constexpr std::int64_t kMostShards = 1'000'000;
  const std::size_t slash = arguments.shard_text.find('/');
  if (slash == std::string::npos) {
    throw UserError(
        fmt::format("--shard: '{}' is not a shard; give I/N, such as 3/16", arguments.shard_text));
  }
  const std::int64_t shards =
      parse_integer(arguments.shard_text.substr(slash + 1), "--shard: N", 1, kMostShards);
  arguments.shards = static_cast<std::size_t>(shards);
  arguments.shard = static_cast<std::size_t>(
                        parse_integer(arguments.shard_text.substr(0, slash), "--shard: I", 1, shards)) -
                    1;
}

SweepRunOptions sweep_options(const SweepArguments& arguments, const SweepPlan& plan) {
  SweepRunOptions options;
  options.shard = arguments.shard;
  options.shards = arguments.shards;
  options.retry = arguments.retry;
  options.one_at_a_time = searches(plan.question());
  return options;
}

std::string duration_text(double seconds) {
  constexpr double kMinute = 60;
  constexpr double kHour = 3600;
  if (seconds < kMinute) return fmt::format("{:.1f} s", seconds);
  if (seconds < kHour) return fmt::format("{:.1f} min", seconds / kMinute);
  return fmt::format("{:.1f} h", seconds / kHour);
}

void report_sweep(const SweepArguments& arguments, const SweepPlan& plan, const SweepTally& tally,
                  double seconds) {
  const std::size_t done = tally.answered + tally.refused;
  std::string text =
      fmt::format("sweep '{}': {} points answered in {}", plan.name, tally.answered, duration_text(seconds));
  if (done > 1 && seconds > 0)
    text += fmt::format(" ({:.4g} per second)", static_cast<double>(done) / seconds);
  if (tally.refused > 0) text += fmt::format(", {} refused", tally.refused);
  if (tally.left > 0) text += fmt::format(", {} left", tally.left);
  write_standard_output(fmt::format("{}\nnext: tritax export {}\n", text, arguments.database));
  if (tally.refused > 0) {
    tell(fmt::format(
        "tritax: {} of the points cannot be answered, and are stored with the reason; one is: {}\n",
        tally.refused, tally.first_refusal));
  }
  if (tally.left > 0) {
    tell(fmt::format("tritax: interrupted; {} points are left: give the same command again\n", tally.left));
  }
}

}  // namespace tritax::cli
