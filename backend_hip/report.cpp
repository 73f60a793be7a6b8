#include "backend_hip/report.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <thread>
#include <utility>

#include "backend_hip/measured_timeline.hpp"
#include "model/core/error.hpp"
#include "model/core/quantile.hpp"
#include "model/timeline/perfetto.hpp"

namespace tritax::gpu {

namespace {

std::string driver_version() {
  for (const char* path : {"/sys/module/nvidia/version", "/sys/module/amdgpu/version"}) {
    std::ifstream file(path);
    std::string version;
    if (file >> version) return version;
  }
  return "unknown";
}

// Every run has fresh data, so that results of an earlier run are not mistaken for correct ones. Stops at the
// first wrong run.
void check_runs(const Schedule& schedule, Executor& executor, const RunOptions& options,
                Measurement& measured) {
  CheckResult check;
  for (int i = 0; i < options.checks && measured.right; ++i) {
    executor.fill(seed_of_check(options.seed, i));
    executor.run();
    check = executor.check();
    measured.right = check.passed;
    measured.relative_error = worst_of({measured.relative_error, worst_of(check.relative_error)});
    ++measured.checks;
  }
  if (options.quiet) return;
  fmt::print("{}: relative error of the ranks {::.2e}, largest element error {:.3f} rms: {}{}\n",
             schedule.name, check.relative_error, check.largest_error, check.passed ? "right" : "WRONG",
             options.checks > 1 ? fmt::format(", the last of {} checked runs", measured.checks) : "");
}

void run_with_stamps(const Schedule& schedule, const RunOptions& options, Measurement& measured) {
  constexpr std::size_t kRuns = 5;
  ExecutorOptions with_stamps = options.executor;
  with_stamps.stamps = true;
  Executor stamped(schedule, with_stamps);
  stamped.fill(options.seed);
  for (int i = 0; i < options.warmup; ++i) stamped.run();
  std::vector<std::pair<double, std::vector<StampedOp>>> runs;
  for (std::size_t i = 0; i < kRuns; ++i) {
    const double device_us = stamped.run().longest_device_us();
    runs.emplace_back(device_us, stamped.stamps());
  }
  std::sort(runs.begin(), runs.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  const auto& [device_us, stamps] = runs[kRuns / 2];
  measured.stamped = {timeline_of(schedule, stamps), device_us, stamped.clock_error_us()};
  if (options.quiet) return;
  fmt::print(
      "with stamps: device {:.2f} us, median of {} runs (clocks of the GPUs aligned within {:.2f} us)\n",
      device_us, kRuns, measured.stamped->clock_error_us);
}

// Rest after a check, whose fp64 products load the GPU: the power limit averages over some 50 ms.
constexpr std::chrono::milliseconds kRest{100};

// Whether the median is known well enough; see measure().
bool enough(const std::vector<double>& samples) {
  constexpr std::size_t kFewest = 10;
  constexpr double kRelativeError = 0.005;
  if (samples.size() < kFewest) return false;
  const auto count = static_cast<double>(samples.size());
  double sum = 0;
  for (const double sample : samples) sum += sample;
  const double mean = sum / count;
  double squares = 0;
  for (const double sample : samples) squares += (sample - mean) * (sample - mean);
  return 1.25 * std::sqrt(squares / (count - 1) / count) <= kRelativeError * mean;
}

}  // namespace

Spread spread_of(const std::vector<double>& samples) {
  return {quantile(samples, 0.5), quantile(samples, 0.1), quantile(samples, 0.9)};
}

Measurement measure(const Schedule& schedule, const RunOptions& options) {
  Measurement measured;
  Executor executor(schedule, options.executor);
  if (!options.quiet) {
    for (const std::string& note : executor.notes()) fmt::print("note: {}\n", note);
  }
  if (options.check) {
    check_runs(schedule, executor, options, measured);
    std::this_thread::sleep_for(kRest);
  } else {
    executor.fill(options.seed);
  }
  for (int i = 0; i < options.warmup; ++i) executor.run();
  std::vector<double> wall;
  std::vector<double> device;
  std::vector<double> host;
  std::vector<std::vector<double>> kernels(schedule.kernels.size());
  std::vector<std::vector<double>> clocks(schedule.kernels.size());
  while (measured.runs < options.repeats && !enough(device)) {
    const RunTimes times = executor.run();
    ++measured.runs;
    wall.push_back(times.wall_us);
    device.push_back(times.longest_device_us());
    host.push_back(times.wall_us - times.longest_device_us());
    for (std::size_t k = 0; k < kernels.size(); ++k) {
      kernels[k].push_back(times.kernel_us[k]);
      clocks[k].push_back(times.clock_ghz[k]);
    }
  }
  measured.wall_us = spread_of(wall);
  measured.device_us = spread_of(device);
  measured.host_us = spread_of(host);
  for (const auto& samples : kernels) measured.kernel_us.push_back(spread_of(samples));
  for (const auto& samples : clocks) measured.clock_ghz.push_back(spread_of(samples));
  if (!options.quiet) {
    fmt::print(
        "{}: wall median {:.2f} us (p10 {:.2f}, p90 {:.2f}); device median {:.2f} us (p10 {:.2f}, p90 "
        "{:.2f}); clock {:.3f} GHz; {} runs\n",
        schedule.name, measured.wall_us.median, measured.wall_us.p10, measured.wall_us.p90,
        measured.device_us.median, measured.device_us.p10, measured.device_us.p90,
        measured.clock_ghz.empty() ? 0.0 : measured.clock_ghz[0].median, measured.runs);
  }
  if (options.stamps) run_with_stamps(schedule, options, measured);
  return measured;
}

std::string measurement_place() {
  const std::vector<GpuInfo> gpus = list_gpus();
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  return fmt::format("{:%Y-%m-%d}, {} x {}, driver {}, {}", fmt::gmtime(now),
                     gpus.empty() ? "no GPU" : gpus[0].name, gpus.size(), driver_version(),
                     runtime_versions());
}

void write_timeline(const Schedule& schedule, const StampedRun& run, const std::string& path) {
  const std::string remark =
      fmt::format("{}; clocks of the GPUs aligned within {:.2f} us", measurement_place(), run.clock_error_us);
  const std::string temporary = fmt::format("{}.{}.tmp", path, getpid());
  std::ofstream out(temporary);
  out << measured_timeline_to_perfetto_json(run.timeline, schedule, remark);
  out.close();
  if (!out || std::rename(temporary.c_str(), path.c_str()) != 0) {
    std::remove(temporary.c_str());
    throw UserError(fmt::format("{}: cannot be written", path));
  }
}

}  // namespace tritax::gpu
