// Writing a timeline for Perfetto: ten times as many intervals take ten times as long.
#include <benchmark/benchmark.h>

#include <chrono>

#include "model/machine/topology.hpp"
#include "model/schedule/builder.hpp"
#include "model/timeline/perfetto.hpp"

namespace tritax {
namespace {

constexpr int kComputeUnits = 300;

Timeline timeline_of(int intervals) {
  Timeline timeline;
  for (int i = 0; i < intervals; ++i) {
    const double begin = 100.0 * (i / kComputeUnits);
    timeline.ops.push_back({{0, 0, 0, 0, i % kComputeUnits},
                            OpKind::barrier,
                            static_cast<std::uint32_t>(i / kComputeUnits),
                            begin,
                            begin + 100});
  }
  return timeline;
}

void write_perfetto_json(benchmark::State& state) {
  constexpr int kFew = 20000;
  constexpr int kMany = 10 * kFew;
  ScheduleBuilder builder("bench", 1);
  builder.workgroup(builder.kernel({}));
  builder.barrier();
  const Schedule schedule = builder.finish();
  Machine machine;
  machine.gpus_per_node = 1;
  const Topology topology = build_topology(machine, 1);
  const auto seconds_to_write = [&](const Timeline& timeline) {
    const auto start = std::chrono::steady_clock::now();
    benchmark::DoNotOptimize(timeline_to_perfetto_json(timeline, schedule, topology));
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  const Timeline few = timeline_of(kFew);
  const Timeline many = timeline_of(kMany);
  double few_seconds = 0;
  double many_seconds = 0;
  for (auto _ : state) {
    few_seconds += seconds_to_write(few);
    many_seconds += seconds_to_write(many);
  }
  state.counters["many_per_few"] = many_seconds / few_seconds;
  state.counters["intervals_per_second"] = kMany * static_cast<double>(state.iterations()) / many_seconds;
}
BENCHMARK(write_perfetto_json)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tritax
