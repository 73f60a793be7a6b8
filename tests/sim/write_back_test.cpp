// When memory gets what was stored, and what comes before the first operation of a workgroup that multiplies.
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

Machine one_die(int gpus = 1) {
  Machine machine = hand::machine(gpus);
  machine.gpu.xcds = 1;
  machine.gpu.l2_bytes = kTilesOfL2 * kTileBytes;
  machine.gpu.hbm_gb_per_s = 1;
  machine.gpu.cu_store_gb_per_s = kCuRate;
  machine.gpu.cu_remote_store_gb_per_s = kCuRate;
  machine.gpu.l2_write_back = true;
  return machine;
}

// One workgroup stores `tiles` tiles, all that C has, to GPU `to`, one after the other.
double stores_ns(const Machine& machine, int tiles, int to = 0, const SimulationOptions& options = {}) {
  Draft draft(machine.gpus_per_node, tiles);
  const auto kernel = draft.data_kernel("store", 0);
  draft.builder.workgroup(kernel);
  for (int t = 0; t < tiles; ++t) draft.builder.store(draft.c, Draft::tile(t), to);
  draft.builder.launch(0, kernel, 0);
  draft.builder.host(0, HostOpKind::device_synchronize);
  return simulate(draft.builder.finish(), machine, options).makespan_ns;
}

TEST(WriteBack, WaitsUntilTheL2IsFull) {
  for (const int to : {0, 1}) {
    const Machine machine = one_die(2);
    EXPECT_NEAR(stores_ns(machine, 3, to), 3 * kToL2Ns, kExact);
    EXPECT_NEAR(stores_ns(machine, 6, to), 4 * kToL2Ns + 2 * kToMemoryNs, kExact);
  }
}

TEST(WriteBack, ComesAtOnceWhereTheMachineDoesNotSaySo) {
  Machine machine = one_die();
  machine.gpu.l2_write_back = false;
  EXPECT_NEAR(stores_ns(machine, 3), 3 * kToMemoryNs, kExact);
}

TEST(WriteBack, ComesAtOnceBehindALastLevelCache) {
  Machine machine = one_die();
  machine.gpu.llc_bytes = 100 * kTileBytes;
  machine.gpu.llc_gb_per_s = hand::kUnlimited;
  EXPECT_NEAR(stores_ns(machine, 3), 3 * kToMemoryNs, kExact);
}

TEST(WriteBack, SparesNoLineThatWasWrittenBefore) {
  Machine machine = one_die();
  machine.gpu.dirty_share = 0.5;
  SimulationOptions options;
  options.written_before_bytes = 100 * kTileBytes;
  EXPECT_NEAR(stores_ns(machine, 6, 0, options), 2 * kToL2Ns + 4 * kToMemoryNs, kExact);
}

// An equal run before has stored six tiles of which, by chance, 1 - exp(-6/4) of four are still there: the
// first tile finds 0.89 clean ones, and what it displaces is counted in 32nds, rounded up.
TEST(WriteBack, FindsWhatTheRunBeforeStored) {
  SimulationOptions options;
  options.stored_before = true;
  EXPECT_NEAR(stores_ns(one_die(), 6, 0, options), 4.0 / 32 * kToMemoryNs + 5 * kToMemoryNs, kExact);
}

TEST(WriteBack, IsNotNeededWhereARunWritesOverTheResultsOfTheOneBefore) {
  SimulationOptions options;
  options.stored_before = options.warm = true;
  EXPECT_NEAR(stores_ns(one_die(), kTilesOfL2, 0, options), kTilesOfL2 * kToL2Ns, kExact);
  EXPECT_GT(stores_ns(one_die(), kTilesOfL2 + 1, 0, options), kToMemoryNs);
}

// A vendor's kernels store results that stay, whatever the machine says of others; what they copy goes to
// memory.
TEST(WriteBack, OfAVendorIsThatOfItsCopies) {
  for (const bool late : {false, true}) {
    Machine machine = one_die();
    machine.gpu.l2_write_back = late;
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
    EXPECT_NEAR(ns(false), kToL2Ns, kExact) << late;
    EXPECT_NEAR(ns(true) - ns(false), kToMemoryNs, kExact) << late;
  }
}

double products_ns(const Machine& machine, int tiles, const SimulationOptions& options = {}) {
  Draft draft(1);
  const auto kernel = draft.gemm_kernel("multiply", 0, 0, 1);
  for (int t = 0; t < tiles; ++t) {
    draft.builder.workgroup(kernel);
    draft.matmul(t);
  }
  draft.builder.launch(0, kernel, 0);
  draft.builder.host(0, HostOpKind::device_synchronize);
  return simulate(draft.builder.finish(), machine, options).makespan_ns;
}

TEST(MatmulStart, ComesBeforeTheFirstOperationOfEveryWorkgroup) {
  Machine machine = hand::machine();
  machine.interpreter.matmul_start_ns = 700;
  EXPECT_NEAR(products_ns(machine, 1), 700 + hand::kStepNs, kExact);
  EXPECT_NEAR(products_ns(machine, 3), 3 * (700 + hand::kStepNs), kExact);  // on one compute unit
  EXPECT_NEAR(stores_ns(machine, 1), 0, kExact);                            // no matmul
}

TEST(MatmulStart, IsPartOfWhatLaunchesCost) {
  Machine machine = hand::machine();
  machine.interpreter.matmul_start_ns = 700;
  SimulationOptions options;
  options.counterfactual.free_launches = true;
  EXPECT_NEAR(products_ns(machine, 2, options), 2 * hand::kStepNs, kExact);
}

}  // namespace
}  // namespace tritax
