// Kernels of several profiles: how the engine runs a vendor's kernel where the backend's interpreter does
// not, and that each keeps its own costs in a schedule that mixes them.
#include <gtest/gtest.h>

#include "hand_machine.hpp"
#include "model/select/bounds.hpp"
#include "sim/simulate.hpp"

namespace tritax {
namespace {

using hand::Draft;
using hand::kExact;
using hand::kStepNs;
using hand::kTile;
using hand::kTileBytes;
using hand::Observed;
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
    gemm.library.routine = share < 1 ? LibraryRoutine::gemm_odd_rows : LibraryRoutine::gemm;
    const std::int32_t kernel = draft.builder.kernel(std::move(gemm));
    draft.builder.workgroup(kernel);
    draft.matmul(0);
    Machine machine = hand::machine();
    machine.library.odd_row_share = share;
    EXPECT_NEAR(run(launched(draft, kernel), machine).result.makespan_ns, kStepNs / share, kExact);
  }
}

// Four compute units with one workgroup each store four tiles; memory takes as much as one of them.
double store_ns(bool vendor, double l2_bytes, bool warm) {
  Machine machine = hand::machine();
  machine.gpu.hbm_gb_per_s = 10;
  machine.gpu.cu_store_gb_per_s = 10;
  machine.gpu.l2_bytes = l2_bytes;
  Draft draft(1, 4);
  if (vendor) draft.profile = KernelProfile::vendor;
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
    draft.profile = KernelProfile::vendor;
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
    if (vendor) draft.profile = KernelProfile::vendor;
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

constexpr double kMatmulOpNs = 170, kCopyOpNs = 300, kMoveNs = 90, kGapNs = 50, kLibraryGapNs = 20;

Machine machine_with_costs() {
  Machine machine = hand::machine();
  machine.interpreter.matmul_op_ns = kMatmulOpNs;
  machine.interpreter.copy_op_ns = kCopyOpNs;
  machine.gpu.cu_store_gb_per_s = kTileBytes / kMoveNs;
  machine.host.kernel_gap_ns = machine.host.graph_node_gap_ns = kGapNs;
  machine.library.kernel_gap_ns = kLibraryGapNs;
  return machine;
}

// Of the interpreter's kernels, whichever instructions they have for attention.
bool is_interpreted(KernelProfile profile) {
  return profile == KernelProfile::interpreter || profile == KernelProfile::mma_sync;
}
double gemm_ns(KernelProfile profile) { return kStepNs + (is_interpreted(profile) ? kMatmulOpNs : 0); }
double copy_ns(KernelProfile profile) { return kMoveNs + (is_interpreted(profile) ? kCopyOpNs : 0); }
double gap_ns(KernelProfile profile) { return profile == KernelProfile::vendor ? kLibraryGapNs : kGapNs; }

// A GEMM and a copy, one after the other in a stream.
Schedule gemm_then_copy(KernelProfile gemm, KernelProfile copy, bool graph) {
  Draft draft(1);
  draft.profile = gemm;
  const auto multiply = draft.gemm_kernel("gemm", 0);
  draft.builder.workgroup(multiply);
  draft.matmul(0);
  draft.profile = copy;
  const auto move = draft.data_kernel("copy", 0);
  draft.builder.workgroup(move);
  draft.builder.copy(draft.c, Draft::tile(1), 0, draft.c, 0, 0, 0);
  if (graph) {
    draft.builder.graph_launch(0, {{multiply, 0}, {move, 0}});
  } else {
    draft.builder.launch(0, multiply);
    draft.builder.launch(0, move);
  }
  draft.builder.host(0, HostOpKind::device_synchronize);
  return draft.builder.finish();
}

TEST(Profiles, OfOneScheduleTakeEachTheirOwnTime) {
  const Machine machine = machine_with_costs();
  for (int gemm = 0; gemm < kKernelProfileCount; ++gemm) {
    for (int copy = 0; copy < kKernelProfileCount; ++copy) {
      const auto of_gemm = static_cast<KernelProfile>(gemm), of_copy = static_cast<KernelProfile>(copy);
      for (const bool graph : {false, true}) {
        const Schedule schedule = gemm_then_copy(of_gemm, of_copy, graph);
        const Observed out = run(schedule, machine);
        EXPECT_NEAR(out.seen.kernels.at(0).length_ns(), gemm_ns(of_gemm), kExact) << gemm << copy;
        EXPECT_NEAR(out.seen.kernels.at(1).length_ns(), copy_ns(of_copy), kExact) << gemm << copy;
        EXPECT_NEAR(out.result.makespan_ns, gemm_ns(of_gemm) + gap_ns(of_copy) + copy_ns(of_copy), kExact)
            << gemm << copy;
        EXPECT_LE(time_bound(schedule, machine, build_topology(machine, 1)).total_ns,
                  out.result.makespan_ns + kExact);
      }
    }
  }
}

TEST(Profiles, HaveCodeOfTheirOwnThatTheOtherMakesCold) {
  Machine machine = hand::machine();
  machine.interpreter.cold_code_ns = 500;
  for (const bool mixed : {false, true}) {
    Draft draft(1);
    for (const bool first : {true, false}) {
      draft.profile = first || !mixed ? KernelProfile::interpreter : KernelProfile::vendor;
      const auto kernel = draft.gemm_kernel(first ? "first" : "second", 0);
      draft.builder.workgroup(kernel);
      draft.matmul(0);
      draft.builder.launch(0, kernel);
    }
    draft.builder.host(0, HostOpKind::device_synchronize);
    EXPECT_NEAR(run(draft.builder.finish(), machine).result.makespan_ns, 2 * kStepNs + (mixed ? 500 : 0),
                kExact);
  }
}

// The L2 gives a vendor's matmuls twice of what it gives others, the switch a third more of its stores.
TEST(Profiles, OfOneScheduleGetEachTheirOwnRateOfWhatTheyShare) {
  constexpr double kOperandBytes = 2 * kTileBytes;
  Machine machine = hand::machine(3);
  machine.gpu.l2_gb_per_s = kOperandBytes / (4 * kStepNs);
  machine.gpu.l2_lock_step_gb_per_s = kOperandBytes / (2 * kStepNs);
  machine.fabric.kind = LinkKind::node_switch;
  machine.fabric.link_raw_gb_per_s = 480;
  machine.fabric.store_efficiency = 0.7;
  machine.fabric.load_efficiency = 0.8;
  machine.fabric.store_egress_gb_per_s = machine.fabric.store_ingress_gb_per_s = 288;
  const auto schedule_of = [&](KernelProfile gemm, KernelProfile store) {
    Draft draft(3);
    draft.profile = gemm;
    const auto multiply = draft.gemm_kernel("gemm", 0);
    draft.builder.workgroup(multiply);
    draft.matmul(0);
    draft.profile = store;
    const auto send = draft.data_kernel("store", 0);
    draft.builder.workgroup(send);
    draft.builder.copy(draft.c, Draft::tile(0), 1, draft.c, 0, 0, 0);
    draft.builder.launch(0, multiply);
    draft.builder.launch(0, send);
    draft.builder.host(0, HostOpKind::device_synchronize);
    return draft.builder.finish();
  };
  for (const KernelProfile gemm : {KernelProfile::interpreter, KernelProfile::vendor}) {
    for (const KernelProfile store : {KernelProfile::interpreter, KernelProfile::vendor}) {
      const Observed out = run(schedule_of(gemm, store), machine);
      EXPECT_NEAR(out.seen.kernels.at(0).length_ns(), (gemm == KernelProfile::vendor ? 2 : 4) * kStepNs,
                  kExact);
      EXPECT_NEAR(out.seen.kernels.at(1).length_ns(),
                  kTileBytes / (store == KernelProfile::vendor ? 384 : 288), kExact);
    }
  }
}

// Four tiles fit the L2; a vendor's results stay there, others go to memory.
TEST(Profiles, OfOneScheduleKeepTheirOwnResults) {
  Machine machine = hand::machine();
  machine.gpu.hbm_gb_per_s = machine.gpu.cu_store_gb_per_s = 10;
  machine.gpu.l2_bytes = 4 * kTileBytes;
  Draft draft(1, 4);
  for (const KernelProfile profile : {KernelProfile::vendor, KernelProfile::interpreter}) {
    draft.profile = profile;
    const auto kernel = draft.data_kernel("store", 0);
    for (int w = 0; w < 2; ++w) {
      draft.builder.workgroup(kernel);
      draft.builder.store(draft.c, Draft::tile(w), 0);
    }
    draft.builder.launch(0, kernel);
  }
  draft.builder.host(0, HostOpKind::device_synchronize);
  const Observed out = run(draft.builder.finish(), machine);
  EXPECT_NEAR(out.seen.kernels.at(0).length_ns(), kTileBytes / 10, kExact);
  EXPECT_NEAR(out.seen.kernels.at(1).length_ns(), 2 * kTileBytes / 10, kExact);
}

}  // namespace
}  // namespace tritax
