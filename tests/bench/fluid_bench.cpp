// Speed of the fluid network alone, on the job of mesh_job.hpp. Goal: 20 ms (SimGrid needs about 100,
// ASTRA-sim about 280).
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <limits>
#include <vector>

#include "sim/event_queue.hpp"
#include "sim/fluid.hpp"
#include "tests/bench/bare_queue.hpp"
#include "tests/bench/mesh_job.hpp"

namespace tritax {
namespace {

using namespace mesh_job;

struct MeshRun {
  double makespan_ns = 0;
  std::uint64_t transfers = 0;
  std::uint64_t events = 0;
};

MeshRun run_mesh() {
  FluidNetwork fluid;
  EventQueue<std::int32_t> arrivals;  // first byte of the next tile of a class reaches its link
  std::vector<int> left;
  for (int pair = 0; pair < kGpus * (kGpus - 1); ++pair) {
    const FluidNetwork::Use link{fluid.add_resource(kLinkGbPerS), 1.0};
    const std::int32_t flow = fluid.add_class({&link, 1}, std::numeric_limits<double>::infinity());
    arrivals.push(kLatencyNs, flow);
    left.push_back(kTiles - 1);
  }
  MeshRun run;
  for (;;) {
    const double now = std::min(arrivals.next_time_ns(), fluid.next_completion_ns());
    if (!std::isfinite(now)) break;
    run.makespan_ns = now;
    while (fluid.next_completion_ns() <= now) {
      const std::int32_t flow = fluid.complete(now).class_id;
      ++run.transfers;
      ++run.events;
      if (left[static_cast<std::size_t>(flow)]-- > 0) arrivals.push(now + kLatencyNs, flow);
    }
    while (arrivals.next_time_ns() <= now) {
      fluid.start(arrivals.pop().payload, kTileBytes, 1.0, 0, now);
      ++run.events;
    }
    fluid.settle(now);
  }
  return run;
}

void mesh_57344_transfers(benchmark::State& state) {
  MeshRun run;
  double seconds = 0;
  for (auto _ : state) {
    const std::clock_t start = std::clock();
    run = run_mesh();
    seconds += static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  }
  if (run.transfers != kGpus * (kGpus - 1) * kTiles ||
      std::abs(run.makespan_ns - kMakespanNs) > 1e-6 * kMakespanNs) {
    state.SkipWithError("the makespan is not 1854.177 us");
    return;
  }
  const double each = seconds / static_cast<double>(state.iterations());
  state.counters["makespan_us"] = run.makespan_ns / 1e3;
  state.counters["transfers_per_second"] = static_cast<double>(run.transfers) / each;
  state.counters["times_bare_queue"] = each / bare_queue_seconds(run.events, kGpus * (kGpus - 1));
}
BENCHMARK(mesh_57344_transfers)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tritax
