#include "model/parts/levels/levels.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "model/core/error.hpp"
#include "model/cost/kernel_costs.hpp"
#include "model/cost/matmul_cost.hpp"
#include "model/machine/machine.hpp"

namespace tritax {
namespace {

Levels lowered(const std::string& name, DType dtype, const MatmulTile& tile) {
  const Machine machine = find_machine(name);
  return lower_matmul(machine.gpu, machine.interpreter, dtype, tile);
}

std::string refusal(const std::string& name, DType dtype, const MatmulTile& tile) {
  try {
    lowered(name, dtype, tile);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

// arXiv:2503.14985: the example of the paper, and the test of the pass itself.
TEST(WaveTiles, AreThoseThatMlTritonPublishes) {
  const WaveTiles large = gemm_wave_tiles(256, 256, 32);
  EXPECT_EQ(large.waves_m, 8);
  EXPECT_EQ(large.waves_n, 4);
  EXPECT_EQ(large.m, 32);
  EXPECT_EQ(large.n, 64);
  const WaveTiles small = gemm_wave_tiles(128, 128, 4);
  EXPECT_EQ(small.m, 64);
  EXPECT_EQ(small.n, 64);
}

// 16 rows over 4 waves along m would be 4 rows each, fewer than an instruction has.
TEST(WaveTiles, OfFewRowsLieSideBySide) {
  const WaveTiles tiles = gemm_wave_tiles(16, 1024, 32);
  EXPECT_EQ(tiles.waves_m, 1);
  EXPECT_EQ(tiles.waves_n, 32);
  EXPECT_EQ(tiles.m, 8);
  EXPECT_EQ(tiles.tiles_m, 2);
  EXPECT_EQ(tiles.n, 32);
}

TEST(WaveTiles, OfAttentionSplitTheQueriesAlone) {
  const WaveTiles tiles = attention_wave_tiles(128, 64, 128, 8);
  EXPECT_EQ(tiles.m, 16);
  EXPECT_EQ(tiles.n, 64);
  EXPECT_EQ(tiles.d, 128);
  EXPECT_EQ(tiles.waves(), 8);
  EXPECT_THROW(attention_wave_tiles(100, 64, 128, 8), UserError);
}

TEST(WaveTiles, ThatWavesDoNotShareOutAreRefused) {
  try {
    gemm_wave_tiles(256, 192, 16);
    FAIL() << "6 x 3 tiles by 16 waves";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("6 x 3 tiles, which 16 waves"));
  }
}

// What the rule shares out covers every element once.
RC_GTEST_PROP(WaveTiles, CoverTheTileOnce, ()) {
  const std::int32_t m = 8 << *rc::gen::inRange(0, 6);
  const std::int32_t n = 16 << *rc::gen::inRange(0, 5);
  const std::int32_t waves = 1 << *rc::gen::inRange(0, 6);
  WaveTiles tiles;
  try {
    tiles = gemm_wave_tiles(m, n, waves);
  } catch (const UserError&) {
    RC_DISCARD("not shared out");
  }
  std::vector<int> covered(static_cast<std::size_t>(m) * static_cast<std::size_t>(n), 0);
  for (std::int32_t wave = 0; wave < waves; ++wave) {
    const Rect rect = wave_rect(tiles, wave, m, n);
    for (std::int32_t row = rect.row; row < rect.row + rect.rows; ++row) {
      for (std::int32_t col = rect.col; col < rect.col + rect.cols; ++col) {
        ++covered[static_cast<std::size_t>(row) * static_cast<std::size_t>(n) +
                  static_cast<std::size_t>(col)];
      }
    }
  }
  RC_ASSERT(std::all_of(covered.begin(), covered.end(), [](int times) { return times == 1; }));
}

// arXiv:2503.14985, pass match-target-size: 32×32 · 32×64 of fp16 are 4 · 4 · 2 products of 8×16×16.
TEST(InstructionTiles, Of32By64Fp16OnXeHpcAre32Dots) {
  const Levels levels = lowered("pvc-1550", DType::fp16, {256, 256, 32, 32, Pipeline::overlapped});
  ASSERT_EQ(levels.products.size(), 1U);
  const WaveProduct& product = levels.products.front();
  EXPECT_EQ(product.m, 32);
  EXPECT_EQ(product.n, 64);
  EXPECT_EQ(product.instruction.m, 8);
  EXPECT_EQ(product.instruction.n, 16);
  EXPECT_EQ(product.instruction.k, 16);
  EXPECT_EQ(product.instructions(), 32);
  EXPECT_EQ(levels.prefetch_distance, 3);
  EXPECT_EQ(levels.lds_bytes, 0);
  // 32×32 of A in one two-dimensional load, 32×64 of B in two.
  EXPECT_EQ(levels.moves.reads_a, 1);
  EXPECT_EQ(levels.moves.reads_b, 2);
  // Accumulators 128, A 32, B 64 and counters 24: the large register mode, all of it in use by 32 waves.
  EXPECT_EQ(levels.registers.total(), 248);
}

// Cycles between two on a SIMD, ROCm/rocm-libraries shared/origami; NVIDIA: data sheet rates.
TEST(MatrixInstructions, IssueAsOftenAsVendorsSay) {
  const auto clk = [](const std::string& machine, DType dtype, std::int32_t edge) {
    const Gpu gpu = find_machine(machine).gpu;
    return interval_clk(gpu, dtype, matrix_instruction_for(gpu, dtype, edge, edge));
  };
  EXPECT_EQ(clk("mi300x-8", DType::fp16, 32), 32);
  EXPECT_EQ(clk("mi300x-8", DType::bf16, 16), 16);
  EXPECT_EQ(clk("mi300x-8", DType::fp8, 32), 32);
  EXPECT_EQ(clk("mi300x-8", DType::fp32, 32), 64);
  EXPECT_EQ(clk("mi300x-8", DType::fp32, 16), 32);
  EXPECT_EQ(clk("mi355x-8", DType::bf16, 32), 32);
  EXPECT_EQ(clk("mi355x-8", DType::bf16, 16), 16);
  EXPECT_EQ(clk("mi355x-8", DType::fp8, 32), 64);
  EXPECT_EQ(clk("mi355x-8", DType::fp8, 16), 32);
  EXPECT_EQ(clk("mi250x-4", DType::fp16, 32), 64);
  EXPECT_EQ(clk("mi250x-4", DType::bf16, 16), 32);
  EXPECT_EQ(clk("mi300x-8", DType::fp64, 16), 32);
  EXPECT_EQ(clk("mi355x-8", DType::fp64, 16), 64);
  EXPECT_EQ(clk("a100-8", DType::fp64, 8), 16);
  EXPECT_EQ(clk("a100-8", DType::fp16, 64), 8);
  EXPECT_EQ(clk("pvc-1550", DType::fp16, 32), 8);
  EXPECT_EQ(clk("h200-8", DType::bf16, 256), 128);  // 64×256×16 by a group of four waves
}

TEST(MatrixInstructions, PadAsLittleAsTheyCan) {
  const Gpu gpu = find_machine("mi300x-8").gpu;
  EXPECT_EQ(matrix_instruction_for(gpu, DType::fp16, 64, 64).m, 32);
  EXPECT_EQ(matrix_instruction_for(gpu, DType::fp16, 48, 64).m, 16);
  const Gpu hopper = find_machine("h200-8").gpu;
  EXPECT_EQ(matrix_instruction_for(hopper, DType::fp16, 64, 96).n, 96);
  EXPECT_EQ(matrix_instruction_for(hopper, DType::fp16, 64, 320).n, 160);
}

TEST(Levels, OfMi300xGoThroughRegistersIntoLds) {
  const Levels levels = lowered("mi300x-8", DType::fp16, {256, 256, 64, 4, Pipeline::serial});
  EXPECT_EQ(levels.feed, Feed::through_registers);
  EXPECT_EQ(levels.waves.m, 128);
  EXPECT_EQ(levels.waves.n, 128);
  EXPECT_EQ(levels.products.front().instructions(), 4 * 4 * 8);
  EXPECT_EQ(levels.lds_bytes, 65536);
  EXPECT_EQ(levels.moves.loads_a, 8);  // 32 KiB by 4 waves of 64 lanes, 16 bytes each
  EXPECT_EQ(levels.moves.writes_b, 8);
  EXPECT_EQ(levels.moves.reads_a, 16);  // 16 KiB of the wave's rows
  EXPECT_EQ(levels.registers.accumulators, 256);
  EXPECT_EQ(levels.registers.fragments, 2 * 32);
  EXPECT_EQ(levels.registers.in_flight, 64);
}

TEST(Levels, OfHopperCountGroupsOfFourWaves) {
  const Levels levels = lowered("h200-8", DType::bf16, {128, 256, 64, 8, Pipeline::overlapped});
  EXPECT_EQ(levels.feed, Feed::by_copy_engine);
  EXPECT_EQ(levels.waves_in_group, 4);
  EXPECT_EQ(levels.waves.waves(), 2);
  EXPECT_EQ(levels.moves.reads_a, 0);
  EXPECT_GE(levels.stages, 2);
}

TEST(Levels, OfAmpereCopyIntoLds) {
  const Levels levels = lowered("a100-8", DType::fp16, {128, 128, 32, 4, Pipeline::overlapped});
  EXPECT_EQ(levels.feed, Feed::by_copies);
  EXPECT_EQ(levels.products.front().instructions(), 4 * 8 * 4);
  EXPECT_EQ(levels.prefetch_distance, levels.stages - 1);
}

// Waves load the operands of fp64 themselves, with as many stages as the cost law has.
TEST(Levels, InFp64HaveTheStagesOfWavesThatLoad) {
  const MatmulTile tile{64, 64, 16, 4, Pipeline::overlapped};
  for (const char* name : {"a100-8", "h200-8"}) {
    const Machine machine = find_machine(name);
    for (const KernelCosts& costs : {machine.interpreter, CostTable(machine)[KernelProfile::vendor]}) {
      const Levels levels = lower_matmul(machine.gpu, costs, DType::fp64, tile);
      EXPECT_EQ(levels.feed, Feed::by_copies) << name;
      EXPECT_EQ(levels.stages, kMostStagesOfWaves) << name;
      EXPECT_EQ(levels.stages, operand_stages(machine.gpu, costs, DType::fp64, tile, 0)) << name;
    }
    EXPECT_GT(lower_matmul(machine.gpu, machine.interpreter, DType::fp16, tile).stages, kMostStagesOfWaves);
  }
}

TEST(Levels, ThatDoNotFitAreRefusedWithTheReason) {
  EXPECT_THAT(refusal("mi300x-8", DType::fp16, {256, 256, 64, 1, Pipeline::serial}),
              testing::HasSubstr("registers"));
  EXPECT_THAT(refusal("mi300x-8", DType::fp16, {256, 256, 128, 4, Pipeline::serial}),
              testing::HasSubstr("131072 bytes of LDS, and a workgroup has 65536"));
  EXPECT_THAT(refusal("h200-8", DType::fp32, {64, 64, 32, 4, Pipeline::overlapped}),
              testing::HasSubstr("no matrix instruction"));
  EXPECT_THAT(refusal("pvc-1550", DType::fp16, {256, 256, 32, 8, Pipeline::overlapped}),
              testing::HasSubstr("accumulators"));
}

// Of a tile that instructions and waves divide, one wave a SIMD, both laws say the same.
TEST(WaveCost, IsThatOfTheTileWhereNothingIsPadded) {
  for (const char* name : {"mi300x-8", "mi325x-8", "mi355x-8", "mi250x-4"}) {
    const Machine machine = find_machine(name);
    for (const Pipeline pipeline : {Pipeline::serial, Pipeline::overlapped}) {
      const Levels levels =
          lower_matmul(machine.gpu, machine.interpreter, DType::fp16, {128, 128, 64, 4, pipeline});
      EXPECT_NEAR(wave_cost(machine.gpu, machine.interpreter, levels).clk,
                  tile_cost(machine.gpu, machine.interpreter, levels).clk, 1e-9)
          << name;
    }
  }
}

// Waves and instructions add padding and take none away.
RC_GTEST_PROP(WaveCost, IsNeverBelowTheMatrixWorkThatIsUseful, ()) {
  static const Machine machine = find_machine("mi300x-8");
  const MatmulTile tile{16 * *rc::gen::inRange(1, 17), 16 * *rc::gen::inRange(1, 17), 64,
                        1 << *rc::gen::inRange(0, 4), Pipeline::overlapped};
  Levels levels;
  try {
    levels = lower_matmul(machine.gpu, machine.interpreter, DType::bf16, tile);
  } catch (const UserError&) {
    RC_DISCARD("does not fit");
  }
  const MatrixRate& rate = machine.gpu.rate(DType::bf16);
  const double useful = 2.0 * tile.m * tile.n * tile.k / (rate.flop_per_clk_per_cu * rate.issue_efficiency);
  RC_ASSERT(wave_cost(machine.gpu, machine.interpreter, levels).clk >= useful * (1 - 1e-12));
}

TEST(AttendLevels, HaveTwoProducts) {
  const Machine machine = find_machine("mi300x-8");
  const MatmulTile tile{128, 64, 128, 4, Pipeline::serial};
  const Levels levels = lower_attend(machine.gpu, machine.interpreter, DType::fp16, tile);
  ASSERT_EQ(levels.products.size(), 2U);
  EXPECT_EQ(levels.products[0].m, 32);
  EXPECT_EQ(levels.products[0].n, 64);
  EXPECT_EQ(levels.products[0].k, 128);
  EXPECT_EQ(levels.products[1].n, 128);
  EXPECT_EQ(levels.products[1].k, 64);
  EXPECT_NEAR(wave_cost(machine.gpu, machine.interpreter, levels).clk,
              tile_cost(machine.gpu, machine.interpreter, levels).clk, 1e-9);
}

}  // namespace
}  // namespace tritax
