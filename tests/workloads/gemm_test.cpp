// A GEMM on one GPU: every way to share it out is sound, right on sizes that nothing divides, and moves what
// its decomposition says.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "model/core/error.hpp"
#include "model/parts/shared_gemm.hpp"
#include "model/schedule/check.hpp"
#include "model/select/select_by_grid_model.hpp"
#include "model/workloads/gemm/workload.hpp"
#include "sim/functional.hpp"
#include "sim/simulate.hpp"
#include "tests/workloads/partial_sums.hpp"

namespace tritax {
namespace {

namespace sums = partial_sums_test;

Problem gemm_problem(std::int64_t m, std::int64_t n, std::int64_t k, DType dtype) {
  Problem problem = problem_of(gemm());
  problem.values.give("m", m);
  problem.values.give("n", n);
  problem.values.give("k", k);
  problem.values.give("dtype", static_cast<std::int64_t>(dtype));
  complete_problem(problem, "test");
  return problem;
}

// So few compute units that there are full waves and a last one.
Machine machine_of_dies(int dies, int units) {
  Machine machine = find_machine("mi300x-8");
  machine.gpu.xcds = dies;
  machine.gpu.cus_per_xcd = units;
  return machine;
}

Schedule gemm_built(std::string_view pattern, const Problem& problem, const Machine& machine,
                    const Values& knobs) {
  return sums::built(find_pattern(gemm(), pattern, "test"), problem, machine, knobs);
}

Values any_knobs(const Machine& machine) {
  Values knobs(gemm().knobs);
  const auto give = [&](std::string_view knob, int low, int high) { knobs.give(knob, between(low, high)); };
  knobs.give("tile_m", 16 * between(1, 4));
  knobs.give("tile_n", 16 * between(1, 4));
  knobs.give("tile_k", 16 * between(1, 2));
  if (coin()) give("grid", 1, machine.gpu.cu_count());
  give("split", 1, 9);
  give("policy", 0, kPolicies - 1);
  give("sharers", 0, 1);
  give("fixup", 0, 1);
  give("groups", 1, 8);
  give("group_m", 1, 4);
  give("xcd_remap", 0, 1);
  give("lock", 0, 2);
  give("launch", 0, 1);
  give("host_barriers", 0, 1);
  return knobs;
}

RC_GTEST_PROP(Gemm, IsSoundAndRightOnRaggedShapes, ()) {
  const Machine machine = machine_of_dies(between(1, 4), between(1, 7));
  const Problem asked = gemm_problem(between(1, 200), between(1, 200), between(1, 150),
                                     static_cast<DType>(between(0, kDTypeCount - 1)));
  const Values knobs = any_knobs(machine);
  for (const Pattern& pattern : gemm().patterns) {
    const std::string wrong = sums::what_is_wrong(pattern, asked, machine, knobs);
    if (!wrong.empty()) RC_LOG() << wrong;
    RC_ASSERT(wrong.empty());
    const Schedule schedule = build_schedule(pattern, asked, machine, resolved_knobs(asked, machine, knobs));
    const std::vector<Finding> findings = check_schedule_on(schedule, machine);
    if (!findings.empty())
      RC_LOG() << pattern.name << ": " << findings.front().where << ": " << findings.front().message;
    RC_ASSERT(findings.empty());
  }
}

class GemmDType : public testing::TestWithParam<DType> {};

TEST_P(GemmDType, IsRightWithPartialSumsAndWithAtomics) {
  const Machine machine = machine_of_dies(2, 4);
  const Problem asked = gemm_problem(90, 170, 130, GetParam());
  for (const Fixup fixup : {Fixup::partials, Fixup::atomics}) {
    Values knobs = sums::small_tiles(gemm());
    knobs.give("fixup", static_cast<std::int64_t>(fixup));
    for (const Pattern& pattern : gemm().patterns)
      EXPECT_EQ(sums::what_is_wrong(pattern, asked, machine, knobs), "");
  }
}

INSTANTIATE_TEST_SUITE_P(DTypes, GemmDType,
                         testing::Values(DType::fp32, DType::fp16, DType::bf16, DType::fp8, DType::fp64));

TEST(Gemm, KeepsPartialSumsOfFp64InFp64) {
  const Machine machine = machine_of_dies(2, 4);
  const Values knobs = sums::small_tiles(gemm());
  for (const DType dtype : {DType::fp64, DType::fp16}) {
    const Schedule schedule = gemm_built("stream-k", gemm_problem(90, 170, 130, dtype), machine, knobs);
    const auto partials = std::find_if(schedule.buffers.begin(), schedule.buffers.end(),
                                       [](const Buffer& buffer) { return buffer.name == "partials"; });
    ASSERT_NE(partials, schedule.buffers.end());
    EXPECT_EQ(partials->dtype, accumulator_of(dtype));
    EXPECT_EQ(execute_functionally(schedule, machine, 7).right_within, dtype == DType::fp64 ? 1e-12 : 1e-6);
  }
}

// By the same law at the same clock: a quarter of the rate of fp32 takes four times as long, on units that
// nothing else holds up.
TEST(Gemm, TakesAsLongInFp64AsItsRateSays) {
  Machine machine = find_machine("h200-4");
  MatrixRate& wide = machine.gpu.matrix[static_cast<std::size_t>(DType::fp64)];
  const Problem problem = gemm_problem(1408, 1536, 8192, DType::fp64);  // 132 tiles
  Values knobs(gemm().knobs);
  for (const auto& [knob, value] : {std::pair{"tile_m", 128}, {"tile_n", 128}, {"tile_k", 16}})
    knobs.give(knob, value);
  const Pattern& pattern = find_pattern(gemm(), "data-parallel", "test");
  const auto time_ns = [&] {
    const Values all = resolved_knobs(problem, machine, knobs);
    return simulate(build_schedule(pattern, problem, machine, all), machine).kernels_ns;
  };
  const double before = time_ns();
  wide.flop_per_clk_per_cu /= 4;
  EXPECT_NEAR(time_ns() / before, 4, 0.05 * 4);
}

struct Traffic {
  int stored = 0;  // partial sums
  int added = 0;
  int whole = 0;  // tiles of C that are stored
  int atomic = 0;
  double elements = 0;  // of partial sums that are stored
};

Traffic traffic_of(const Schedule& schedule) {
  Traffic traffic;
  for (const Op& op : schedule.ops) {
    const bool of_c = op.buffer == schedule.result_buffer;
    if (op.kind == OpKind::store) ++(of_c ? traffic.whole : traffic.stored);
    if (op.kind == OpKind::store && !of_c)
      traffic.elements += static_cast<double>(op.rect.rows) * op.rect.cols;
    if (op.kind == OpKind::reduce) ++traffic.added;
    if (op.kind == OpKind::atomic_add) ++traffic.atomic;
  }
  return traffic;
}

TEST(Gemm, StoresAndAddsOnePartialSumASeam) {
  const Machine machine = machine_of_dies(2, 4);
  const Problem asked =
      gemm_problem(5 * 32, 4 * 32, 9 * 32, DType::fp16);  // 20 tiles of 9 iterations on 8 units
  const Values knobs = sums::small_tiles(gemm());
  const auto expect = [&](std::string_view pattern, const Decomposition& split) {
    SCOPED_TRACE(pattern);
    const Traffic traffic = traffic_of(gemm_built(pattern, asked, machine, knobs));
    EXPECT_EQ(traffic.stored, seams_of(split));
    EXPECT_EQ(traffic.added, seams_of(split));
    EXPECT_EQ(traffic.whole, 20);
    EXPECT_EQ(traffic.elements, 32. * 32. * static_cast<double>(seams_of(split)));
  };
  const TiledGemm tiles{20, 9};
  expect("data-parallel", data_parallel(tiles));
  expect("persistent", data_parallel(tiles));
  expect("work-stealing", data_parallel(tiles));
  expect("fixed-split", fixed_split(tiles, 2));
  expect("stream-k", stream_k(tiles, 8));
  expect("one-tile-stream-k", one_tile_stream_k(tiles, 8));
  expect("two-tile-stream-k", two_tile_stream_k(tiles, 8));
  expect("triton-stream-k", triton_stream_k(tiles, 8));
  EXPECT_GT(seams_of(two_tile_stream_k(tiles, 8)), 0);
}

TEST(Gemm, AddsEveryPartOfASharedTileOntoCAndStoresTheOthers) {
  const Machine machine = machine_of_dies(2, 4);
  const Problem asked = gemm_problem(5 * 32, 4 * 32, 9 * 32, DType::fp16);
  Values knobs = sums::small_tiles(gemm());
  knobs.give("fixup", static_cast<std::int64_t>(Fixup::atomics));
  const Schedule schedule = gemm_built("two-tile-stream-k", asked, machine, knobs);
  const Decomposition split = two_tile_stream_k({20, 9}, 8);
  int shared = 0;
  for (std::int64_t tile = 0; tile < split.split_tiles; ++tile) shared += sharers_of(split, tile).peers() > 0;
  const Traffic traffic = traffic_of(schedule);
  EXPECT_EQ(traffic.atomic, shared + static_cast<int>(seams_of(split)));
  EXPECT_EQ(traffic.whole, 20 - shared);
  EXPECT_EQ(schedule.kernels.size(), 2U);
  EXPECT_EQ(schedule.kernels.front().name, "clear");
}

TEST(Gemm, MultipliesTheSameWithStreamKOnAMultipleOfTheTilesAsWithAFixedSplit) {
  const Machine machine = machine_of_dies(2, 8);
  const Problem asked = gemm_problem(64, 64, 224, DType::bf16);  // 4 tiles of 7 iterations
  Values knobs = sums::small_tiles(gemm());
  knobs.give("grid", 12);
  knobs.give("split", 3);
  const auto parts = [&](std::string_view pattern) {
    std::vector<std::array<int, 4>> all;
    for (const Op& op : gemm_built(pattern, asked, machine, knobs).ops) {
      if (op.kind == OpKind::matmul) all.push_back({op.rect.row, op.rect.col, op.k_begin, op.k_end});
    }
    std::sort(all.begin(), all.end());
    return all;
  };
  EXPECT_EQ(parts("stream-k"), parts("fixed-split"));
}

double gemm_time_us(std::string_view pattern, const Problem& asked, const Machine& machine,
                    const Values& knobs) {
  return simulate(gemm_built(pattern, asked, machine, knobs), machine).makespan_ns / 1e3;
}

// 160 tiles on 132 compute units: the second wave is four fifths empty.
TEST(Gemm, TakesLessTimeInSharesThanInTilesWhereTheLastWaveIsAlmostEmpty) {
  const Machine machine = find_machine("h100-4");
  Values knobs(gemm().knobs);
  const Problem bad = gemm_problem(2048, 1280, 8192, DType::bf16);
  knobs.give("tile_m", 128);
  knobs.give("tile_n", 128);
  const double whole = gemm_time_us("persistent", bad, machine, knobs);
  EXPECT_LT(gemm_time_us("stream-k", bad, machine, knobs), 0.9 * whole);
  // Eight tiles of great depth, each in four parts.
  const Problem deep = gemm_problem(256, 512, 16384, DType::bf16);
  knobs.give("split", 4);
  EXPECT_LT(gemm_time_us("fixed-split", deep, machine, knobs),
            0.7 * gemm_time_us("persistent", deep, machine, knobs));
}

TEST(Gemm, RefusesAGridThatIsNotResidentAndNamesTheKnob) {
  Values knobs = sums::small_tiles(gemm());
  knobs.give("grid", 60000);
  try {
    gemm_built("stream-k", gemm_problem(512, 512, 512, DType::fp16), find_machine("h100-4"), knobs);
    FAIL() << "is built";
  } catch (const UserError& error) {
    EXPECT_EQ(std::string(error.what()).rfind("grid: 60000 workgroups", 0), 0U) << error.what();
  }
}

// The three shapes of arXiv:2301.03598 Fig. 8, here on an H100 and simulated.
TEST(Gemm, FindsTheGridModelOfSimulatedRunsAndWithItAGridThatIsAlmostTheBest) {
  const Machine machine = find_machine("h100-4");
  const Pattern& pattern = find_pattern(gemm(), "stream-k", "test");
  struct Best {
    std::int64_t tiles, iterations;
    std::map<std::int64_t, double> time_of_grid;
  };
  std::vector<GridRun> runs;
  std::vector<Best> shapes;
  for (const auto& [m, n, k] : {std::array{256, 3584, 8192}, {1024, 1024, 1024}, {128, 128, 16384}}) {
    const Problem asked = gemm_problem(m, n, k, DType::bf16);
    shapes.emplace_back();
    for (const std::int64_t grid : {1, 2, 4, 8, 16, 32, 56, 64, 96, 132}) {
      Values knobs(gemm().knobs);
      for (const char* side : {"tile_m", "tile_n"}) knobs.give(side, 128);
      knobs.give("grid", grid);
      const Values resolved = resolved_knobs(asked, machine, knobs);
      const Schedule schedule = build_schedule(pattern, asked, machine, resolved);
      const GridShares shares = *grid_shares_of(schedule);
      runs.push_back({shares.tiles, shares.iterations, shares.grid, simulate(schedule, machine).makespan_ns});
      shapes.back().tiles = runs.back().tiles;
      shapes.back().iterations = runs.back().iterations;
      shapes.back().time_of_grid[grid] = runs.back().time_ns;
    }
  }
  const GridFit fit = fit_grid_model(runs);
  RecordProperty("median_error", std::to_string(fit.median_error));
  EXPECT_GT(fit.model.c, 0);
  EXPECT_GT(fit.model.d, 0);
  EXPECT_LT(fit.median_error, 0.15);
  for (const Best& of : shapes) {
    const auto by_model = [&](const auto& x, const auto& y) {
      return fit.model.time_ns(of.tiles, of.iterations, x.first) <
             fit.model.time_ns(of.tiles, of.iterations, y.first);
    };
    const auto by_time = [](const auto& x, const auto& y) { return x.second < y.second; };
    const double picked = std::min_element(of.time_of_grid.begin(), of.time_of_grid.end(), by_model)->second;
    const double best = std::min_element(of.time_of_grid.begin(), of.time_of_grid.end(), by_time)->second;
    EXPECT_LT(picked, 1.2 * best) << of.tiles << " tiles of " << of.iterations;
  }
}

// Operands that the L2 holds come from memory once, though workgroups read them at different places of K.
TEST(Gemm, FetchesOperandsAboutOnceInSharesToo) {
  const Machine machine = find_machine("h100-4");
  const Problem asked = gemm_problem(1280, 1280, 4096, DType::bf16);
  Values knobs(gemm().knobs);
  for (const char* side : {"tile_m", "tile_n"}) knobs.give(side, 128);
  const auto read_bytes = [&](std::string_view pattern) {
    double bytes = 0;
    const SimulationResult result = simulate(gemm_built(pattern, asked, machine, knobs), machine);
    for (const CacheRow& row : result.caches) {
      if (row.operation == OpKind::matmul) bytes += row.traffic.hbm_read_bytes;
    }
    return bytes;
  };
  const double operands = 2. * (1280 + 1280) * 4096;
  EXPECT_LT(read_bytes("stream-k"), 1.3 * operands);
  EXPECT_GT(read_bytes("stream-k"), 0.7 * operands);
  EXPECT_LT(read_bytes("persistent"), 1.01 * operands);
}

}  // namespace
}  // namespace tritax
