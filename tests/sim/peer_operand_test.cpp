// Matmuls that read A from the memory of a peer: closed forms on a machine without other costs.

#include <gtest/gtest.h>

#include <numeric>

#include "tests/sim/hand_machine.hpp"

namespace tritax {
namespace {

using hand::Draft;
using hand::kExact;
using hand::kStepNs;
using hand::kTile;
using hand::kTileBytes;
using hand::Observed;

// `workgroups` on rank 0, in turn of its two dies, that compute the same tile with A of rank 1.
Observed run_peers(const Machine& machine, int workgroups, Pipeline pipeline = Pipeline::overlapped) {
  Draft draft(2);
  const std::int32_t kernel = draft.gemm_kernel("gemm", 0);
  for (int w = 0; w < workgroups; ++w) {
    draft.builder.workgroup(kernel);
    draft.builder.matmul_of(1, draft.a, draft.b, Draft::tile(0), 0, kTile);
  }
  draft.builder.launch(0, kernel);
  draft.builder.host(0, HostOpKind::device_synchronize);
  Schedule schedule = draft.builder.finish();
  schedule.kernels[0].tile.pipeline = pipeline;
  return hand::run(schedule, machine);
}

double bytes_on_links(const Observed& out) {
  return std::accumulate(out.result.link_bytes.begin(), out.result.link_bytes.end(), 0.0);
}

TEST(PeerOperand, CrossesTheLinkAtItsRateBesideTheProduct) {
  Machine machine = hand::machine(2);
  machine.fabric.link_raw_gb_per_s = 8;
  machine.fabric.load_efficiency = 0.5;
  const Observed slow = run_peers(machine, 1);
  EXPECT_NEAR(slow.result.makespan_ns, kTileBytes / 4, kExact);  // A alone: B is of the own memory
  EXPECT_NEAR(slow.result.account.compute_ns, kStepNs, kExact);
  EXPECT_NEAR(slow.result.account.wire_ns, kTileBytes / 4 - kStepNs, kExact);
  EXPECT_EQ(bytes_on_links(slow), kTileBytes);
  machine.fabric.link_raw_gb_per_s = 80;
  const Observed fast = run_peers(machine, 1);
  EXPECT_NEAR(fast.result.makespan_ns, kStepNs, kExact);
  EXPECT_NEAR(fast.result.account.wire_ns, 0, kExact);
}

// Four stages fit, so three are in flight. The first of them arrives after a round trip.
TEST(PeerOperand, ArrivesNoFasterThanItsStagesInFlightAndItsComputeUnitAllow) {
  Machine machine = hand::machine(2);
  machine.fabric.load_round_trip_ns = 6000;
  EXPECT_NEAR(run_peers(machine, 1).result.makespan_ns, 6000 + 6000 / 3.0, kExact);
  machine.gpu.cu_remote_load_gb_per_s = 2;
  EXPECT_NEAR(run_peers(machine, 1).result.makespan_ns, 6000 + kTileBytes / 2, kExact);
  // In turn: the loads of a stage, and then their way through the compute unit.
  EXPECT_NEAR(run_peers(machine, 1, Pipeline::serial).result.makespan_ns, 6000 + 6000 / 3.0 + kTileBytes / 2,
              kExact);
}

// The first and the third workgroup share a die.
TEST(PeerOperand, IsLoadedByEveryProductUnlessTheL2KeepsIt) {
  Machine machine = hand::machine(2);
  EXPECT_EQ(bytes_on_links(run_peers(machine, 3)), 3 * kTileBytes);
  machine.gpu.l2_keeps_peers = true;
  EXPECT_EQ(bytes_on_links(run_peers(machine, 3)), 2 * kTileBytes);
}

// Two dies load over one link; the third product finds the bytes of the first, as late as they come.
TEST(PeerOperand, ThatIsFoundInTheL2ArrivesWithTheLoadOfWhoWasFirst) {
  Machine machine = hand::machine(2);
  machine.gpu.l2_keeps_peers = true;
  machine.fabric.link_raw_gb_per_s = 4;
  Observed out = run_peers(machine, 3);
  for (std::uint32_t w = 0; w < 3; ++w) {
    EXPECT_NEAR((out.seen.ops[{0, w, 0}].end_ns), 2 * kTileBytes / 4, kExact) << w;
  }
}

// Both ranks read the other's A: alike, so that one of them stands for both.
TEST(PeerOperand, OfRanksThatAreAlikeIsSimulatedOnce) {
  Machine machine = hand::machine(2);
  machine.fabric.link_raw_gb_per_s = 4;
  Draft draft(2);
  for (int rank = 0; rank < 2; ++rank) {
    const std::int32_t kernel = draft.gemm_kernel("gemm", rank);
    draft.builder.workgroup(kernel);
    draft.builder.matmul_of(1 - rank, draft.a, draft.b, Draft::tile(0), 0, kTile);
    draft.builder.launch(rank, kernel);
    draft.builder.host(rank, HostOpKind::device_synchronize);
  }
  const Schedule schedule = draft.builder.finish();
  SimulationOptions options;
  options.symmetry = Symmetry::ranks;
  const SimulationResult once = simulate(schedule, machine, options);
  EXPECT_EQ(once.simulated_ranks, 1);
  EXPECT_NEAR(once.makespan_ns, kTileBytes / 4, kExact);
  EXPECT_NEAR(hand::run(schedule, machine).result.makespan_ns, kTileBytes / 4, kExact);
}

}  // namespace
}  // namespace tritax
