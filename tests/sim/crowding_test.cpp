// Copies by few workgroups leave lanes of a full link idle.
#include "sim/crowding.hpp"

#include <gtest/gtest.h>

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
  EXPECT_EQ(eight_lanes.cost(0), 1);
  EXPECT_FALSE(Crowding(0).any());
}

// Four workgroups copy two tiles each over a link that one of them could fill; the first ones find it idle.
double copies_ns(double idle_share) {
  Machine machine = hand::machine(2);
  machine.fabric.link_raw_gb_per_s = 50;
  machine.fabric.store_idle_share = idle_share;
  Draft draft(2);
  const auto kernel = draft.data_kernel("copy", 0);
  for (int w = 0; w < 4; ++w) {
    draft.builder.workgroup(kernel);
    for (int t = 0; t < 2; ++t) {
      const auto tile = Draft::tile(2 * w + t);
      draft.builder.copy(draft.c, tile, 1, draft.c, tile.row, tile.col, 0);
    }
  }
  draft.builder.launch(0, kernel);
  draft.builder.host(0, HostOpKind::device_synchronize);
  return run(draft.builder.finish(), machine).result.makespan_ns;
}

TEST(Crowding, TakesMoreOfAFullLinkForEachCopy) {
  const double link_ns = kTileBytes / 50;
  EXPECT_NEAR(copies_ns(0), 8 * link_ns, kExact);
  // Four end together and four others start one after the other: beside none, one, two and three others.
  const Crowding two_lanes(0.5);
  const double crowded = copies_ns(0.5);
  EXPECT_GT(crowded, 8 * link_ns);
  EXPECT_LT(crowded, (4 + 4 * two_lanes.cost(Crowding::step_of(1))) * link_ns);
}

}  // namespace
}  // namespace tritax
