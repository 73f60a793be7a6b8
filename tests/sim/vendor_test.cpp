// Schedules of a vendor's kernels: what the engine takes them to do that the backend's interpreter does not.
#include <gtest/gtest.h>

#include "hand_machine.hpp"
#include "sim/simulate.hpp"

namespace tritax {
namespace {

using hand::Draft;
using hand::kExact;
using hand::kStepNs;
using hand::kTile;
using hand::kTileBytes;
using hand::run;

Schedule launched(Draft& draft, std::int32_t kernel) {
  draft.builder.launch(0, kernel);
  draft.builder.host(0, HostOpKind::device_synchronize);
  return draft.builder.finish();
}

TEST(Vendor, KernelOfAnOlderGenerationReachesItsShareOfTheMatrixCores) {
  for (const double share : {1.0, 0.25}) {
    Draft draft(1);
    Kernel gemm;
    gemm.name = "gemm";
    gemm.tile = {kTile, kTile, kTile, 4, Pipeline::serial};
    gemm.matmul_share = share;
    const std::int32_t kernel = draft.builder.kernel(std::move(gemm));
    draft.builder.workgroup(kernel);
    draft.matmul(0);
    EXPECT_NEAR(run(launched(draft, kernel), hand::machine()).result.makespan_ns, kStepNs / share, kExact);
  }
}

// Four compute units with one workgroup each store four tiles; memory takes as much as one of them.
double store_ns(bool vendor, double l2_bytes, bool warm) {
  Machine machine = hand::machine();
  machine.gpu.hbm_gb_per_s = 10;
  machine.gpu.cu_store_gb_per_s = 10;
  machine.gpu.l2_bytes = l2_bytes;
  Draft draft(1, 4);
  if (vendor) draft.builder.vendor();
  const auto kernel = draft.data_kernel("store", 0);
  for (int w = 0; w < 4; ++w) {
    draft.builder.workgroup(kernel);
    draft.builder.store(draft.c, Draft::tile(w), 0);
  }
  SimulationOptions options;
  options.warm = warm;
  return simulate(launched(draft, kernel), machine, options).makespan_ns;
}

TEST(Vendor, ResultsGoToTheL2IfTheyFit) {
  constexpr double tile_ns = kTileBytes / 10;
  for (const bool warm : {false, true}) {
    EXPECT_NEAR(store_ns(true, 4 * kTileBytes, warm), tile_ns, kExact);
    EXPECT_NEAR(store_ns(true, 4 * kTileBytes - 1, warm), 4 * tile_ns, kExact);
    EXPECT_NEAR(store_ns(false, 4 * kTileBytes, warm), 4 * tile_ns, kExact);
  }
}

// A matmul beside a store, of which the operands are five tiles and the result buffer four.
TEST(Vendor, ResultsShareTheL2WithTheOperands) {
  const auto stored_in_ns = [](double l2_bytes) {
    Machine machine = hand::machine();
    machine.gpu.hbm_gb_per_s = 10;
    machine.gpu.cu_store_gb_per_s = 10;
    machine.gpu.l2_bytes = l2_bytes;
    Draft draft(1, 4);
    draft.builder.vendor();
    const auto gemm = draft.gemm_kernel("gemm", 0, 0, 1);
    draft.builder.workgroup(gemm);
    draft.matmul(0);
    const auto store = draft.data_kernel("store", 0);
    draft.builder.workgroup(store);
    draft.builder.store(draft.c, Draft::tile(1), 0);
    draft.builder.launch(0, gemm, 0);
    draft.builder.launch(0, store, 1);
    draft.builder.host(0, HostOpKind::device_synchronize);
    return run(draft.builder.finish(), machine).seen.ops.at({1, 0, 0}).length_ns();
  };
  EXPECT_NEAR(stored_in_ns(9 * kTileBytes), kTileBytes / 10, kExact);
  EXPECT_GT(stored_in_ns(9 * kTileBytes - 1), 1.2 * kTileBytes / 10);  // memory serves the matmul too
}

TEST(Vendor, TilesThatAreAddedUpAreAskedForTogether) {
  for (const bool vendor : {true, false}) {
    Machine machine = hand::machine();
    machine.gpu.hbm_latency_ns = 500;
    machine.gpu.cu_load_gb_per_s = 10;
    Draft draft(1, 3);
    if (vendor) draft.builder.vendor();
    const auto kernel = draft.data_kernel("add", 0);
    draft.builder.workgroup(kernel);
    draft.builder.load(draft.a, Draft::tile(0), 0);
    draft.builder.reduce(draft.a, Draft::tile(1), 0);
    draft.builder.reduce(draft.a, Draft::tile(2), 0);
    const double bytes_ns = 3 * kTileBytes / 10;
    EXPECT_NEAR(run(launched(draft, kernel), machine).result.makespan_ns, bytes_ns + (vendor ? 500 : 1500),
                kExact);
  }
}

}  // namespace
}  // namespace tritax
