// When stored data reaches memory.
#include <gtest/gtest.h>

#include "tests/sim/hand_machine.hpp"

namespace tritax {
namespace {

using hand::Draft;
using hand::kExact;
using hand::kTileBytes;

constexpr int kTilesOfL2 = 4;
constexpr double kCuRate = 16;                    // GB/s
constexpr double kToL2Ns = kTileBytes / kCuRate;  // a tile to the L2
constexpr double kToMemoryNs = kTileBytes / 1.0;  // to memory, at 1 GB/s

Machine one_die() {
  Machine machine = hand::machine(1);
  machine.gpu.xcds = 1;
  machine.gpu.l2_bytes = kTilesOfL2 * kTileBytes;
  machine.gpu.hbm_gb_per_s = 1;
  machine.gpu.cu_store_gb_per_s = kCuRate;
  machine.gpu.cu_remote_store_gb_per_s = kCuRate;
  return machine;
}

// One workgroup stores `tiles` tiles, all that C has, one after the other.
double stores_ns(const Machine& machine, int tiles) {
  Draft draft(machine.gpus_per_node, tiles);
  const auto kernel = draft.data_kernel("store", 0);
  draft.builder.workgroup(kernel);
  for (int t = 0; t < tiles; ++t) draft.builder.store(draft.c, Draft::tile(t), 0);
  draft.builder.launch(0, kernel, 0);
  draft.builder.host(0, HostOpKind::device_synchronize);
  return simulate(draft.builder.finish(), machine).makespan_ns;
}

TEST(WriteBack, ComesAtOnce) { EXPECT_NEAR(stores_ns(one_die(), 3), 3 * kToMemoryNs, kExact); }

TEST(WriteBack, OfAVendorThatFindsNoPlaceComesAtOnceToo) {
  const auto ns = [](int tiles) {
    Draft draft(1, tiles);
    draft.profile = KernelProfile::vendor;
    const auto kernel = draft.data_kernel("store", 0);
    draft.builder.workgroup(kernel);
    draft.builder.store(draft.c, Draft::tile(0), 0);
    draft.builder.launch(0, kernel, 0);
    draft.builder.host(0, HostOpKind::device_synchronize);
    return simulate(draft.builder.finish(), one_die()).makespan_ns;
  };
  EXPECT_NEAR(ns(kTilesOfL2), kToL2Ns, kExact);
  EXPECT_NEAR(ns(kTilesOfL2 + 1), kToMemoryNs, kExact);
}

// A vendor's kernels store results that stay; what they copy goes to memory.
TEST(WriteBack, OfAVendorIsThatOfItsCopies) {
  const Machine machine = one_die();
  const auto ns = [&](bool copies) {
    Draft draft(1, 2);
    draft.profile = KernelProfile::vendor;
    const auto kernel = draft.data_kernel("move", 0);
    draft.builder.workgroup(kernel);
    draft.builder.store(draft.c, Draft::tile(0), 0);
    if (copies) draft.builder.copy(draft.c, Draft::tile(1), 0, draft.c, 0, 0, 0);
    draft.builder.launch(0, kernel, 0);
    draft.builder.host(0, HostOpKind::device_synchronize);
    return simulate(draft.builder.finish(), machine).makespan_ns;
  };
  EXPECT_NEAR(ns(false), kToL2Ns, kExact);
  EXPECT_NEAR(ns(true) - ns(false), kToMemoryNs, kExact);
}

}  // namespace
}  // namespace tritax
