// tritax sweep: every point of a file, answered on all cores and kept in a database.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "cli/commands.hpp"
#include "cli/interrupt.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "cli/sweep_command.hpp"
#include "cli/sweep_point.hpp"
#include "cli/terminal.hpp"
#include "cli/version.hpp"
#include "model/core/error.hpp"
#include "sim/study/sweep/run_sweep.hpp"

namespace tritax::cli {

namespace {

using SweepClock = std::chrono::steady_clock;

double seconds_since(SweepClock::time_point begin) {
  return std::chrono::duration<double>(SweepClock::now() - begin).count();
}

std::string count_of(std::size_t count, const std::string& what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

// Measures for a few seconds, on points spread over the missing points.
std::optional<double> measured_seconds_a_point(const SweepPlan& plan, const SweepWork& work,
                                               PointAnswerer& answerer, const InterruptibleWork& interrupt) {
  constexpr std::size_t kTrials = 64;
  constexpr double kLongEnough = 5;
  const std::size_t trials = std::min(kTrials, work.missing.size());
  const auto begin = SweepClock::now();
  std::size_t done = 0;
  // In bisection order, so that every prefix is spread.
  for (std::size_t i = 0; i < trials && seconds_since(begin) < kLongEnough && !interrupt.interrupted(); ++i) {
    double place = 0;
    double part = 0.5;
    for (std::size_t bits = i + 1; bits > 0; bits /= 2, part /= 2) place += (bits % 2 == 1 ? part : 0);
    const auto index = static_cast<std::size_t>(place * static_cast<double>(work.missing.size()));
    answerer.answer(plan.point(work.missing[index].number));
    ++done;
  }
  if (done == 0 || interrupt.interrupted()) return std::nullopt;
  return seconds_since(begin) / static_cast<double>(done);
}

int print_dry_run(const SweepArguments& arguments, const SweepPlan& plan, const SweepWork& work,
                  PointAnswerer& answerer, const InterruptibleWork& interrupt) {
  std::string text = fmt::format("sweep '{}': {}", plan.name, count_of(work.total, "point"));
  if (arguments.shards > 1)
    text +=
        fmt::format(", {} of them in shard {}/{}", work.asked.size(), arguments.shard + 1, arguments.shards);
  text += fmt::format("; {} to be answered\n", work.missing.size());
  const std::optional<double> each = measured_seconds_a_point(plan, work, answerer, interrupt);
  if (interrupt.interrupted()) return interrupted_exit_code();
  if (each) {
    const int cores = searches(plan.question()) ? 1 : arguments.cores();
    const double all = *each * static_cast<double>(work.missing.size()) / cores;
    text += fmt::format("about {} ({:.3g} ms a point on one {}, of trials)\n", duration_text(all),
                        *each * 1e3, searches(plan.question()) ? "machine" : "core");
  }
  write_standard_output(text);
  return 0;
}

int run_points(const SweepArguments& arguments, const SweepPlan& plan, SweepKeys& keys,
               SweepRunOptions options, PointAnswerer& answerer, const InterruptibleWork& interrupt) {
  SweepStore store(arguments.database, SweepAccess::write);
  const auto begin = SweepClock::now();
  SweepTally tally;
  {
    Progress progress(fmt::format("sweep '{}'", plan.name));
    options.progress = [&](std::size_t done, std::size_t all) { progress.update(done, all); };
    tally = run_sweep(
        plan, store, keys, [&](const nlohmann::json& point) { return answerer.answer(point); }, options);
  }
  store.close();
  report_sweep(arguments, plan, tally, seconds_since(begin));
  return interrupt.interrupted() ? interrupted_exit_code() : 0;
}

int run_sweep_command(SweepArguments& arguments) {
  complete_sweep_arguments(arguments);
  const SweepPlan plan = read_sweep(arguments.file);
  const auto limit = limit_threads(arguments.threads);
  const InterruptibleWork interrupt;
  PointAnswerer answerer(interrupt.flag());
  SweepKeys keys{std::string(version())};
  SweepRunOptions options = sweep_options(arguments, plan);
  options.stop = &interrupt.flag();
  if (!arguments.dry_run) return run_points(arguments, plan, keys, options, answerer, interrupt);
  std::unique_ptr<SweepStore> store;
  std::error_code ignored;
  if (std::filesystem::exists(arguments.database, ignored))
    store = std::make_unique<SweepStore>(arguments.database, SweepAccess::read);
  const SweepWork work = work_of_sweep(plan, store.get(), keys, options);
  return print_dry_run(arguments, plan, work, answerer, interrupt);
}

}  // namespace

Run add_sweep(CLI::App& program, const Workload& /*workload*/) {
  auto options = std::make_shared<SweepArguments>();
  CLI::App& command = *program.add_subcommand(
      "sweep", "Answer every point of a sweep file, and store the answers in a database");
  add_sweep_options(command, *options);
  command.add_flag("--dry-run", options->dry_run,
                   "Count the points, time a few of them for five seconds, and store nothing");
  command.footer(
      "Stored points are not asked again: the same command continues an interrupted sweep. Answers depend\n"
      "on the points, the machine files and the version of Tritax. File format: docs/sweep.md.\n\n"
      "Examples:\n"
      "  tritax sweep links.toml\n"
      "  tritax sweep links.toml --dry-run\n"
      "  tritax sweep links.toml --shard 3/16 -o links-3.db\n");
  return [options] { return run_sweep_command(*options); };
}

}  // namespace tritax::cli
