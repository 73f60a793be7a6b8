#include "backend_hip/report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "model/core/error.hpp"

namespace tritax::gpu {

namespace {

struct Owner {
  std::int32_t rank = 0;
  std::int64_t workgroup = 0;
  std::string kernel;
};

// Chrome trace: one process a rank, one thread a workgroup.
void write_stamps(const Schedule& schedule, const std::vector<StampedOp>& stamps, const std::string& path) {
  std::vector<Owner> owners(schedule.ops.size());
  std::vector<std::int64_t> workgroups_of_rank(static_cast<std::size_t>(schedule.ranks), 0);
  for (const Kernel& kernel : schedule.kernels) {
    for (const Workgroup& workgroup : kernel.workgroups) {
      const std::int64_t number = workgroups_of_rank[static_cast<std::size_t>(kernel.rank)]++;
      for (std::uint32_t i = 0; i < workgroup.op_count; ++i) {
        owners[workgroup.first_op + i] = {kernel.rank, number, kernel.name};
      }
    }
  }
  nlohmann::json events = nlohmann::json::array();
  for (const StampedOp& stamp : stamps) {
    const auto i = static_cast<std::size_t>(stamp.number);
    events.push_back({{"name", kOpKindNames[static_cast<std::size_t>(schedule.ops[i].kind)]},
                      {"cat", owners[i].kernel},
                      {"ph", "X"},
                      {"pid", owners[i].rank},
                      {"tid", owners[i].workgroup},
                      {"ts", stamp.begin_us},
                      {"dur", stamp.end_us - stamp.begin_us},
                      {"args", {{"operation", stamp.number}}}});
  }
  std::ofstream out(path);
  out << nlohmann::json{{"traceEvents", std::move(events)}, {"displayTimeUnit", "ns"}}.dump() << '\n';
  if (!out) throw UserError(fmt::format("{}: cannot be written", path));
}

void check_once(const Schedule& schedule, Executor& executor, const RunOptions& options,
                Measurement& measured) {
  executor.run();
  const CheckResult check = executor.check();
  measured.right = check.passed;
  measured.relative_error = *std::max_element(check.relative_error.begin(), check.relative_error.end());
  if (options.quiet) return;
  fmt::print("{}: relative error of the ranks {::.2e}, largest element error {:.3f} rms: {}\n", schedule.name,
             check.relative_error, check.largest_error, check.passed ? "right" : "WRONG");
}

void run_with_stamps(const Schedule& schedule, const RunOptions& options, Measurement& measured) {
  ExecutorOptions with_stamps = options.executor;
  with_stamps.stamps = true;
  Executor stamped(schedule, with_stamps);
  stamped.fill(options.seed);
  for (int i = 0; i < std::max(1, options.warmup); ++i) stamped.run();
  measured.stamped_device_us = stamped.run().longest_device_us();
  write_stamps(schedule, stamped.stamps(), options.stamps_file);
  if (options.quiet) return;
  fmt::print("stamps: {} (clocks of the GPUs aligned within {:.2f} us; device {:.2f} us with stamps)\n",
             options.stamps_file, stamped.clock_error_us(), measured.stamped_device_us);
}

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

Spread spread_of(std::vector<double> samples) {
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  const auto quantile = [&](double share) {
    const double place = share * static_cast<double>(samples.size() - 1);
    const auto below = static_cast<std::size_t>(std::floor(place));
    const std::size_t above = std::min(below + 1, samples.size() - 1);
    return samples[below] + (samples[above] - samples[below]) * (place - static_cast<double>(below));
  };
  return {quantile(0.5), quantile(0.1), quantile(0.9)};
}

Measurement measure(const Schedule& schedule, const RunOptions& options) {
  Measurement measured;
  Executor executor(schedule, options.executor);
  if (!options.quiet) {
    for (const std::string& note : executor.notes()) fmt::print("note: {}\n", note);
  }
  executor.fill(options.seed);
  if (options.check) check_once(schedule, executor, options, measured);
  for (int i = 0; i < options.warmup; ++i) executor.run();
  std::vector<double> wall;
  std::vector<double> device;
  std::vector<std::vector<double>> kernels(schedule.kernels.size());
  while (measured.runs < options.repeats && !enough(device)) {
    const RunTimes times = executor.run();
    ++measured.runs;
    wall.push_back(times.wall_us);
    device.push_back(times.longest_device_us());
    for (std::size_t k = 0; k < kernels.size(); ++k) kernels[k].push_back(times.kernel_us[k]);
  }
  measured.wall_us = spread_of(wall);
  measured.device_us = spread_of(device);
  for (const auto& samples : kernels) measured.kernel_us.push_back(spread_of(samples));
  if (!options.quiet) {
    fmt::print(
        "{}: wall median {:.2f} us (p10 {:.2f}, p90 {:.2f}); device median {:.2f} us (p10 {:.2f}, p90 "
        "{:.2f}); {} runs\n",
        schedule.name, measured.wall_us.median, measured.wall_us.p10, measured.wall_us.p90,
        measured.device_us.median, measured.device_us.p10, measured.device_us.p90, measured.runs);
  }
  if (!options.stamps_file.empty()) run_with_stamps(schedule, options, measured);
  return measured;
}

}  // namespace tritax::gpu
