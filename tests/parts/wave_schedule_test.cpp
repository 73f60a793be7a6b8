// Wave schedules: the registers and LDS that they leave to a tile, and their costs.
#include "model/schedule/wave_schedule.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <string>

#include "model/core/error.hpp"
#include "model/cost/attend_cost.hpp"
#include "model/cost/matmul_step.hpp"
#include "model/parts/attend.hpp"
#include "model/parts/kernels.hpp"

namespace tritax {
namespace {

const Machine& read_once(const std::string& name) {
  static std::map<std::string, Machine> machines;
  const auto found = machines.find(name);
  return found != machines.end() ? found->second : machines.emplace(name, find_machine(name)).first->second;
}

MatmulTile tile_of(std::int32_t m, std::int32_t n, std::int32_t k, std::int32_t waves, Pipeline pipeline,
                   std::int32_t producers = 0) {
  return {m, n, k, waves, pipeline, producers};
}

Resources resources_on(const char* machine, const MatmulTile& tile) {
  const Machine& found = read_once(machine);
  return matmul_resources(found.gpu, found.interpreter, DType::bf16, tile);
}

std::string refusal_on(const char* machine, const MatmulTile& tile) {
  try {
    resources_on(machine, tile);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

double clocks_on(const char* machine, const MatmulTile& tile) {
  const Machine& found = read_once(machine);
  return matmul_step_clk(found.gpu, found.interpreter, found.gpu.rate(DType::bf16), 2, tile);
}

// Twelve waves have 131072 / 768 = 170 registers each, 168 in steps of 8. 256x256 by eight consumers takes
// 128 for sums, 2·24 for fragments of 128 + 64 rows and columns, and 24.
TEST(WaveSchedule, LeavesTheRegistersOfProducersToNobody) {
  const Resources half = resources_on("mi355x-8", tile_of(128, 256, 64, 8, Pipeline::producer_consumer));
  EXPECT_EQ(half.threads, 768);
  EXPECT_EQ(half.registers_per_thread, 64 + 32 + 24);
  const std::string refusal = refusal_on("mi355x-8", tile_of(256, 256, 64, 8, Pipeline::producer_consumer));
  EXPECT_NE(refusal.find("8 waves and 4 producers"), std::string::npos) << refusal;
  EXPECT_NE(refusal.find("needs 200 registers"), std::string::npos) << refusal;
  EXPECT_NE(refusal.find("only 168"), std::string::npos) << refusal;
}

TEST(WaveSchedule, OfProducersNeedsTwoStagesInLds) {
  const MatmulTile tile = tile_of(128, 256, 64, 8, Pipeline::producer_consumer);
  EXPECT_EQ(resources_on("mi355x-8", tile).lds_bytes, 2 * 384 * 128);
  EXPECT_NE(refusal_on("mi300x-8", tile).find("LDS"), std::string::npos);  // 96 of 64 KiB
}

// The largest tile of HipKittens by two waves a SIMD, 232 of 256 registers, and by one, 408 of 512. MI300X
// has room for one stage of operands, MI355X for two.
TEST(WaveSchedule, OfPingPongHasTwoWavesOnEverySimdAndInterleavedOne) {
  const MatmulTile two = tile_of(256, 256, 64, 8, Pipeline::ping_pong);
  const MatmulTile one = tile_of(256, 256, 64, 4, Pipeline::interleaved);
  for (const char* machine : {"mi300x-8", "mi355x-8"}) {
    const int stages = machine == std::string("mi355x-8") ? 2 : 1;
    EXPECT_EQ(resources_on(machine, two).registers_per_thread, 128 + 48 + 32 + 24);
    EXPECT_EQ(resources_on(machine, one).registers_per_thread, 256 + 64 + 64 + 24);
    EXPECT_EQ(resources_on(machine, two).lds_bytes, stages * 65536);
  }
  EXPECT_NE(refusal_on("mi300x-8", tile_of(256, 256, 64, 4, Pipeline::ping_pong)).find("use waves = 8"),
            std::string::npos);
  EXPECT_NE(refusal_on("mi300x-8", tile_of(256, 256, 64, 8, Pipeline::interleaved)).find("use waves = 4"),
            std::string::npos);
}

TEST(WaveSchedule, IsForGpusWhoseWavesFillTheLds) {
  for (const Pipeline pipeline : {Pipeline::ping_pong, Pipeline::interleaved, Pipeline::producer_consumer}) {
    EXPECT_NE(refusal_on("h100-4", tile_of(128, 128, 64, 8, pipeline)).find("by itself"), std::string::npos);
  }
  EXPECT_NE(refusal_on("mi355x-8", tile_of(64, 64, 32, 8, Pipeline::producer_consumer, 9)).find("17 waves"),
            std::string::npos);
}

// 2·128·256·64 flops at 0.94 of 4096 a clock, and 8 waves that read 64 + 64 rows of 128 bytes at 256 a clock.
TEST(WaveSchedule, OfProducersReadsAndMultipliesInTurn) {
  const Gpu& gpu = read_once("mi355x-8").gpu;
  const MatrixRate& rate = gpu.rate(DType::bf16);
  const double products = 2.0 * 128 * 256 * 64 / (rate.flop_per_clk_per_cu * rate.issue_efficiency);
  const double reads = 8 * 128 * 128 / gpu.lds_bytes_per_clk;
  EXPECT_NEAR(clocks_on("mi355x-8", tile_of(128, 256, 64, 8, Pipeline::producer_consumer)), products + reads,
              1e-9);
  EXPECT_NEAR(clocks_on("mi355x-8", tile_of(128, 256, 64, 8, Pipeline::ping_pong)), products, 1e-9);
}

RC_GTEST_PROP(WaveSchedule, GivesNothingThatFreeWavesHaveNot, ()) {
  const auto pipeline =
      *rc::gen::element(Pipeline::ping_pong, Pipeline::interleaved, Pipeline::producer_consumer);
  const std::int32_t waves = *rc::gen::element(2, 4, 8), edges = *rc::gen::element(64, 128, 256);
  const std::int32_t producers =
      pipeline == Pipeline::producer_consumer ? *rc::gen::inRange(1, 16 - waves) : 0;
  MatmulTile tile =
      tile_of(edges, *rc::gen::element(64, 128, 256), *rc::gen::element(32, 64), waves, pipeline, producers);
  const bool fits = refusal_on("mi355x-8", tile).empty();
  if (fits && producers > 1) {
    tile.producers = producers - 1;
    RC_ASSERT(refusal_on("mi355x-8", tile).empty());
  }
  if (!fits && producers > 0 && producers < 16 - waves) {
    tile.producers = producers + 1;
    RC_ASSERT(!refusal_on("mi355x-8", tile).empty());
  }
  MatmulTile free = tile;
  free.pipeline = Pipeline::overlapped;
  RC_ASSERT(clocks_on("mi355x-8", tile) >= clocks_on("mi355x-8", free));
  const Machine& machine = read_once("mi355x-8");
  const MatmulTile heads = tile_of(edges, tile.n, 128, waves, pipeline, producers);
  const auto attend_ns = [&](const MatmulTile& of) {
    return attend_cost(machine.gpu, machine.interpreter, DType::bf16, of, {}, {edges, 128, 4096})
        .cost.compute_ns;
  };
  MatmulTile free_heads = heads;
  free_heads.pipeline = Pipeline::overlapped;
  RC_ASSERT(attend_ns(heads) >= attend_ns(free_heads));
}

// 128 queries of 128 columns by 64 keys on MI355X: products run for 4·128·64·128 / 4096 = 1024 clocks at the
// peak and are issued in 256; a wave's 512 clocks of exponentials and 768 of other vector work come in turn
// with that. One wave a SIMD also asks for its quarter of 32 KiB, writes it, and reads all of it: 48 KiB in
// pieces of 1 KiB, 4 clocks each.
TEST(WaveSchedule, OfAttentionIssuesProductsAndSoftmaxInTurn) {
  const Machine& machine = read_once("mi355x-8");
  const auto clocks = [&](std::int32_t waves, Pipeline pipeline) {
    const MatmulTile tile = tile_of(128, 64, 128, waves, pipeline);
    const AttendCost cost =
        attend_cost(machine.gpu, machine.interpreter, DType::bf16, tile, {}, {128, 128, 64});
    return cost.cost.compute_ns * machine.gpu.rate(DType::bf16).load_clock_ghz;
  };
  EXPECT_NEAR(clocks(8, Pipeline::overlapped), 512 + 768, 1e-6);
  EXPECT_NEAR(clocks(8, Pipeline::ping_pong), 256 + 512 + 768, 1e-6);
  EXPECT_NEAR(clocks(4, Pipeline::interleaved), 256 + 512 + 768 + 48 * 4, 1e-6);
  EXPECT_NEAR(clocks(8, Pipeline::producer_consumer), 512 + 768 + 8 * 32768 / 256.0, 1e-6);
}

TEST(WaveSchedule, OfAttentionTakesRegistersAndLdsOfProducers) {
  const Gpu& gpu = read_once("mi355x-8").gpu;
  const Resources free =
      attend_resources(gpu, DType::bf16, tile_of(128, 64, 128, 4, Pipeline::overlapped), false, "tile");
  const Resources roles = attend_resources(
      gpu, DType::bf16, tile_of(128, 64, 128, 4, Pipeline::producer_consumer), false, "tile");
  EXPECT_EQ(roles.threads, 2 * free.threads);
  EXPECT_EQ(roles.registers_per_thread, free.registers_per_thread);
  EXPECT_EQ(roles.lds_bytes, free.lds_bytes);
  EXPECT_THROW(attend_resources(gpu, DType::bf16, tile_of(256, 64, 256, 4, Pipeline::producer_consumer),
                                false, "tile"),
               UserError);
}

}  // namespace
}  // namespace tritax
