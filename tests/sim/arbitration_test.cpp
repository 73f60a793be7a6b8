// Unequal service of equal transfers on a full link.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "hand_machine.hpp"
#include "sim/simulate.hpp"

namespace tritax {
namespace {

using hand::Draft;
using hand::kExact;
using hand::kTileBytes;
using hand::Observed;
using hand::run;

constexpr int kTiles = 6;

// `workgroups` of GPU 0 store tiles to GPU 1, each as fast as 10 GB/s; the link takes 30.
Observed stores(int workgroups, double spread) {
  Machine machine = hand::machine(2);
  machine.fabric.link_raw_gb_per_s = 30;
  machine.fabric.arbitration_spread = spread;
  machine.gpu.cu_remote_store_gb_per_s = 10;
  Draft draft(2, workgroups * kTiles);
  const auto kernel = draft.data_kernel("send", 0);
  for (int w = 0; w < workgroups; ++w) {
    draft.builder.workgroup(kernel);
    for (int t = 0; t < kTiles; ++t) draft.builder.store(draft.c, Draft::tile(w * kTiles + t), 1);
  }
  draft.builder.launch(0, kernel);
  draft.builder.host(0, HostOpKind::device_synchronize);
  return run(draft.builder.finish(), machine);
}

TEST(Arbitration, WhoHasTheLinkForItselfGetsWhatItAsksFor) {
  for (const double spread : {0.0, 0.4}) {
    EXPECT_NEAR(stores(2, spread).result.makespan_ns, kTiles * kTileBytes / 10, kExact) << spread;
  }
}

TEST(Arbitration, EqualTransfersOfAFullLinkEndTogetherOnlyWithoutSpread) {
  constexpr int kWorkgroups = 6;
  const double bytes = kWorkgroups * kTiles * kTileBytes;
  const Observed equal = stores(kWorkgroups, 0);
  const Observed unequal = stores(kWorkgroups, 0.4);
  EXPECT_NEAR(equal.result.makespan_ns, bytes / 30, kExact);
  EXPECT_GT(unequal.result.makespan_ns, bytes / 30);  // the last ones cannot fill the link any more
  const auto end_of = [](const Observed& out, int workgroup) {
    return out.seen.ops.at({0, workgroup, kTiles - 1}).end_ns;
  };
  for (int w = 1; w < kWorkgroups; ++w) {
    EXPECT_NEAR(end_of(equal, w), end_of(equal, 0), kExact);
    EXPECT_GT(std::abs(end_of(unequal, w) - end_of(unequal, 0)), 1) << w;
  }
}

// How far apart the second and the third of six chunks of each channel are in time, the most.
double unsteadiness(bool vendor) {
  constexpr int kChannels = 6;
  Machine machine = hand::machine(2);
  machine.fabric.link_raw_gb_per_s = 30;
  machine.fabric.arbitration_spread = 0.2;
  machine.gpu.cu_remote_store_gb_per_s = 10;
  Draft draft(2, kChannels * kTiles);
  if (vendor) draft.profile = KernelProfile::vendor;
  const auto kernel = draft.data_kernel("gather", 0);
  for (int w = 0; w < kChannels; ++w) {
    draft.builder.workgroup(kernel);
    for (int t = 0; t < kTiles; ++t) {
      const Rect chunk = Draft::tile(w * kTiles + t);
      draft.builder.copy(draft.c, chunk, 1, draft.c, chunk.row, chunk.col, 0);
    }
  }
  draft.builder.launch(0, kernel);
  draft.builder.host(0, HostOpKind::device_synchronize);
  const Observed out = run(draft.builder.finish(), machine);
  double most = 0;
  for (int w = 0; w < kChannels; ++w) {
    const double second = out.seen.ops.at({0, w, 1}).length_ns();
    EXPECT_GT(std::abs(second - out.seen.ops.at({0, (w + 1) % kChannels, 1}).length_ns()), 1) << w;
    most = std::max(most, std::abs(out.seen.ops.at({0, w, 2}).length_ns() - second));
  }
  return most;
}

TEST(Arbitration, ServesAllChunksOfALibraryChannelAlike) {
  EXPECT_NEAR(unsteadiness(true), 0, kExact);
  EXPECT_GT(unsteadiness(false), 1);  // whose tiles are transfers of their own
}

}  // namespace
}  // namespace tritax
