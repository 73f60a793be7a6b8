#include "backend_hip/microbench.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <thread>

#include "backend_hip/measure.hpp"
#include "backend_hip/measured_timeline.hpp"
#include "model/core/error.hpp"
#include "model/microbench/cases.hpp"
#include "model/microbench/read_microbench.hpp"
#include "model/timeline/op_times.hpp"

namespace tritax::gpu {

namespace {

// The power controller averages over milliseconds.
constexpr double kSustainedUs = 3e5;
// The clock of a short load is measured after a rest and in few runs, because the power limit averages over
// tens of milliseconds.
constexpr std::chrono::milliseconds kCoolDown{300};
constexpr int kShortWarmup = 2;
constexpr int kShortRuns = 8;

// Writes rows one by one.
class Rows {
 public:
  explicit Rows(const MicrobenchOptions& options) : path_(options.output) {
    if (std::filesystem::exists(options.output))
      throw UserError(fmt::format("{}: exists already", options.output));
    out_.open(options.output);
    out_ << "# " << measurement_place() << '\n'
         << "# commit " << options.commit << "; command: " << options.command << '\n'
         << "# time_us and its quantiles are what was measured; value is what follows from them\n"
         << kMicrobenchColumns << '\n';
    require_written();
  }

  void write(const MicrobenchRow& row, const Measurement& measured, double spread) {
    const Spread time = time_of(row, measured);
    // Host barriers have no kernel.
    double clock_ghz = 0;
    for (const Spread& clock : measured.clock_ghz) {
      if (clock_ghz == 0 || clock.median < clock_ghz) clock_ghz = clock.median;
    }
    const double value = row.value(time.median, clock_ghz, spread);
    out_ << fmt::format("{},{},{},{:.4g},{},{:.3f},{:.3f},{:.3f},{}\n", row.group, row.name,
                        row.parameter_text(), value, row.unit, time.median, time.p10, time.p90, measured.runs)
         << std::flush;
    require_written();
    fmt::print("{:10} {:24} {:60} {:10.4g} {}\n", row.group, row.name, row.parameter_text(), value, row.unit);
    std::fflush(stdout);
  }

 private:
  void require_written() const {
    if (!out_) throw UserError(fmt::format("{}: cannot be written", path_));
  }

  static Spread time_of(const MicrobenchRow& row, const Measurement& measured) {
    switch (row.metric) {
      case MicrobenchMetric::wall_time:
        return measured.wall_us;
      case MicrobenchMetric::host_time:
        return measured.host_us;
      case MicrobenchMetric::kernel_time:
        return measured.kernel_us[static_cast<std::size_t>(row.kernel)];
      case MicrobenchMetric::device_time:
      case MicrobenchMetric::clock:
      case MicrobenchMetric::matmul_spread:
      case MicrobenchMetric::copy_spread:
        break;
    }
    return measured.device_us;
  }

  std::string path_;
  std::ofstream out_;
};

Measurement run_one(const Microbench& bench, RunOptions run) {
  const Schedule schedule = bench.schedule();
  run.quiet = true;
  run.executor.flush_bytes = bench.flush_bytes;
  if (bench.sustained) {
    RunOptions once = run;
    once.repeats = 1;
    run.warmup = static_cast<int>(kSustainedUs / measure(schedule, once).device_us.median) + 1;
  } else if (bench.rows.front().metric == MicrobenchMetric::clock) {
    run.warmup = std::min(run.warmup, kShortWarmup);
    run.repeats = std::min(run.repeats, kShortRuns);
    std::this_thread::sleep_for(kCoolDown);
  } else if (bench.rows.back().metric == MicrobenchMetric::host_time) {
    // Like the host of a pattern: a host that has just launched and waited many times is faster.
    std::this_thread::sleep_for(kCoolDown);
  }
  return measure(schedule, run);
}

// Spread of the times of all matmuls, or of the rates of all copies, in one run with stamps.
double spread_of_operations(const Schedule& schedule, MicrobenchMetric metric, const RunOptions& run) {
  ExecutorOptions options = run.executor;
  options.stamps = true;
  Executor executor(schedule, options);
  executor.fill(run.seed);
  for (int i = 0; i <= run.warmup; ++i) executor.run();
  constexpr double kDeviations = 2 * 1.2816;  // from the 10 % to the 90 % quantile of a normal distribution
  const bool copies = metric == MicrobenchMetric::copy_spread;
  OpTimes most;
  for (const OpTimes& times : op_times(timeline_of(schedule, executor.stamps()), schedule)) {
    const bool wanted = times.group.kind == (copies ? OpKind::copy : OpKind::matmul);
    if (wanted && times.count > most.count) most = times;
  }
  TRITAX_ASSERT(most.count > 0, "a microbenchmark of spread has the operations that it measures");
  if (!copies) return (most.p90_us - most.p10_us) / kDeviations / most.median_us;
  const double of_logarithm = std::log(most.p90_us / most.p10_us) / kDeviations;
  return std::sqrt(std::expm1(of_logarithm * of_logarithm));
}

void check_names(const std::vector<std::string>& only) {
  for (const std::string& name : only) {
    if (std::find(kMicrobenchGroups.begin(), kMicrobenchGroups.end(), name) != kMicrobenchGroups.end())
      continue;
    const std::string nearest = nearest_name(name, kMicrobenchGroups);
    throw UserError(fmt::format("--only: unknown group '{}'{}; groups: {}", name,
                                nearest.empty() ? "" : ", did you mean '" + nearest + "'?",
                                fmt::join(kMicrobenchGroups, ", ")));
  }
}

}  // namespace

void run_microbenchmarks(const MicrobenchOptions& options, const RunOptions& run) {
  check_names(options.only);
  const std::vector<GpuInfo> gpus = list_gpus();
  if (gpus.empty()) throw UserError("no GPU: the runtime finds no device on this machine");
  if (gpus.size() < 2) fmt::print("one GPU: whatever needs two is left out\n");
  Rows rows(options);
  for (const Microbench& bench : microbenchmarks(static_cast<int>(gpus.size()), gpus.front().compute_units)) {
    const bool asked = options.only.empty() || std::find(options.only.begin(), options.only.end(),
                                                         bench.rows.front().group) != options.only.end();
    if (!asked) continue;
    const Measurement measured = run_one(bench, run);
    const MicrobenchMetric metric = bench.rows.front().metric;
    const bool stamped = metric == MicrobenchMetric::matmul_spread || metric == MicrobenchMetric::copy_spread;
    const double spread = stamped ? spread_of_operations(bench.schedule(), metric, run) : 0;
    for (const MicrobenchRow& row : bench.rows) rows.write(row, measured, spread);
  }
}

}  // namespace tritax::gpu
