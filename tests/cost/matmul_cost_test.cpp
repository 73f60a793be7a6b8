#include "model/cost/matmul_cost.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "model/core/error.hpp"
#include "model/schedule/builder.hpp"
#include "tests/cost/example_machines.hpp"

namespace tritax {
namespace {

// The example of the header.
TEST(MatmulSteps, OfALibraryEndWithWhatIsLeftOfK) {
  KernelCosts own, vendor;
  vendor.tuned = true;
  MatmulTile tile;
  tile.k = 256;
  EXPECT_EQ(matmul_steps(vendor, tile, 320, 2), 1.25);
  EXPECT_EQ(matmul_steps(own, tile, 320, 2), 2);
  EXPECT_EQ(matmul_steps(vendor, tile, 257, 2), 1.25);
  EXPECT_EQ(matmul_steps(vendor, tile, 512, 2), 2);
  tile.k = 32;  // no deeper than usual
  EXPECT_EQ(matmul_steps(vendor, tile, 33, 2), 2);
}

// Clocks are 1 GHz in the example machines, so cycles are nanoseconds.
double step_ns(const Gpu& gpu, DType dtype, const MatmulTile& tile, const KernelCosts& costs = {}) {
  return matmul_cost(gpu, costs, dtype, tile, tile.m, tile.n, tile.k).compute_ns;
}

TEST(FragmentEdges, AreThoseOfTheBestWaveGrid) {
  EXPECT_EQ(fragment_edges({256, 256, 64, 8, Pipeline::serial}), 128 + 64);  // 2×4
  EXPECT_EQ(fragment_edges({256, 256, 64, 4, Pipeline::serial}), 128 + 128);
  EXPECT_EQ(fragment_edges({256, 64, 64, 4, Pipeline::serial}), 64 + 64);  // 4×1
  EXPECT_EQ(fragment_edges({16, 64, 64, 8, Pipeline::serial}),
            16 + 16);  // no wave has less than an instruction
}

TEST(MatmulCost, OfAnOverlappedStepIsItsMatrixTime) {
  // 2·128·128·64 / 2048 = 1024 cycles at full rate; data movement (128 + 256 + 4 waves·128 rows) hides behind
  // it.
  Gpu gpu = example::amd_node().gpu;
  const MatmulTile tile{128, 128, 64, 4, Pipeline::overlapped};
  EXPECT_EQ(step_ns(gpu, DType::fp16, tile), 1024 / 0.5);
  example::rate_of(gpu, DType::fp16).issue_efficiency = 1;
  EXPECT_EQ(step_ns(gpu, DType::fp16, tile), 1024);
  example::rate_of(gpu, DType::fp16).load_clock_ghz = 2;
  EXPECT_EQ(step_ns(gpu, DType::fp16, tile), 512);
}

TEST(MatmulCost, OfASerialStepAddsWritingAndReadingLds) {
  // mfma 2048; write 256·64·2/128 = 256; read 4·(64 + 64)·64·2/128 = 512.
  const Gpu gpu = example::amd_node().gpu;
  EXPECT_EQ(step_ns(gpu, DType::fp16, {128, 128, 64, 4, Pipeline::serial}), 2048 + 256 + 512);
}

TEST(MatmulCost, IsBoundByTheL2PortWhenTilesAreSmallAndThePortIsNarrow) {
  Gpu gpu = example::amd_node().gpu;
  gpu.cu_l2_bytes_per_clk = 2;
  EXPECT_EQ(step_ns(gpu, DType::fp16, {64, 64, 64, 4, Pipeline::overlapped}), 128 * 64 * 2 / 2);
}

TEST(MatmulCost, HandsOverBetweenWavesInEveryStepThatThePortBounds) {
  Gpu gpu = example::amd_node().gpu;
  const MatmulTile tile{64, 64, 64, 4, Pipeline::overlapped};
  KernelCosts costs;
  costs.matmul_step_clk = 100;
  const double free_port = step_ns(gpu, DType::fp16, tile, costs);
  gpu.cu_l2_bytes_per_clk = 2;
  EXPECT_EQ(step_ns(gpu, DType::fp16, tile, costs), 100 + 128 * 64 * 2 / 2);
  gpu.cu_l2_bytes_per_clk = 64;
  costs.matmul_step_clk = 0;  // the matrix cores were the slower ones: nobody waited for the hand-over
  EXPECT_EQ(step_ns(gpu, DType::fp16, tile, costs), free_port);
}

TEST(MatmulCost, IsBoundByLdsWhenManyWavesReadASmallTile) {
  // 16 waves of a 64×64 tile: 4×4 grid of 16×16; write 128·64·2/128 = 128, read 16·32·64·2/128 = 512; mfma
  // 256 at full rate.
  Gpu gpu = example::amd_node().gpu;
  example::rate_of(gpu, DType::fp16).issue_efficiency = 1;
  EXPECT_EQ(step_ns(gpu, DType::fp16, {64, 64, 64, 16, Pipeline::overlapped}), 128 + 512);
}

// wgmma multiplies 64 rows whatever the tile has; mma.sync, of A100 and of fp64 everywhere, as many as there
// are.
TEST(MatmulCost, PadsRowsForWgmmaAlone) {
  Gpu gpu = example::nvidia_node().gpu;
  example::rate_of(gpu, DType::fp64) = {256, 0.5, 1};
  gpu.lds_bytes_per_clk = 1e9;
  const auto low_over_high = [&](DType dtype, std::int32_t k) {
    return step_ns(gpu, dtype, {32, 64, k, 4, Pipeline::overlapped}) /
           step_ns(gpu, dtype, {64, 64, k, 4, Pipeline::overlapped});
  };
  EXPECT_EQ(low_over_high(DType::fp16, 64), 1);
  EXPECT_EQ(low_over_high(DType::fp64, 16), 0.5);
  gpu.arch = "sm_80";
  EXPECT_EQ(low_over_high(DType::fp16, 32), 0.5);
}

TEST(MatmulCost, WithASenderIsAKernelOfWgmma) {
  Machine machine = example::nvidia_node();
  machine.gpu.async_tile_store = true;
  for (const DType dtype : {DType::fp16, DType::fp64}) {
    ScheduleBuilder builder("product", 1);
    const std::int16_t a = builder.buffer({"A", dtype, 64, 64, 64, 64});
    const std::int16_t b = builder.buffer({"B", dtype, 64, 64, 64, 64});
    const std::int16_t c = builder.buffer({"C", dtype, 64, 64, 64, 64});
    Kernel kernel;
    kernel.tile = {64, 64, 16, 4, Pipeline::overlapped};
    builder.workgroup(builder.kernel(std::move(kernel)));
    builder.matmul(a, b, {0, 0, 64, 64}, 0, 64);
    builder.store(c, {0, 0, 64, 64}, 0);
    builder.launch(0, 0);
    const Schedule schedule = builder.finish();
    EXPECT_EQ(has_sender(schedule, schedule.kernels[0], machine.gpu), dtype == DType::fp16);
  }
}

TEST(MatmulCost, UsesOnlyTheMatrixCoresThatHaveAWave) {
  Gpu gpu = example::amd_node().gpu;
  gpu.lds_bytes_per_clk = 1e9;
  gpu.cu_l2_bytes_per_clk = 1e9;
  const double full = step_ns(gpu, DType::fp16, {64, 64, 64, 4, Pipeline::overlapped});
  EXPECT_EQ(step_ns(gpu, DType::fp16, {64, 64, 64, 2, Pipeline::overlapped}), 2 * full);
  EXPECT_EQ(step_ns(gpu, DType::fp16, {16, 16, 64, 4, Pipeline::overlapped}),
            full / 16 * 4);  // one block, one SIMD
}

TEST(MatmulCost, CountsPartialStepsOfKAsWholeSteps) {
  const Gpu gpu = example::amd_node().gpu;
  const MatmulTile tile{128, 128, 64, 4, Pipeline::serial};
  const double step = step_ns(gpu, DType::fp16, tile);
  EXPECT_EQ(matmul_cost(gpu, {}, DType::fp16, tile, 128, 128, 65).compute_ns, 2 * step);
  EXPECT_EQ(matmul_cost(gpu, {}, DType::fp16, tile, 128, 128, 128).compute_ns, 2 * step);
  EXPECT_EQ(matmul_cost(gpu, {}, DType::fp16, tile, 128, 128, 129).compute_ns, 3 * step);
}

TEST(MatmulCost, OfARaggedTileTakesAsLongAsAFullOneButMovesAndComputesLess) {
  const Gpu gpu = example::amd_node().gpu;
  const MatmulTile tile{128, 128, 64, 4, Pipeline::serial};
  const MatmulCost full = matmul_cost(gpu, {}, DType::fp16, tile, 128, 128, 1000);
  const MatmulCost ragged = matmul_cost(gpu, {}, DType::fp16, tile, 10, 3, 1000);
  EXPECT_EQ(ragged.compute_ns, full.compute_ns);
  EXPECT_EQ(ragged.a_bytes, 10 * 1000 * 2);
  EXPECT_EQ(ragged.b_bytes, 3 * 1000 * 2);
  EXPECT_EQ(ragged.operand_bytes, 13 * 1000 * 2);
  EXPECT_EQ(ragged.flops, 2.0 * 10 * 3 * 1000);
}

TEST(MatmulCost, StartsAfterTheLatencyOfHbm) {
  const Gpu gpu = example::amd_node().gpu;
  EXPECT_EQ(matmul_cost(gpu, {}, DType::fp16, {128, 128, 64, 4, Pipeline::serial}, 128, 128, 64).prologue_ns,
            400);
}

TEST(MatmulCost, WithWgmmaHasNoLdsTermsAndTheSamePipelines) {
  const Gpu gpu = example::nvidia_node().gpu;
  for (const Pipeline pipeline : {Pipeline::serial, Pipeline::overlapped}) {
    EXPECT_EQ(step_ns(gpu, DType::fp16, {128, 256, 64, 8, pipeline}), 2.0 * 128 * 256 * 64 / 4096);
    EXPECT_EQ(step_ns(gpu, DType::fp16, {64, 64, 64, 4, pipeline}), 2.0 * 64 * 64 * 64 / 4096);
  }
}

TEST(MatmulCost, WithWgmmaPadsRowsToTheInstruction) {
  const Gpu gpu = example::nvidia_node().gpu;
  EXPECT_EQ(step_ns(gpu, DType::fp16, {16, 96, 64, 4, Pipeline::overlapped}),
            step_ns(gpu, DType::fp16, {64, 96, 64, 4, Pipeline::overlapped}));
}

TEST(MatmulCost, WithWgmmaStepsOfPaddedRowsTakeWhatFullOnesTakeThoughTheyLoadLess) {
  const Gpu gpu = example::nvidia_node().gpu;
  KernelCosts costs;
  costs.matmul_step_clk = 10000;  // the hand-over sets the pace
  for (const std::int32_t n : {64, 128, 256}) {
    EXPECT_EQ(step_ns(gpu, DType::fp16, {16, n, 64, 8, Pipeline::overlapped}, costs),
              step_ns(gpu, DType::fp16, {64, n, 64, 8, Pipeline::overlapped}, costs));
    EXPECT_LT(
        matmul_cost(gpu, costs, DType::fp16, {16, n, 64, 8, Pipeline::overlapped}, 16, n, 64).operand_bytes,
        matmul_cost(gpu, costs, DType::fp16, {64, n, 64, 8, Pipeline::overlapped}, 64, n, 64).operand_bytes);
  }
}

TEST(MatmulCost, WithWgmmaTurnsATileOfFewRowsAroundInKernelsThatDo) {
  const Gpu gpu = example::nvidia_node().gpu;
  KernelCosts costs;
  costs.tuned = true;
  EXPECT_EQ(step_ns(gpu, DType::fp16, {16, 256, 64, 4, Pipeline::overlapped}, costs),
            step_ns(gpu, DType::fp16, {256, 16, 64, 4, Pipeline::overlapped}, costs));
}

TEST(MatmulCost, WithWgmmaNarrowerThan64ColumnsIsPacedByItsOperands) {
  // (64 + 32)·64·2/128 = 96 cycles of LDS against 64 cycles of matrix work.
  const Gpu gpu = example::nvidia_node().gpu;
  EXPECT_EQ(step_ns(gpu, DType::fp16, {64, 32, 64, 4, Pipeline::overlapped}), 96);
}

TEST(MatmulCost, StepsTakeALeastTimeHoweverFewBytesTheyNeed) {
  const Gpu gpu = example::nvidia_node().gpu;
  KernelCosts costs;
  const auto ns = [&](std::int32_t m, std::int32_t n) {
    return step_ns(gpu, DType::fp16, {m, n, 64, 8, Pipeline::overlapped}, costs);
  };
  const double small = ns(64, 64), large = ns(256, 128);
  costs.matmul_least_step_clk = 1.5 * small * gpu.rate(DType::fp16).load_clock_ghz;
  EXPECT_DOUBLE_EQ(ns(64, 64), 1.5 * small);
  EXPECT_DOUBLE_EQ(ns(16, 64), 1.5 * small);
  EXPECT_EQ(ns(256, 128), large);
}

TEST(MatmulCost, GoesThroughKByRowsOfTheCopyEngineWhateverTheTile) {
  const Gpu gpu = example::nvidia_node().gpu;
  KernelCosts costs;
  costs.matmul_step_clk = 10000;  // what sets the pace
  const auto ns = [&](std::int32_t depth, DType dtype) {
    const MatmulTile tile{128, 128, depth, 8, Pipeline::overlapped};
    return matmul_cost(gpu, costs, dtype, tile, 128, 128, 1024).compute_ns;
  };
  for (const std::int32_t depth : {16, 128, 1024}) {
    EXPECT_EQ(ns(depth, DType::fp16), ns(64, DType::fp16));
    EXPECT_EQ(step_depth(gpu, costs, DType::fp8, {128, 128, depth, 8, Pipeline::overlapped}), 128);
  }
  costs.copy_engine_row_bytes = 0;
  EXPECT_LT(ns(128, DType::fp16), ns(64, DType::fp16)) << "half as many steps to hand over";
  EXPECT_EQ(step_depth(gpu, costs, DType::fp8, {128, 128, 32, 8, Pipeline::overlapped}), 32);
}

TEST(MatmulCost, RefusesADtypeWithoutMatrixInstructions) {
  const Gpu gpu = example::nvidia_node().gpu;
  try {
    matmul_cost(gpu, {}, DType::fp32, {128, 128, 32, 8, Pipeline::overlapped}, 128, 128, 32);
    FAIL() << "fp32 was accepted";
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(), "dtype fp32: H200 has no matrix instruction for it");
  }
}

RC_GTEST_PROP(MatmulCost, ScalesInverselyWithTheClockAndIsNeverFasterThanTheMatrixCores, ()) {
  Gpu gpu = *rc::gen::element(example::amd_node().gpu, example::nvidia_node().gpu);
  const MatmulTile tile{*rc::gen::inRange(1, 33) * 16, *rc::gen::inRange(1, 33) * 16,
                        *rc::gen::inRange(1, 9) * 16, *rc::gen::element(4, 8, 16),
                        *rc::gen::element(Pipeline::serial, Pipeline::overlapped)};
  const auto k = *rc::gen::inRange<std::int64_t>(1, 10000);
  const MatmulCost cost = matmul_cost(gpu, {}, DType::fp16, tile, tile.m, tile.n, k);
  MatrixRate& rate = example::rate_of(gpu, DType::fp16);
  RC_ASSERT(cost.compute_ns >= cost.flops /
                                   (rate.flop_per_clk_per_cu * rate.issue_efficiency * rate.load_clock_ghz) *
                                   (1 - 1e-12));
  rate.load_clock_ghz *= 2;
  RC_ASSERT(matmul_cost(gpu, {}, DType::fp16, tile, tile.m, tile.n, k).compute_ns == cost.compute_ns / 2);
}

RC_GTEST_PROP(MatmulCost, OfTheOverlappedPipelineIsNeverAboveTheSerialOne, ()) {
  const Gpu gpu = example::amd_node().gpu;
  MatmulTile tile{*rc::gen::inRange(1, 33) * 16, *rc::gen::inRange(1, 33) * 16, 64,
                  *rc::gen::element(1, 2, 4, 8, 16), Pipeline::overlapped};
  const double overlapped = step_ns(gpu, DType::fp16, tile);
  tile.pipeline = Pipeline::serial;
  RC_ASSERT(overlapped <= step_ns(gpu, DType::fp16, tile));
}

}  // namespace
}  // namespace tritax
