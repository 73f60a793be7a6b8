#include <gtest/gtest.h>

#include "model/cost/kernel_rates.hpp"
#include "model/workloads/all_gather/workload.hpp"
#include "tests/workloads/bytes_by_peer.hpp"

namespace tritax {
namespace {

TEST(AllGatherSchedule, LoadsATileOnceAndStoresItToEveryRank) {
  AllGather workload;
  workload.rows = 100;  // ragged on purpose
  workload.cols = 70;
  workload.gpus = 4;
  GemmKnobs knobs;
  knobs.comm_tile_m = 32;
  knobs.comm_tile_n = 32;
  knobs.comm_cus = 5;
  const Schedule schedule = all_gather_schedule(workload, knobs);
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(schedule.kernels.at(static_cast<std::size_t>(rank)).workgroups.size(), 5u);
    auto moved = bytes_by_peer(schedule, rank);
    const double shard = 100 * 70 * 2;
    for (int peer = 0; peer < 4; ++peer) {
      EXPECT_EQ(moved[peer], peer == rank ? 2 * shard : shard);  // own: one load, one store
    }
  }
}

TEST(AllGatherSchedule, LimitsAWorkgroupThatPostsLittleByTheTimeOfItsIterations) {
  Machine machine = find_machine("mi355x-8");
  machine.gpu.cu_remote_store_gb_per_s = 12;
  machine.gpu.post_ns = 1000;
  machine.gpu.post_peer_ns = 200;
  AllGather workload;
  workload.rows = workload.cols = 128;
  workload.gpus = 8;
  GemmKnobs knobs;
  knobs.comm_cus = 1;
  const auto limit = [&](std::int64_t posted, int gpus) {
    workload.posted_bytes_per_peer = posted;
    workload.gpus = gpus;
    const Schedule schedule = all_gather_schedule(workload, knobs);
    return kernel_rates(machine, schedule.kernels.at(0)).remote_store_gb_per_s;
  };
  EXPECT_DOUBLE_EQ(limit(2048, 8), 7 * 2048 / 2400.0);
  EXPECT_DOUBLE_EQ(limit(1024, 8), 7 * 1024 / 2400.0);
  EXPECT_DOUBLE_EQ(limit(1024, 4), 3 * 1024 / 1600.0);
  EXPECT_DOUBLE_EQ(limit(600, 2), 0.5);  // one peer
  EXPECT_EQ(limit(0, 8), 0);
  EXPECT_EQ(limit(4800, 8), 0);
  EXPECT_EQ(limit(1 << 20, 8), 0);
}

TEST(AllGatherSchedule, MovesTheSameBytesWithTheLibrary) {
  AllGather workload;
  workload.rows = 1000;
  workload.cols = 64;
  workload.gpus = 8;
  const Schedule schedule = library_all_gather_schedule(workload, find_machine("mi300x-8"));
  const auto moved = bytes_by_peer(schedule, 3);
  ASSERT_EQ(moved.size(), 8u);
  for (const auto& [peer, bytes] : moved) EXPECT_EQ(bytes, 1000 * 64 * 2) << peer;
}

}  // namespace
}  // namespace tritax
