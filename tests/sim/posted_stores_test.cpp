// Kernels that post fewer bytes per load than the kernels that measured the machine's rate.
#include <gtest/gtest.h>

#include "model/machine/topology.hpp"
#include "model/select/bounds.hpp"
#include "model/workloads/all_gather/workload.hpp"
#include "tests/sim/hand_machine.hpp"

namespace tritax {
namespace {

using hand::Draft;
using hand::kExact;
using hand::kTileBytes;

constexpr std::int64_t kWindow = 8192;
constexpr double kPostedRate = 10;  // GB/s
constexpr double kShardBytes = 2.0 * 1024 * 1024;

Machine two_gpus() {
  Machine machine = hand::machine(2);
  machine.gpu.cu_remote_store_gb_per_s = kPostedRate;
  machine.gpu.post_ns =
      0.75 * kWindow / kPostedRate;  // one peer: a window takes as long as a compute unit needs for it
  machine.gpu.post_peer_ns = 0.25 * kWindow / kPostedRate;
  return machine;
}

// Of an all-gather of two ranks; what costs time is the store of the shard to the peer. Never below its
// bound.
double gather_ns(const Machine& machine, int workgroups, std::int64_t posted_bytes) {
  AllGather workload;
  workload.rows = workload.cols = 1024;
  workload.posted_bytes_per_peer = posted_bytes;
  GemmKnobs knobs;
  knobs.comm_cus = workgroups;
  const Schedule schedule = all_gather_schedule(workload, knobs);
  const double time_ns = simulate(schedule, machine).makespan_ns;
  EXPECT_LE(time_bound(schedule, machine, build_topology(machine, 2)).total_ns, time_ns * (1 + 1e-9));
  return time_ns;
}

TEST(PostedStores, HalfTheBytesGoHalfAsFastWhereComputeUnitsAreTheLimit) {
  const Machine machine = two_gpus();
  for (const int workgroups : {1, 2, 8}) {
    const double whole_ns = kShardBytes / (kPostedRate * workgroups);
    EXPECT_NEAR(gather_ns(machine, workgroups, 0), whole_ns, kExact);
    EXPECT_NEAR(gather_ns(machine, workgroups, kWindow), whole_ns, kExact);
    EXPECT_NEAR(gather_ns(machine, workgroups, kWindow / 2), 2 * whole_ns, kExact);
    EXPECT_NEAR(gather_ns(machine, workgroups, kWindow / 8), 8 * whole_ns, kExact);
  }
}

TEST(PostedStores, HalfTheBytesFillTheLinkWhereItIsTheLimit) {
  Machine machine = two_gpus();
  machine.fabric.link_raw_gb_per_s = 2 * kPostedRate;
  EXPECT_NEAR(gather_ns(machine, 8, 0), kShardBytes / (2 * kPostedRate), kExact);
  EXPECT_NEAR(gather_ns(machine, 8, kWindow / 2), kShardBytes / (2 * kPostedRate), kExact);
}

TEST(PostedStores, MoreThanTheWindowIsNotFaster) {
  const Machine machine = two_gpus();
  EXPECT_NEAR(gather_ns(machine, 1, 2 * kWindow), kShardBytes / kPostedRate, kExact);
  EXPECT_NEAR(gather_ns(machine, 1, 64 * kWindow), kShardBytes / kPostedRate, kExact);
}

TEST(PostedStores, OfTwoWorkgroupsOnAComputeUnitAddUp) {
  Machine machine = two_gpus();
  machine.gpu.xcds = machine.gpu.cus_per_xcd = 1;
  EXPECT_NEAR(gather_ns(machine, 1, kWindow / 2), 2 * kShardBytes / kPostedRate, kExact);
  EXPECT_NEAR(gather_ns(machine, 2, kWindow / 2), kShardBytes / kPostedRate, kExact);
  EXPECT_NEAR(gather_ns(machine, 4, kWindow / 2), kShardBytes / kPostedRate, kExact);
}

TEST(PostedStores, AreThoseThatGoToPeers) {
  Machine machine = two_gpus();
  machine.gpu.cu_load_gb_per_s = machine.gpu.cu_store_gb_per_s = machine.gpu.cu_remote_load_gb_per_s =
      kPostedRate;
  const auto time_ns = [&](auto&& operation) {
    Draft draft(2);
    const auto kernel = draft.data_kernel("k", 0);
    draft.builder.workgroup(kernel);
    operation(draft);
    draft.builder.launch(0, kernel);
    draft.builder.host(0, HostOpKind::device_synchronize);
    Schedule schedule = draft.builder.finish();
    schedule.kernels[0].library = {LibraryRoutine::posts, 2, kWindow / 4};
    return hand::run(schedule, machine).result.makespan_ns;
  };
  const double fast_ns = kTileBytes / kPostedRate;
  const Rect tile = Draft::tile(0);
  EXPECT_NEAR(time_ns([&](Draft& d) { d.builder.store(d.c, tile, 1); }), 4 * fast_ns, kExact);
  EXPECT_NEAR(time_ns([&](Draft& d) { d.builder.copy(d.c, tile, 1, d.a, 0, 0, 0); }), 4 * fast_ns, kExact);
  EXPECT_NEAR(time_ns([&](Draft& d) { d.builder.copy(d.c, tile, 0, d.a, 0, 0, 1); }), fast_ns, kExact);
  EXPECT_NEAR(time_ns([&](Draft& d) { d.builder.load(d.a, tile, 0); }), fast_ns, kExact);
  EXPECT_NEAR(time_ns([&](Draft& d) { d.builder.load(d.a, tile, 1); }), fast_ns, kExact);
  EXPECT_NEAR(time_ns([&](Draft& d) { d.builder.store(d.c, tile, 0); }), fast_ns, kExact);
}

}  // namespace
}  // namespace tritax
