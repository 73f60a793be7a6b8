// Reading a schedule: one long workgroup costs what many short ones with as many operations do.
#include <benchmark/benchmark.h>

#include <chrono>

#include "model/schedule/builder.hpp"
#include "model/schedule/json.hpp"

namespace tritax {
namespace {

std::string text_of(std::size_t workgroups, std::size_t length) {
  ScheduleBuilder builder("long", 1);
  const auto kernel = builder.kernel({});
  for (std::size_t w = 0; w < workgroups; ++w) {
    builder.workgroup(kernel);
    for (std::size_t i = 0; i < length; ++i) builder.barrier();
  }
  return schedule_to_json(builder.finish());
}

double seconds_to_read(const std::string& text) {
  const auto start = std::chrono::steady_clock::now();
  benchmark::DoNotOptimize(schedule_from_json(text, "text"));
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// With nlohmann's callbacks, which look through an array after each of its objects, the ratio was 60.
void read_schedule_json(benchmark::State& state) {
  constexpr std::size_t kOps = 200000;
  const std::string one_long = text_of(1, kOps);
  const std::string many_short = text_of(kOps / 100, 100);
  double long_seconds = 0;
  double short_seconds = 0;
  for (auto _ : state) {
    long_seconds += seconds_to_read(one_long);
    short_seconds += seconds_to_read(many_short);
  }
  state.counters["long_per_short"] = long_seconds / short_seconds;
  state.counters["operations_per_second"] =
      2.0 * kOps * static_cast<double>(state.iterations()) / (long_seconds + short_seconds);
}
BENCHMARK(read_schedule_json)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tritax
