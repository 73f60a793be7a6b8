#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "model/schedule/check.hpp"
#include "model/schedule/json.hpp"
#include "model/workloads/remote_access/workload.hpp"
#include "tests/workloads/bytes_by_peer.hpp"

namespace tritax {
namespace {

RemoteAccess access(RemoteOperation operation, Peers peers, std::int64_t bytes, int gpus) {
  RemoteAccess workload;
  workload.operation = operation;
  workload.peers = peers;
  workload.bytes = bytes;
  workload.gpus = gpus;
  return workload;
}

class EveryOperation : public testing::TestWithParam<RemoteOperation> {};

TEST_P(EveryOperation, MovesItsBytesToEveryPeerWrittenOutOrCoarsened) {
  const Machine machine = find_machine("mi300x-8");
  for (const std::int64_t bytes : {std::int64_t{1} << 20, std::int64_t{3} << 28}) {
    const Schedule schedule = remote_access_schedule(access(GetParam(), Peers::all, bytes, 8), machine);
    EXPECT_LT(schedule.kernels.at(0).workgroups.size(), 50000u);
    for (int rank = 0; rank < 8; ++rank) {
      const auto moved = bytes_by_peer(schedule, rank);
      EXPECT_EQ(moved.size(), 7u);
      EXPECT_EQ(moved.count(rank), 0u);
      for (const auto& [peer, sum] : moved) EXPECT_EQ(sum, static_cast<double>(bytes)) << peer;
    }
  }
}

TEST_P(EveryOperation, IsSoundAlsoAfterJson) {
  const Machine machine = find_machine("mi300x-8");
  for (const std::int64_t bytes : {std::int64_t{1} << 19, std::int64_t{1} << 26}) {  // exact and coarsened
    const Schedule built = remote_access_schedule(access(GetParam(), Peers::all, bytes, 4), machine);
    const Schedule read = schedule_from_json(schedule_to_json(built), "text");
    for (const Schedule& schedule : {built, read}) {
      EXPECT_NO_THROW(require_sound(check_schedule(schedule), "built"));
      EXPECT_NO_THROW(require_sound(check_schedule_on(schedule, machine), "built"));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(RemoteAccess, EveryOperation,
                         testing::Values(RemoteOperation::load, RemoteOperation::store,
                                         RemoteOperation::atomic_add, RemoteOperation::get,
                                         RemoteOperation::put));

TEST(RemoteAccessSchedule, VisitsPeersInTheSameOrderOnEveryGpu) {
  const Schedule schedule = remote_access_schedule(access(RemoteOperation::store, Peers::all, 1 << 20, 4),
                                                   find_machine("mi300x-8"));
  const Workgroup& first = schedule.kernels.at(2).workgroups.at(0);  // of rank 2
  ASSERT_EQ(first.op_count, 3u);
  EXPECT_EQ(schedule.ops[first.first_op].rank, 0);
  EXPECT_EQ(schedule.ops[first.first_op + 1].rank, 1);
  EXPECT_EQ(schedule.ops[first.first_op + 2].rank, 3);
}

TEST(RemoteAccessSchedule, StartsLargerBlocksAtEveryPeerOnlyWhereArbitrationSpreadsThem) {
  Machine machine = find_machine("mi300x-8");
  const auto first_peers_of_the_middle = [&] {
    const Schedule schedule =
        remote_access_schedule(access(RemoteOperation::store, Peers::all, std::int64_t{1} << 30, 8), machine);
    const Kernel& kernel = schedule.kernels.at(0);
    std::set<int> peers;
    for (std::size_t i = kernel.workgroups.size() / 2; i < kernel.workgroups.size() / 2 + 7; ++i) {
      peers.insert(schedule.ops[kernel.workgroups[i].first_op].rank);
    }
    return peers;
  };
  machine.fabric.arbitration_spread = 0.1;
  EXPECT_EQ(first_peers_of_the_middle().size(), 7u);
  machine.fabric.arbitration_spread = 0;
  EXPECT_EQ(first_peers_of_the_middle(), std::set<int>{1});
}

TEST(RemoteAccessSchedule, KeepsLoadsOfOneBlockIndependent) {
  const Schedule schedule =
      remote_access_schedule(access(RemoteOperation::load, Peers::all, 1 << 19, 8), find_machine("mi300x-8"));
  const Kernel& kernel = schedule.kernels.at(0);
  EXPECT_EQ(kernel.workgroups.size(), 7u * 512);
  for (const Workgroup& workgroup : kernel.workgroups) EXPECT_EQ(workgroup.op_count, 1u);
}

TEST(RemoteAccessSchedule, RunsOnGpuZeroAloneForOnePeerAndForItself) {
  const Machine machine = find_machine("mi300x-8");
  const Schedule pair =
      remote_access_schedule(access(RemoteOperation::load, Peers::one, 1 << 20, 2), machine);
  EXPECT_EQ(pair.kernels.size(), 1u);
  EXPECT_EQ(bytes_by_peer(pair, 0), (std::map<int, double>{{1, 1 << 20}}));
  const Schedule self =
      remote_access_schedule(access(RemoteOperation::put, Peers::self, 1 << 20, 1), machine);
  EXPECT_EQ(bytes_by_peer(self, 0), (std::map<int, double>{{0, 1 << 20}}));
}

TEST(RemoteAccessSchedule, StartsCoarsenedGridsWithTheBytesThatTheHardwareKeepsInFlight) {
  const Machine machine = find_machine("mi300x-8");
  const Schedule schedule =
      remote_access_schedule(access(RemoteOperation::store, Peers::all, std::int64_t{1} << 32, 8), machine);
  const Kernel& kernel = schedule.kernels.at(0);
  // 8 workgroups of four waves fill the 32 wave slots of a CU; each holds one block of 1 KiB.
  const Op& first = schedule.ops[kernel.workgroups.at(0).first_op];
  EXPECT_EQ(bytes_of(schedule.buffers.at(1), first.rect), 8 * 1024);
  EXPECT_EQ(kernel.resources.lds_bytes, 65536);  // one a CU
  EXPECT_LE(kernel.workgroups.size(), 20000u);
}

RC_GTEST_PROP(CoarsenedBlocks, SumToTheRowsAndNeverIdleASlotForLong, ()) {
  const auto rows = *rc::gen::inRange<std::int64_t>(1, 1 << 22);
  const auto granule = *rc::gen::inRange<std::int64_t>(1, 9);
  const auto slots = *rc::gen::inRange<std::int64_t>(1, 400);
  const auto generations = *rc::gen::inRange<std::int64_t>(4, 60);
  const auto fine_rounds = *rc::gen::inRange<std::int64_t>(1, 20);
  const auto blocks = coarsened_blocks(rows, granule, slots, generations, fine_rounds);
  RC_ASSERT(std::accumulate(blocks.begin(), blocks.end(), std::int64_t{0}) == rows);
  const std::int64_t widest = std::max(granule, rows / (slots * generations));
  std::int64_t left = rows;
  std::set<std::int64_t> sizes(blocks.begin(), blocks.end());
  RC_ASSERT(sizes.size() <= 23u);  // granule · 2^i and the remainder
  for (const std::int64_t block : blocks) {
    RC_ASSERT(block >= 1 && block <= widest);
    RC_ASSERT(block <= std::max(granule, left / (2 * slots)));
    left -= block;
  }
}

}  // namespace
}  // namespace tritax
