// Operands that arrive from memory one stage after the other, and rows that begin anywhere.
#include <gtest/gtest.h>

#include "model/cost/matmul_cost.hpp"
#include "tests/sim/hand_machine.hpp"

namespace tritax {
namespace {

using namespace hand;

// One workgroup for each list of rows of A·B, one K step each; even ones run on the first die, odd ones on
// the second.
Schedule side_by_side(const std::vector<std::vector<std::int32_t>>& workgroups) {
  Draft draft(1);
  const auto kernel = draft.gemm_kernel("gemm", 0);
  for (const auto& rows : workgroups) {
    draft.builder.workgroup(kernel);
    for (const std::int32_t row : rows) draft.matmul(row);
  }
  draft.builder.launch(0, kernel);
  draft.builder.host(0, HostOpKind::device_synchronize);
  return draft.builder.finish();
}

Schedule products(const std::vector<std::int32_t>& rows) { return side_by_side({rows}); }

TEST(OperandsFromMemory, ArriveAsOftenAsStagesInFlightAllow) {
  // 65536 bytes of LDS hold 4 stages of 16384, of which 3 are on their way.
  Machine machine = hand::machine();
  machine.gpu.stage_latency_ns = 6 * kStepNs;
  EXPECT_NEAR(run(products({0}), machine).result.makespan_ns, 2 * kStepNs, kExact);
  machine.gpu.stage_latency_ns = 3 * kStepNs;  // just in time
  EXPECT_NEAR(run(products({0}), machine).result.makespan_ns, kStepNs, kExact);
}

TEST(OperandsFromMemory, ArriveInTimeOnceTheyLieInL2) {
  Machine machine = hand::machine();
  machine.gpu.stage_latency_ns = 6 * kStepNs;
  EXPECT_NEAR(run(products({0, 0, 1}), machine).result.makespan_ns, (2 + 1 + 2) * kStepNs, kExact);
}

TEST(OperandsFromMemory, TakeTheLatencyOfAPlainLoadIfNoOtherIsKnown) {
  Machine machine = hand::machine();
  machine.gpu.hbm_latency_ns = 6 * kStepNs;  // until the first arrive, and again between stages
  EXPECT_NEAR(run(products({0}), machine).result.makespan_ns, (6 + 2) * kStepNs, kExact);
}

// The second time they are in L2.
TEST(OperandsFromMemory, OfASerialPipelineComeAtTheRateOfTheComputeUnit) {
  Draft draft(1);
  Kernel kernel;
  kernel.name = "gemm";
  kernel.resources.lds_bytes = 65536;
  kernel.tile = {kTile, kTile, kTile, 4, Pipeline::serial};
  const auto gemm = draft.builder.kernel(kernel);
  draft.builder.workgroup(gemm);
  draft.matmul(0);
  draft.matmul(0);
  draft.builder.launch(0, gemm);
  draft.builder.host(0, HostOpKind::device_synchronize);
  Machine machine = hand::machine();
  machine.gpu.cu_load_gb_per_s = 2 * kTileBytes / (3 * kStepNs);  // a stage of A and B in three steps
  EXPECT_NEAR(run(draft.builder.finish(), machine).result.makespan_ns, (3 + 1) * kStepNs, kExact);
}

TEST(OperandsFromMemory, ArriveWithTheLatencyOfTheLastLevelCacheFromThere) {
  Machine machine = hand::machine();
  machine.gpu.llc_bytes = 1e9;
  machine.gpu.llc_gb_per_s = kUnlimited;
  machine.gpu.llc_latency_ns = 6 * kStepNs;
  machine.gpu.l2_bytes = 1;  // holds nothing
  EXPECT_NEAR(run(products({0, 0}), machine).result.makespan_ns, (1 + 2) * kStepNs, kExact);
}

TEST(OperandsFromMemory, ComeNoEarlierToAWorkgroupThatFindsThemOnTheirWay) {
  constexpr double kDispatchNs = 100;
  Machine machine = hand::machine();
  machine.gpu.stage_latency_ns = 6 * kStepNs;
  machine.gpu.workgroup_dispatch_ns = kDispatchNs;
  const Observed out = run(side_by_side({{0}, {1}, {0, 0}}), machine);
  const Span fetched = out.seen.ops.at({0, 0, 0});
  const Span found = out.seen.ops.at({0, 2, 0});
  EXPECT_NEAR(fetched.length_ns(), 2 * kStepNs, kExact);
  EXPECT_NEAR(found.begin_ns - fetched.begin_ns, kDispatchNs, kExact);
  EXPECT_NEAR(found.end_ns, fetched.end_ns, kExact);
  EXPECT_NEAR(out.seen.ops.at({0, 2, 1}).length_ns(), kStepNs, kExact);  // by then they lie there
  EXPECT_NEAR(out.result.account.contention_ns, 0, kExact);
}

TEST(OperandsFromMemory, ComeNoEarlierThroughTheLastLevelCacheThanToIt) {
  Machine machine = hand::machine();
  machine.gpu.stage_latency_ns = 6 * kStepNs;
  machine.gpu.llc_bytes = 1e9;
  machine.gpu.llc_gb_per_s = kUnlimited;
  const Observed out = run(side_by_side({{0}, {0, 0}}), machine);
  EXPECT_NEAR(out.seen.ops.at({0, 0, 0}).length_ns(), 2 * kStepNs, kExact);
  EXPECT_NEAR(out.seen.ops.at({0, 1, 0}).length_ns(), 2 * kStepNs, kExact);
  EXPECT_NEAR(out.seen.ops.at({0, 1, 1}).length_ns(), kStepNs, kExact);
}

TEST(OperandsFromMemory, StayInL2BetweenRunsIfTheyFit) {
  Machine machine = hand::machine();
  machine.gpu.stage_latency_ns = 6 * kStepNs;
  SimulationOptions options;
  options.warm = true;
  EXPECT_NEAR(simulate(products({0, 1}), machine, options).makespan_ns, 2 * kStepNs, kExact);
  machine.gpu.l2_bytes = kTileBytes;  // A has 64 tiles
  EXPECT_NEAR(simulate(products({0, 1}), machine, options).makespan_ns, 4 * kStepNs, kExact);
}

TEST(OperandStages, AreThoseThatFitBesideAFinishedTile) {
  Gpu gpu = hand::machine().gpu;
  KernelCosts costs;
  const MatmulTile tile{64, 64, 64, 4, Pipeline::overlapped};
  EXPECT_EQ(operand_stages(gpu, costs, DType::fp16, tile, 65536), 4);
  EXPECT_EQ(operand_stages(gpu, costs, DType::fp16, tile, 65535), 3);
  EXPECT_EQ(operand_stages(gpu, costs, DType::fp16, tile, 1), 1);
  EXPECT_EQ(operand_stages(gpu, costs, DType::fp16, tile, 1e6), 8);
  EXPECT_EQ(operand_stages(gpu, costs, DType::fp16, tile, 0), 4);  // what a workgroup can have
  gpu.async_tile_store = true;  // a finished tile and what its senders need
  costs.lds_bytes_of_senders = 1000;
  EXPECT_EQ(operand_stages(gpu, costs, DType::fp16, tile, 66536), 3);
  EXPECT_EQ(operand_stages(gpu, costs, DType::fp16, tile, 65536 - 8192 + 999), 2);
}

TEST(OperandStages, OfAnOverlappedPipelineAreOnTheirWayAllButOne) {
  const Gpu gpu = hand::machine().gpu;
  const MatmulTile tile{64, 64, 64, 4, Pipeline::overlapped};
  EXPECT_EQ(stage_interval_ns(gpu, DType::fp16, tile, 4, 600), 200);
  EXPECT_EQ(stage_interval_ns(gpu, DType::fp16, tile, 1, 600), 600);
}

// 16,384 bytes a stage: 10,000 are on their way to a compute unit that gets 25 GB/s at 400 ns, and LDS takes
// 128 a clock of 2 GHz.
TEST(OperandStages, OfASerialPipelinePassThroughTheComputeUnitAndThenGoIntoLds) {
  Gpu gpu = hand::machine().gpu;
  gpu.cu_load_gb_per_s = 25;
  gpu.hbm_latency_ns = 400;
  gpu.lds_bytes_per_clk = 128;
  gpu.boost_clock_ghz = 2;
  const MatmulTile tile{64, 64, 64, 4, Pipeline::serial};
  EXPECT_DOUBLE_EQ(stage_interval_ns(gpu, DType::fp16, tile, 1, 400), 400 + 655.36 + 64);
  EXPECT_DOUBLE_EQ(stage_interval_ns(gpu, DType::fp16, tile, 1, 200), 200 + 327.68 + 64);  // a nearer level
  gpu.async_tile_copy = true;  // a copy engine puts them into LDS
  EXPECT_EQ(stage_interval_ns(gpu, DType::fp16, tile, 4, 600), 200);
}

// One workgroup moves `rect` of C to the peer; the kernel's time.
double moved_ns(const Machine& machine, const Rect& rect, OpKind kind) {
  Draft draft(2);
  const auto kernel = draft.data_kernel("move", 0);
  draft.builder.workgroup(kernel);
  if (kind == OpKind::copy) {
    draft.builder.copy(draft.c, rect, 1, draft.c, rect.row, rect.col, 0);
  } else {
    draft.builder.store(draft.c, rect, 1);
  }
  draft.builder.launch(0, kernel);
  draft.builder.host(0, HostOpKind::device_synchronize);
  return run(draft.builder.finish(), machine).result.makespan_ns;
}

TEST(RaggedRows, TakeMoreOfALinkForEachEndOffSixteenBytes) {
  constexpr double kLink = 10;  // bytes/ns
  constexpr double kEndBytes = 32;
  Machine machine = hand::machine(2);
  machine.fabric.link_raw_gb_per_s = kLink;
  machine.interpreter.ragged_end_bytes = kEndBytes;
  for (const OpKind kind : {OpKind::copy, OpKind::store}) {
    const auto ns = [&](std::int32_t col, std::int32_t cols) {
      return moved_ns(machine, {0, col, kTile, cols}, kind);
    };
    EXPECT_NEAR(ns(0, kTile), kTileBytes / kLink, kExact);
    EXPECT_NEAR(ns(8, 48), kTile * 96 / kLink, kExact);
    EXPECT_NEAR(ns(0, 63), kTile * (126 + kEndBytes) / kLink, kExact);
    EXPECT_NEAR(ns(1, 63), kTile * (126 + kEndBytes) / kLink, kExact);
    EXPECT_NEAR(ns(1, 62), kTile * (124 + 2 * kEndBytes) / kLink, kExact);
  }
}

// A tile of two lines a row that begins in the middle of one lies in three lines, and each of its two boxes
// in two.
TEST(RaggedRows, TakeMoreOfALinkForEachLineThatARowOrABoxSplits) {
  constexpr double kLink = 10;  // bytes/ns
  constexpr std::int32_t kColumns = 128;
  Machine machine = hand::machine(2);
  machine.fabric.link_raw_gb_per_s = kLink;
  machine.interpreter.split_line_bytes = 12;
  for (const bool in_boxes : {false, true}) {
    machine.gpu.async_tile_store = in_boxes;
    for (const std::int32_t col : {0, 32, 64}) {
      Draft draft(2);
      const auto wide = draft.builder.buffer({"wide", DType::fp16, kTile, 4 * kTile, kTile, kColumns});
      const auto kernel = draft.gemm_kernel("send", 0);
      draft.builder.workgroup(kernel);
      draft.builder.store(wide, {0, col, kTile, kColumns}, 1);
      draft.builder.launch(0, kernel);
      draft.builder.host(0, HostOpKind::device_synchronize);
      const double split_lines = col % 64 == 0 ? 0 : in_boxes ? 2 : 1;
      EXPECT_NEAR(run(draft.builder.finish(), machine).result.makespan_ns,
                  kTile * (256 + 12 * split_lines) / kLink, kExact)
          << in_boxes << " " << col;
    }
  }
}

TEST(RaggedRows, TakeACopyLongerButNoStore) {
  Machine machine = hand::machine(2);
  machine.interpreter.ragged_copy_ns = 70;
  EXPECT_NEAR(moved_ns(machine, {0, 0, kTile, kTile}, OpKind::copy), 0, kExact);
  EXPECT_NEAR(moved_ns(machine, {0, 1, kTile, 8}, OpKind::copy), 70, kExact);
  EXPECT_NEAR(moved_ns(machine, {0, 1, kTile, 8}, OpKind::store), 0, kExact);
}

}  // namespace
}  // namespace tritax
