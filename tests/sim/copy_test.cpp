// The time of a copy behind another copy and behind any other operation.
#include <gtest/gtest.h>

#include <set>

#include "tests/sim/hand_machine.hpp"

namespace tritax {
namespace {

using hand::Draft;
using hand::kExact;
using hand::kTileBytes;

constexpr double kCopyRate = 16;     // GB/s
constexpr double kGuardedRate = 10;  // GB/s
constexpr double kFollowingNs = 300 + kTileBytes / kCopyRate;
constexpr double kGuardedNs = 200 + kTileBytes / kGuardedRate;

Machine two_gpus() {
  Machine machine = hand::machine(2);
  machine.gpu.cu_remote_store_gb_per_s = kCopyRate;
  machine.gpu.cu_store_gb_per_s = kCopyRate;
  machine.interpreter.copy_op_ns = 300;
  machine.interpreter.guarded_copy_ns = 200;
  machine.interpreter.guarded_copy_gb_per_s = kGuardedRate;
  return machine;
}

// Copies tiles 0, 1, … of C, with a wait for a flag that is set before those of `guarded`.
double copies_ns(const Machine& machine, bool matmul_kernel, int tiles, int to, std::set<int> guarded = {}) {
  Draft draft(2);
  const std::int16_t ready = draft.builder.flags("ready", 1);
  const auto setter = draft.data_kernel("set", 0);
  draft.builder.workgroup(setter);
  draft.signal(ready, 0, 0);
  const auto kernel = matmul_kernel ? draft.gemm_kernel("copy", 0) : draft.data_kernel("copy", 0);
  draft.builder.workgroup(kernel);
  for (int t = 0; t < tiles; ++t) {
    if (guarded.count(t) > 0) draft.wait(ready, 0);
    const Rect tile = Draft::tile(t);
    draft.builder.copy(draft.c, tile, to, draft.a, tile.row, tile.col, 0);
  }
  draft.builder.launch(0, setter, 0);
  draft.builder.launch(0, kernel, 0);
  draft.builder.host(0, HostOpKind::device_synchronize);
  return hand::run(draft.builder.finish(), machine).result.makespan_ns;
}

TEST(Copies, BehindEachOtherOverlapAndTheFirstDoesNot) {
  for (const int to : {0, 1}) {
    EXPECT_NEAR(copies_ns(two_gpus(), false, 1, to), kGuardedNs, kExact);
    EXPECT_NEAR(copies_ns(two_gpus(), false, 4, to), kGuardedNs + 3 * kFollowingNs, kExact);
  }
}

TEST(Copies, BehindAWaitDoNotOverlap) {
  EXPECT_NEAR(copies_ns(two_gpus(), false, 4, 1, {0, 1, 2, 3}), 4 * kGuardedNs, kExact);
  EXPECT_NEAR(copies_ns(two_gpus(), false, 4, 1, {0, 2}), 2 * kGuardedNs + 2 * kFollowingNs, kExact);
}

TEST(Copies, BehindAWaitTakeALeastTimeHoweverFewBytesTheyHave) {
  Machine machine = two_gpus();
  machine.interpreter.guarded_copy_least_ns = kGuardedNs / 2;
  EXPECT_NEAR(copies_ns(machine, false, 4, 1, {0, 1, 2, 3}), 4 * kGuardedNs, kExact);
  machine.interpreter.guarded_copy_least_ns = 2 * kGuardedNs;
  EXPECT_NEAR(copies_ns(machine, false, 4, 1, {0, 1, 2, 3}), 8 * kGuardedNs, kExact);
  EXPECT_NEAR(copies_ns(machine, false, 4, 1, {0, 2}), 4 * kGuardedNs + 2 * kFollowingNs, kExact);
  EXPECT_NEAR(copies_ns(machine, true, 4, 1, {0, 1, 2, 3}), 4 * kFollowingNs, kExact);
}

TEST(Copies, OfAMatmulKernelKnowNoDifference) {
  EXPECT_NEAR(copies_ns(two_gpus(), true, 4, 1, {0, 1, 2, 3}), 4 * kFollowingNs, kExact);
}

// Two copies, each behind a wait or behind each other, while `products` of the eight compute units are at
// work on matmuls from before until after.
double copies_beside_ns(const Machine& machine, int products, bool matmul_kernel,
                        std::set<int> guarded = {0, 1}) {
  Draft draft(2);
  const std::int16_t ready = draft.builder.flags("ready", 1);
  const auto product = draft.gemm_kernel("product", 0);
  for (int p = 0; p < products; ++p) {
    draft.builder.workgroup(product);
    for (int step = 0; step < 100; ++step) draft.matmul(p);
    if (p == 0) draft.signal(ready, 0, 0);
    for (int step = 0; step < 100; ++step) draft.matmul(p);
  }
  const auto kernel = matmul_kernel ? draft.gemm_kernel("copy", 0) : draft.data_kernel("copy", 0);
  draft.builder.workgroup(kernel);
  draft.wait(ready, 0);
  const std::uint32_t first = 1;
  for (int t = 0; t < 2; ++t) {
    if (guarded.count(t) > 0) draft.wait(ready, 0);
    const Rect tile = Draft::tile(t);
    draft.builder.copy(draft.c, tile, 1, draft.a, tile.row, tile.col, 0);
  }
  draft.builder.launch(0, product, 0);
  draft.builder.launch(0, kernel, 1);
  draft.builder.host(0, HostOpKind::device_synchronize);
  const auto observed = hand::run(draft.builder.finish(), machine);
  const double begin_ns = observed.seen.ops.at({static_cast<std::uint32_t>(kernel), 0, first}).begin_ns;
  return observed.seen.kernels.at(static_cast<std::uint32_t>(kernel)).end_ns - begin_ns;
}

TEST(Copies, BehindAWaitTakeLongerTheMoreComputeUnitsAreAtWorkOnMatmuls) {
  constexpr double kBusyNs = 400;
  Machine machine = two_gpus();
  machine.interpreter.busy_copy_ns = kBusyNs;
  machine.interpreter.specialised_copy_efficiency = 0.5;
  for (const int products : {1, 4, 6}) {
    const double more = kBusyNs * products / 8;
    EXPECT_NEAR(copies_beside_ns(machine, products, false), 2 * (kGuardedNs + more), kExact);
    EXPECT_NEAR(copies_beside_ns(machine, products, true), 2 * (kFollowingNs + more) / 0.5, kExact);
  }
  // The second one's loads overlap stores of the first.
  EXPECT_NEAR(copies_beside_ns(machine, 4, false, {0}), kGuardedNs + kBusyNs / 2 + kFollowingNs, kExact);
}

TEST(Copies, TakeNoLongerBesideNothingAndWhereItIsUnknown) {
  Machine machine = two_gpus();
  EXPECT_NEAR(copies_beside_ns(machine, 4, false), 2 * kGuardedNs, kExact);
  machine.interpreter.busy_copy_ns = 400;
  EXPECT_NEAR(copies_ns(machine, false, 2, 1, {0, 1}), 2 * kGuardedNs, kExact);
}

TEST(Copies, OfMachinesOnWhichItIsUnknownAreAlike) {
  Machine machine = two_gpus();
  machine.interpreter.guarded_copy_ns = machine.interpreter.guarded_copy_gb_per_s = 0;
  EXPECT_NEAR(copies_ns(machine, false, 4, 1, {0, 1, 2, 3}), 4 * kFollowingNs, kExact);
}

}  // namespace
}  // namespace tritax
