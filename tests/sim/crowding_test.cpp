// Copies by few workgroups leave lanes of a full link idle.
#include "sim/crowding.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "hand_machine.hpp"

namespace tritax {
namespace {

using hand::Draft;
using hand::kExact;
using hand::kTileBytes;
using hand::run;

TEST(Crowding, IsThatOfAClosedNetworkWithEqualLanes) {
  const Crowding eight_lanes(1 - 1.0 / 8);
  for (const int n : {1, 2, 4, 16, 64}) {
    EXPECT_NEAR(eight_lanes.cost(Crowding::step_of(n)), (n + 7.0) / n, 1e-12) << n;
  }
  // Between powers of the square root of 2 by the nearest: 3 as 2.8, 19 as 16, 24 as 22.6.
  EXPECT_NEAR(eight_lanes.cost(Crowding::step_of(3)), 1 + 7 / std::sqrt(8.0), 1e-12);
  EXPECT_NEAR(eight_lanes.cost(Crowding::step_of(19)), 1 + 7.0 / 16, 1e-12);
  EXPECT_NEAR(eight_lanes.cost(Crowding::step_of(24)), 1 + 7 / std::sqrt(512.0), 1e-12);
  EXPECT_EQ(eight_lanes.cost(0), 1);
  EXPECT_FALSE(Crowding(0).any());
}

constexpr double kLinkNs = kTileBytes / 50;  // a tile on a link

struct Way {
  int from = 0;
  int to = 0;
};

// Four workgroups copy two tiles each on every way, over links that one of them could fill; the first ones
// find them idle.
double copies_ns(Machine machine, double idle_share, const std::vector<Way>& ways) {
  machine.fabric.link_raw_gb_per_s = 50;
  machine.fabric.store_idle_share = idle_share;
  Draft draft(machine.gpu_count());
  std::int32_t row = 0;
  for (const Way& way : ways) {
    const auto kernel = draft.data_kernel("copy", way.from);
    for (int w = 0; w < 4; ++w) {
      draft.builder.workgroup(kernel);
      for (int t = 0; t < 2; ++t) {
        const auto tile = Draft::tile(row++);
        draft.builder.copy(draft.c, tile, way.to, draft.c, tile.row, tile.col, way.from);
      }
    }
    draft.builder.launch(way.from, kernel, static_cast<std::int32_t>(row / 8 - 1));
  }
  for (int rank = 0; rank < machine.gpu_count(); ++rank) {
    draft.builder.host(rank, HostOpKind::device_synchronize);
  }
  return run(draft.builder.finish(), machine).result.makespan_ns;
}

Machine switched(int gpus) {
  Machine machine = hand::machine(gpus);
  machine.fabric.kind = LinkKind::node_switch;
  return machine;
}

TEST(Crowding, TakesMoreOfAFullLinkForEachCopy) {
  for (const Machine& machine : {hand::machine(2), switched(2)}) {
    EXPECT_NEAR(copies_ns(machine, 0, {{0, 1}}), 8 * kLinkNs, kExact);
    // Four end together, and each of the next four finds three others on its link.
    EXPECT_NEAR(copies_ns(machine, 0.5, {{0, 1}}), (4 + 4 * (1 + 1.0 / 4)) * kLinkNs, kExact);
  }
}

TEST(Crowding, CountsWhoSharesALinkOfAMeshAndNobodyElse) {
  const double one = copies_ns(hand::machine(3), 0.5, {{0, 1}});
  EXPECT_NEAR(copies_ns(hand::machine(3), 0.5, {{0, 1}, {0, 2}}), one, kExact);
}

TEST(Crowding, LeavesOutTheNetworkBetweenNodes) {
  Machine machine = switched(1);
  machine.nodes = 2;
  machine.fabric.network_gb_per_s = kTileBytes / kLinkNs;
  EXPECT_NEAR(copies_ns(machine, 0.5, {{0, 1}}), copies_ns(machine, 0, {{0, 1}}), kExact);
}

TEST(Crowding, CountsAllThatReachAReceiverOverItsLink) {
  // Eight of two senders, as eight of one.
  const double eight = (8 + 8 * (1 + 1.0 / 8)) * kLinkNs;
  EXPECT_NEAR(copies_ns(switched(3), 0.5, {{0, 2}, {1, 2}}), eight, kExact);
  EXPECT_NEAR(copies_ns(switched(3), 0.5, {{0, 1}, {0, 2}}), eight, kExact);
}

}  // namespace
}  // namespace tritax
