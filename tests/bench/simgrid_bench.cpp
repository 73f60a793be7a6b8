// The job of mesh_job.hpp in SimGrid 3.32 (Debian's libsimgrid-dev; model CM02), as a yardstick of the
// machine: the goals of this folder were set where it takes 101 ms. A program of its own, for SimGrid runs
// once a process.
#include <benchmark/benchmark.h>

#include <cmath>
#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

#include "tests/bench/mesh_job.hpp"

namespace {

namespace s4u = simgrid::s4u;

using namespace tritax::mesh_job;

constexpr double kLatencySeconds = kLatencyNs * 1e-9;
constexpr double kLinkBytesPerSecond = kLinkGbPerS * 1e9;

void add_transfers() {
  s4u::NetZone* const node = s4u::create_full_zone("node");
  std::vector<s4u::Host*> gpus;
  for (int gpu = 0; gpu < kGpus; ++gpu) {
    gpus.push_back(node->create_host("gpu" + std::to_string(gpu), 1e9)->seal());
  }
  for (s4u::Host* const from : gpus) {
    for (s4u::Host* const to : gpus) {
      if (from == to) continue;
      s4u::Link* const link = node->create_link(from->get_name() + "-" + to->get_name(), kLinkBytesPerSecond);
      link->set_latency(kLatencySeconds)->seal();
      node->add_route(from->get_netpoint(), to->get_netpoint(), nullptr, nullptr, {s4u::LinkInRoute(link)},
                      false);
      s4u::Actor::create("sender", from, [from, to] {
        for (int tile = 0; tile < kTiles; ++tile) s4u::Comm::sendto(from, to, kTileBytes);
      });
    }
  }
  node->seal();
}

void simgrid_mesh_57344_transfers(benchmark::State& state) {
  constexpr double kExactSeconds = kMakespanNs * 1e-9;
  for (auto _ : state) {
    state.PauseTiming();
    add_transfers();
    state.ResumeTiming();
    s4u::Engine::get_instance()->run();
  }
  const double makespan = s4u::Engine::get_clock();
  if (std::abs(makespan - kExactSeconds) > 1e-6 * kExactSeconds) {
    state.SkipWithError("the makespan is not 1854.177 us");
  }
  state.counters["makespan_us"] = makespan * 1e6;
}
BENCHMARK(simgrid_mesh_57344_transfers)->Unit(benchmark::kMillisecond)->Iterations(1);

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  std::vector<std::string> settings{argv[0], "--cfg=network/model:CM02", "--cfg=network/TCP-gamma:0",
                                    "--cfg=network/crosstraffic:0", "--log=root.thres:error"};
  std::vector<char*> arguments;
  for (std::string& setting : settings) arguments.push_back(setting.data());
  int count = static_cast<int>(arguments.size());
  const s4u::Engine engine(&count, arguments.data());
  benchmark::RunSpecifiedBenchmarks();
}
