// Tile operations per second of the simulator: 16384³ fp16 on 8 MI300X in tiles of 128x128, as in ROCm/iris
// PR 215. Goal: 3 million per second on one thread, tracing off, where simgrid_bench.cpp takes 101 ms.
#include <benchmark/benchmark.h>

#include <ctime>
#include <string>

#include "sim/simulate.hpp"
#include "tests/bench/bare_queue.hpp"
#include "tests/workloads/gemm_all_scatter.hpp"

namespace tritax {
namespace {

void simulate_16384(benchmark::State& state, const Pattern& pattern) {
  const Machine machine = find_machine("mi300x-8");
  const GemmAllScatter workload{16384, 16384, 16384, DType::fp16, 8};
  GemmKnobs knobs;  // as in ROCm/iris, so that speeds of builds can be compared
  knobs.tile_m = 128;
  knobs.tile_n = 128;
  const Schedule schedule = build(pattern, workload, machine, knobs);
  std::uint64_t operations = 0;
  std::uint64_t events = 0;
  double seconds = 0;
  for (auto _ : state) {
    const std::clock_t start = std::clock();
    const SimulationResult result = simulate(schedule, machine);
    seconds += static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    operations += result.tile_operations;
    events += result.events;
  }
  const auto pending =
      static_cast<std::uint64_t>(machine.gpu.cu_count()) * static_cast<std::uint64_t>(workload.gpus);
  state.counters["tile_operations_per_second"] = static_cast<double>(operations) / seconds;
  state.counters["events_per_second"] = static_cast<double>(events) / seconds;
  state.counters["times_bare_queue"] = seconds / bare_queue_seconds(events, pending);
}

[[maybe_unused]] const bool registered = [] {
  for (const Pattern& pattern : gemm_all_scatter().patterns) {
    const std::string name = "simulate_16384_cubed_8_gpus/" + std::string(pattern.name);
    benchmark::RegisterBenchmark(name.c_str(), [&pattern](benchmark::State& state) {
      simulate_16384(state, pattern);
    })->Unit(benchmark::kMillisecond);
  }
  return true;
}();

}  // namespace
}  // namespace tritax
