// Every GPU of a mesh sends T tiles of 64 KiB to every peer, at most W at a time to each; a tile has left
// when its last byte has and the link's latency has passed. SimGrid 3.32 (model CM02) gives the same
// makespans.
#include <gtest/gtest.h>

#include <utility>

#include "hand_machine.hpp"
#include "sim/simulate.hpp"

namespace tritax {
namespace {

constexpr int kGpus = 8;
constexpr int kTiles = 1024;
constexpr double kLatencyNs = 500;

Machine mesh() {
  Machine machine = hand::machine(kGpus);
  machine.gpu.cus_per_xcd = 32;  // 512 workgroups without LDS
  machine.fabric.link_raw_gb_per_s = 50;
  machine.fabric.store_latency_ns = kLatencyNs;
  return machine;
}

// One workgroup for each of the W tiles in flight: store, release, next.
Schedule all_to_all(int in_flight) {
  ScheduleBuilder builder("mesh", kGpus);
  const auto data = builder.buffer({"data", DType::fp16, 256, 128, 256, 128});  // 65,536 bytes
  const auto arrived = builder.flags("arrived", kGpus);
  for (int rank = 0; rank < kGpus; ++rank) {
    Kernel kernel;
    kernel.name = "send";
    kernel.rank = rank;
    kernel.resources.registers_per_thread = 64;
    const auto id = builder.kernel(kernel);
    for (int peer = 0; peer < kGpus; ++peer) {
      if (peer == rank) continue;
      for (int w = 0; w < in_flight; ++w) {
        builder.workgroup(id);
        for (int t = w; t < kTiles; t += in_flight) {
          builder.store(data, {0, 0, 256, 128}, peer);
          builder.signal(arrived, rank, 1, peer, Scope::system, LockProtocol::load_store);
        }
      }
    }
    builder.launch(rank, id);
    builder.host(rank, HostOpKind::device_synchronize);
  }
  return builder.finish();
}

TEST(Mesh, EveryTileInFlightHidesTheLatencyOfTheOthers) {
  for (const auto& [in_flight, simgrid_us] : {std::pair{1, 1854.177}, {4, 1470.177}, {64, 1350.177}}) {
    const SimulationResult result = simulate(all_to_all(in_flight), mesh());
    EXPECT_NEAR(result.makespan_ns, kTiles * 65536.0 / 50 + kTiles / in_flight * kLatencyNs, 1e-3)
        << in_flight;
    EXPECT_NEAR(result.makespan_ns, 1000 * simgrid_us, 0.5) << in_flight;
    for (const double bytes : result.link_bytes) EXPECT_EQ(bytes, kTiles * 65536.0);
  }
}

TEST(Mesh, OnePortForAllLinksOfAGpuIsSharedByItsPeers) {
  Machine machine = mesh();
  machine.fabric.store_egress_gb_per_s = machine.fabric.store_ingress_gb_per_s = 50;
  const SimulationResult result = simulate(all_to_all(16), machine);
  EXPECT_NEAR(result.makespan_ns, 7 * kTiles * 65536.0 / 50 + kTiles / 16 * kLatencyNs, 1e-3);
  EXPECT_NEAR(result.makespan_ns, 9427241, 0.5);
}

}  // namespace
}  // namespace tritax
