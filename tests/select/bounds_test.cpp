// Lower bounds and round counts of schedules whose answers are known.
#include "model/select/bounds.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "model/cost/matmul_power.hpp"
#include "model/schedule/builder.hpp"
#include "tests/workloads/gemm_all_scatter.hpp"

namespace tritax {
namespace {

GemmKnobs paper_knobs(std::int32_t tile_n) {
  GemmKnobs knobs;
  knobs.tile_m = 256;
  knobs.tile_n = tile_n;
  knobs.tile_k = 64;
  return knobs;
}

Rounds rounds_of(const char* pattern, const GemmAllScatter& workload, const GemmKnobs& knobs) {
  const Machine machine = find_machine("mi300x-8");
  return gemm_rounds(build(pattern, workload, machine, knobs), machine);
}

// The wave counts behind the ranking of arXiv:2511.12500 §5.2: N = 4608 on 8 GPUs with tiles of 256x64.
TEST(GemmRounds, OfThePaperShapesAreOneOnAllUnitsAndTwoBesideTheCommunication) {
  const GemmAllScatter wide{8192, 4608, 36864, DType::fp16, 8};
  const Rounds fused = rounds_of("fused-sequential", wide, paper_knobs(64));
  EXPECT_EQ(fused.tiles, 288);
  EXPECT_EQ(fused.rounds, 1);
  EXPECT_EQ(fused.workers, 304);  // of the grid; 16 of them have no tile
  EXPECT_DOUBLE_EQ(fused.fill(), 288.0 / 304);
  GemmKnobs split = paper_knobs(64);
  split.gemm_cus = 256;
  split.comm_cus = 48;
  const Rounds specialised = rounds_of("workgroup-specialised", wide, split);
  EXPECT_EQ(specialised.tiles, 288);
  EXPECT_EQ(specialised.rounds, 2);
  EXPECT_EQ(specialised.workers, 256);
  EXPECT_EQ(specialised.senders, 48);
  EXPECT_DOUBLE_EQ(specialised.fill(), 288.0 / 512);

  const GemmAllScatter narrow{8192, 3584, 14336, DType::fp16, 8};
  EXPECT_EQ(rounds_of("workgroup-specialised", narrow, split).tiles, 224);
  EXPECT_EQ(rounds_of("workgroup-specialised", narrow, split).rounds, 1);
}

// 64 rows of 32 columns a GPU are few tiles, and K is deep.
TEST(GemmRounds, OfASplitKCountTilesOfTheResultAndPartsOfKApart) {
  const GemmAllScatter workload{64, 64, 1000000, DType::fp16, 2};
  const Machine machine = find_machine("mi300x-8");
  const Schedule schedule = build("library", workload, machine, {});
  const Rounds rounds = gemm_rounds(schedule, machine);
  const std::int64_t rows = (64 + rounds.tile_m - 1) / rounds.tile_m;
  const std::int64_t cols = (32 + rounds.tile_n - 1) / rounds.tile_n;
  EXPECT_EQ(rounds.tiles, rows * cols);
  EXPECT_GT(rounds.parts, 1);
  std::int64_t matmuls = 0;
  for (const Op& op : schedule.ops) matmuls += op.kind == OpKind::matmul;
  EXPECT_EQ(rounds.products(), matmuls / 2);  // of one of the two GPUs
  EXPECT_DOUBLE_EQ(rounds.fill(), static_cast<double>(rounds.products()) / machine.gpu.cu_count());
}

TEST(GemmRounds, CountTheBytesThatARankSends) {
  const GemmAllScatter workload{8192, 4608, 36864, DType::fp16, 8};
  for (const char* pattern :
       {"bulk-synchronous", "producer-consumer", "fused-sequential", "workgroup-specialised"}) {
    EXPECT_DOUBLE_EQ(rounds_of(pattern, workload, paper_knobs(64)).sent_bytes, egress_bytes(workload, 0))
        << pattern;
  }
}

TEST(GemmRounds, CountWhatCopyEnginesSend) {
  ScheduleBuilder builder("copies", 2);
  const std::int16_t x = builder.buffer({"X", DType::fp16, 64, 32, 64, 32});
  builder.host_copy(0, 1, x, {0, 0, 64, 32}, 1, x, 0, 0, 0);
  builder.host_copy(1, 1, x, {0, 0, 32, 32}, 0, x, 0, 0, 1);
  EXPECT_DOUBLE_EQ(gemm_rounds(builder.finish(), find_machine("mi300x-8")).sent_bytes, 64 * 32 * 2);
}

TEST(TimeBound, OfTheWireIsTheBytesOverTheEgressRate) {
  const Machine machine = find_machine("mi300x-8");
  const GemmAllScatter workload{8192, 4608, 1024, DType::fp16, 8};
  const Schedule schedule = build("fused-sequential", workload, machine, paper_knobs(64));
  const TimeBound bound = time_bound(schedule, machine, build_topology(machine, 8));
  EXPECT_NEAR(bound.wire_ns, egress_bytes(workload, 0) / machine.fabric.store_egress_gb_per_s, 1e-6);
}

// One full round keeps every unit busy for exactly one tile at the clock under full load.
TEST(TimeBound, OfAFullRoundIsOneTileAtTheLoadClock) {
  Machine machine = find_machine("mi300x-8");
  machine.gpu.matmul_spread = 0;  // with a spread, tiles may take less
  const GemmAllScatter workload{304 * 128, 128, 4096, DType::fp16, 1};
  GemmKnobs knobs = paper_knobs(128);
  knobs.tile_m = 128;
  knobs.tile_k = 128;
  const Schedule schedule = build("fused-sequential", workload, machine, knobs);
  const double tile_ns = matmul_cost(machine.gpu, machine.interpreter, DType::fp16,
                                     {128, 128, 128, 8, Pipeline::serial}, 128, 128, 4096)
                             .compute_ns;
  EXPECT_NEAR(time_bound(schedule, machine, build_topology(machine, 1)).compute_ns, tile_ns, 1e-6 * tile_ns);
}

// A tail of few tiles runs faster than a full round, but not faster than the boost clock.
TEST(TimeBound, OfATailLiesBetweenTheBoostClockAndAFullRound) {
  const Machine machine = find_machine("mi300x-8");
  const GemmKnobs knobs = paper_knobs(256);
  const auto compute_ns = [&](std::int64_t tiles) {
    const GemmAllScatter workload{tiles * 256, 256, 4096, DType::fp16, 1};
    const Schedule schedule = build("fused-sequential", workload, machine, knobs);
    return time_bound(schedule, machine, build_topology(machine, 1)).compute_ns;
  };
  const double round = compute_ns(304);
  const double one_more = compute_ns(305);
  const double boost = machine.gpu.boost_clock_ghz / machine.gpu.rate(DType::fp16).load_clock_ghz;
  EXPECT_GT(one_more, round);
  EXPECT_LT(one_more, 2 * round);
  EXPECT_NEAR(compute_ns(1), round / boost, 1e-6 * round);
}

// Of equal tiles on all units at once: no faster than the light clock, and no slower than at the clock f that
// leaves their draw P f^3 = 1.
TEST(TimeBound, OfAFullRoundWithKnownEnergiesLiesBetweenTheLightClockAndThePowerLimit) {
  const Machine machine = find_machine("h200-4");
  const MatrixRate& rate = machine.gpu.rate(DType::fp16);
  for (const std::int32_t tile_n : {16, 64, 128, 256}) {
    const GemmAllScatter workload{machine.gpu.cu_count() * 128, tile_n, 4096, DType::fp16, 1};
    GemmKnobs knobs = paper_knobs(tile_n);
    knobs.tile_m = 128;
    const Schedule schedule = build("fused-sequential", workload, machine, knobs);
    const MatmulCost cost = matmul_cost(machine.gpu, machine.interpreter, DType::fp16,
                                        schedule.kernels[0].tile, 128, tile_n, 4096);
    const double clk = cost.compute_ns * rate.load_clock_ghz;
    const double draw = machine.gpu.cu_count() * matmul_draw(machine.gpu, DType::fp16, cost) / clk;
    const double ghz = std::min(rate.light_clock_ghz, std::cbrt(1 / draw));
    // A port's part of the spread and a workgroup's own add.
    const double fastest = 1 + std::sqrt(3.0) * machine.gpu.matmul_spread / std::sqrt(0.8 * 0.8 + 0.2 * 0.2);
    const double bound_ns = time_bound(schedule, machine, build_topology(machine, 1)).compute_ns;
    EXPECT_GE(bound_ns, (1 - 1e-9) * clk / (fastest * rate.light_clock_ghz)) << tile_n;
    EXPECT_LE(bound_ns, (1 + 1e-9) * clk / (fastest * ghz)) << tile_n;
  }
}

TEST(TimeBound, CountsTheHostProgram) {
  const Machine machine = find_machine("mi300x-8");
  ScheduleBuilder builder("hosts only", 2);
  for (int rank = 0; rank < 2; ++rank) {
    builder.host(rank, HostOpKind::barrier);
    builder.host(rank, HostOpKind::device_synchronize);
    builder.host(rank, HostOpKind::barrier);
  }
  const TimeBound bound = time_bound(builder.finish(), machine, build_topology(machine, 2));
  EXPECT_DOUBLE_EQ(bound.total_ns, 2 * machine.host.barrier_ns + machine.host.synchronize_ns);
}

TEST(TimeBound, LeavesOutKernelsThatNobodyLaunches) {
  const Machine machine = find_machine("mi300x-8");
  ScheduleBuilder builder("idle", 2);
  const std::int16_t c = builder.buffer({"C", DType::fp16, 4096, 4096, 256, 256});
  Kernel kernel;
  kernel.name = "never launched";
  builder.workgroup(builder.kernel(kernel));
  builder.copy(c, {0, 0, 4096, 4096}, 1, c, 0, 0, 0);
  const TimeBound bound = time_bound(builder.finish(), machine, build_topology(machine, 2));
  EXPECT_EQ(bound.total_ns, 0);
  EXPECT_EQ(bound.wire_ns, 0);
}

}  // namespace
}  // namespace tritax
