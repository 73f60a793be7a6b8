// The knobs that a search tries: legal, without duplicates, and only those that matter.
#include "model/select/candidates.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>

#include "model/core/error.hpp"
#include "model/schedule/shader_engines.hpp"

namespace tritax {
namespace {

constexpr GemmAllScatter kPaperShape{8192, 4608, 36864, DType::fp16, 8};

std::vector<Knobs> with_neighbours(const KnobSpace& space, const GemmAllScatter& workload) {
  std::vector<Knobs> all = coarse_candidates(space, workload);
  const std::vector<Knobs> near = neighbours(space, workload, all.front());
  all.insert(all.end(), near.begin(), near.end());
  return all;
}

std::size_t duplicates(const std::vector<Knobs>& knobs) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < knobs.size(); ++i) {
    count += static_cast<std::size_t>(
        std::count(knobs.begin() + static_cast<std::ptrdiff_t>(i) + 1, knobs.end(), knobs[i]));
  }
  return count;
}

TEST(Candidates, HaveNoDuplicates) {
  const Machine machine = find_machine("mi300x-8");
  for (const Pattern& pattern : patterns()) {
    const KnobSpace space = knob_space(pattern, kPaperShape, machine);
    const std::vector<Knobs> coarse = coarse_candidates(space, kPaperShape);
    EXPECT_EQ(duplicates(coarse), 0u) << pattern.name;
    for (const Knobs& knobs : coarse) {
      const std::vector<Knobs> near = neighbours(space, kPaperShape, knobs);
      EXPECT_EQ(duplicates(near), 0u) << pattern.name;
      EXPECT_EQ(std::count(near.begin(), near.end(), knobs), 0) << pattern.name;
    }
  }
}

TEST(Candidates, OfThePaperShapeAreAFewHundredBeforeRefinement) {
  const Machine machine = find_machine("mi300x-8");
  std::size_t total = 0;
  for (const Pattern& pattern : patterns()) {
    total += coarse_candidates(knob_space(pattern, kPaperShape, machine), kPaperShape).size();
  }
  EXPECT_GE(total, 150u);
  EXPECT_LE(total, 1000u);
}

bool has_tile(const KnobSpace& space, std::int32_t m, std::int32_t n, std::int32_t k) {
  return std::any_of(space.tiles.begin(), space.tiles.end(),
                     [&](const TileShape& tile) { return tile.m == m && tile.n == n && tile.k == k; });
}

TEST(Candidates, HaveDepthsOfATileThatDifferInTimeOrInWorkgroupsToAComputeUnit) {
  const Machine machine = find_machine("mi300x-8");
  const KnobSpace space = knob_space(find_pattern("fused-sequential", "test"), kPaperShape, machine);
  EXPECT_TRUE(has_tile(space, 128, 64, 64));
  EXPECT_TRUE(has_tile(space, 128, 64, 32)) << "two stages of 12 KiB leave room for a second workgroup";
  EXPECT_FALSE(has_tile(space, 128, 64, 128))
      << "one stage of 48 KiB is as much LDS as two of 24, and the matrix cores set the pace";
  EXPECT_TRUE(has_tile(space, 64, 64, 128)) << "memory sets the pace, and brings twice as much per latency";
}

TEST(Candidates, HaveOneDepthWhereACopyEngineFetchesOperands) {
  const Machine machine = find_machine("h200-4");
  const Pattern& pattern = find_pattern("fused-sequential", "test");
  const KnobSpace usual = knob_space(pattern, {2048, 4096, 4096, DType::bf16, 2}, machine);
  EXPECT_TRUE(has_tile(usual, 64, 128, 64));
  for (const TileShape& tile : usual.tiles) EXPECT_EQ(tile.k, 64);
  const KnobSpace small = knob_space(pattern, {16, 2048, 8192, DType::bf16, 2}, machine);
  EXPECT_TRUE(has_tile(small, 16, 16, 64));
  for (const TileShape& tile : small.tiles) EXPECT_EQ(tile.k, 64);
}

TEST(Candidates, HaveSidesBelowTheUsualOnlyWhereTilesTwiceAsLongLeaveComputeUnitsIdle) {
  const Machine machine = find_machine("mi300x-8");  // 304 compute units
  const Pattern& pattern = find_pattern("fused-sequential", "test");
  for (const TileShape& tile : knob_space(pattern, kPaperShape, machine).tiles) {
    EXPECT_GE(std::min(tile.m, tile.n), 64) << "1152 tiles of 64x64 a GPU are enough";
  }
  const GemmAllScatter few_rows{64, 16384, 53248, DType::fp16, 8};  // a shard of 2048 columns
  const KnobSpace space = knob_space(pattern, few_rows, machine);
  EXPECT_TRUE(has_tile(space, 32, 32, 256)) << "64x32 makes 64 tiles";
  EXPECT_TRUE(has_tile(space, 16, 32, 256)) << "32x32 makes 128";
  EXPECT_TRUE(has_tile(space, 16, 16, 256)) << "32x16 and 16x32 make 256";
  const GemmAllScatter more_rows{128, 16384, 53248, DType::fp16, 8};
  EXPECT_FALSE(has_tile(knob_space(pattern, more_rows, machine), 16, 16, 256)) << "32x16 makes 512";
}

TEST(Candidates, AreNoDeeperThanOneStepThroughK) {
  const Machine machine = find_machine("mi300x-8");
  const GemmAllScatter shallow{64, 1024, 100, DType::fp16, 8};
  for (const TileShape& tile : knob_space(patterns()[1], shallow, machine).tiles) EXPECT_LE(tile.k, 128);
}

TEST(Candidates, TakeTheTileOfAnotherPatternsCandidate) {
  const Machine machine = find_machine("mi300x-8");
  const KnobSpace fused = knob_space(find_pattern("fused-sequential", "test"), kPaperShape, machine);
  const KnobSpace split = knob_space(find_pattern("producer-consumer", "test"), kPaperShape, machine);
  const Knobs own = coarse_candidates(split, kPaperShape).front();
  Knobs other = coarse_candidates(fused, kPaperShape).front();
  other.tile_m = 128;
  other.tile_n = 64;
  other.tile_k = 32;
  other.group_m = 4;
  const auto taken = with_tile_of(split, kPaperShape, own, other);
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(taken->tile_m, 128);
  EXPECT_EQ(taken->tile_n, 64);
  EXPECT_EQ(taken->tile_k, 32);
  EXPECT_EQ(taken->group_m, 4);
  EXPECT_EQ(taken->gemm_cus, own.gemm_cus);
  EXPECT_EQ(taken->comm_cus, own.comm_cus);
  other.tile_m = 48;
  EXPECT_FALSE(with_tile_of(split, kPaperShape, own, other).has_value());
}

TEST(Candidates, StartWithTheDefaultKnobsOfTheMachine) {
  for (const char* name : {"mi300x-8", "h200-8"}) {
    const Machine machine = find_machine(name);
    const Knobs defaults = default_knobs(machine, DType::fp16);
    for (const Pattern& pattern : patterns()) {
      const Knobs first = coarse_candidates(knob_space(pattern, kPaperShape, machine), kPaperShape).front();
      EXPECT_EQ(first.tile_m, defaults.tile_m) << pattern.name;
      EXPECT_EQ(first.tile_n, defaults.tile_n) << pattern.name;
      EXPECT_EQ(first.tile_k, defaults.tile_k) << pattern.name;
      EXPECT_EQ(first.launch, defaults.launch) << pattern.name;
    }
  }
}

TEST(Candidates, OfAPatternWithoutKnobsAreOne) {
  const Machine machine = find_machine("mi300x-8");
  const KnobSpace space = knob_space(patterns().front(), kPaperShape, machine);
  ASSERT_EQ(coarse_candidates(space, kPaperShape).size(), 1u);
  EXPECT_TRUE(neighbours(space, kPaperShape, coarse_candidates(space, kPaperShape).front()).empty());
}

TEST(Candidates, ShareTheComputeUnitsBetweenTheRolesOfAPatternThatSplitsThem) {
  const Machine machine = find_machine("mi300x-8");
  const Pattern& pattern = find_pattern("producer-consumer", "test");
  std::vector<std::int32_t> comm;  // of splits that use all of them
  std::vector<std::int32_t> all_comm;
  for (const CuSplit& split : knob_space(pattern, kPaperShape, machine).splits) {
    all_comm.push_back(split.comm_cus);
    if (split.gemm_cus + split.comm_cus == 304) {
      comm.push_back(split.comm_cus);
    } else {
      EXPECT_LT(split.gemm_cus + split.comm_cus, 304);
      EXPECT_EQ(split.gemm_cus, workgroups_beside(machine.gpu, split.comm_cus));
    }
  }
  EXPECT_TRUE(std::is_sorted(all_comm.begin(), all_comm.end()));
  all_comm.erase(std::unique(all_comm.begin(), all_comm.end()), all_comm.end());
  EXPECT_EQ(comm, all_comm);  // each of them once
  for (const CuSplit& split :
       knob_space(find_pattern("workgroup-specialised", "test"), kPaperShape, machine).splits) {
    EXPECT_EQ(split.gemm_cus + split.comm_cus, 304);
  }
  EXPECT_NE(std::find(comm.begin(), comm.end(), 48), comm.end())
      << "256 + 48 is the split of ROCm/iris example 11";
  EXPECT_TRUE(std::is_sorted(comm.begin(), comm.end()));
}

TEST(Candidates, LeaveNoWorkgroupOfASecondKernelWithoutAComputeUnitAmongOthers) {
  const Machine machine = find_machine("mi300x-8");
  const std::vector<CuSplit> splits =
      knob_space(find_pattern("producer-consumer", "test"), kPaperShape, machine).splits;
  EXPECT_NE(std::find(splits.begin(), splits.end(), CuSplit{256, 40}), splits.end());
}

TEST(Candidates, HoldPinnedKnobsFixed) {
  const Machine machine = find_machine("mi300x-8");
  KnobPins pins;
  pins.tile_m = 256;
  pins.tile_n = 64;
  pins.comm_cus = 40;
  pins.group_m = 3;
  pins.launch = LaunchMode::graph;
  pins.comm_tile_m = 128;
  pins.comm_tile_n = 64;
  for (const Pattern& pattern : patterns()) {
    if (!pattern.uses.tile) continue;
    std::set<std::int32_t> gemm_cus;
    for (const Knobs& knobs : with_neighbours(knob_space(pattern, kPaperShape, machine, pins), kPaperShape)) {
      gemm_cus.insert(knobs.gemm_cus);
      EXPECT_EQ(knobs.tile_m, 256);
      EXPECT_EQ(knobs.tile_n, 64);
      EXPECT_EQ(knobs.group_m, 3);
      EXPECT_EQ(knobs.launch, LaunchMode::graph);
      EXPECT_EQ(knobs.comm_cus, pattern.uses.comm_cus ? 40 : 0) << pattern.name;
      EXPECT_EQ(knobs.comm_tile_m, 128) << pattern.name;
    }
    // All of the rest, and of a second kernel what leaves nobody waiting.
    std::set<std::int32_t> expected{pattern.uses.splits_cus ? 264 : 304};
    if (pattern.uses.in_two_kernels) expected.insert(256);
    EXPECT_EQ(gemm_cus, expected) << pattern.name;
  }
}

// In the order in which they are tried.
std::vector<std::pair<std::int32_t, std::int32_t>> splits_of(const char* pattern, const KnobPins& pins,
                                                             const char* machine = "mi300x-8",
                                                             const GemmAllScatter& workload = kPaperShape) {
  std::vector<std::pair<std::int32_t, std::int32_t>> out;
  for (const CuSplit& split :
       knob_space(find_pattern(pattern, "test"), workload, find_machine(machine), pins).splits) {
    out.emplace_back(split.gemm_cus, split.comm_cus);
  }
  return out;
}

// On engines of 10, 9, 10 and 9 compute units 256 and 48 workgroups keep one of a die waiting.
TEST(Candidates, WithOnePinnedSideAlsoLeaveNobodyWaiting) {
  using Splits = std::vector<std::pair<std::int32_t, std::int32_t>>;
  KnobPins pins;
  pins.comm_cus = 48;
  EXPECT_EQ(splits_of("producer-consumer", pins), (Splits{{232, 48}, {256, 48}}));
  EXPECT_EQ(splits_of("workgroup-specialised", pins), (Splits{{256, 48}}));  // one kernel
  pins.gemm_cus = 256;
  EXPECT_EQ(splits_of("producer-consumer", pins), (Splits{{256, 48}}));
  pins.comm_cus.reset();
  EXPECT_EQ(splits_of("producer-consumer", pins), (Splits{{256, 40}, {256, 48}}));
  pins.gemm_cus = 84;
  GemmAllScatter on_four = kPaperShape;
  on_four.gpus = 4;
  EXPECT_EQ(splits_of("producer-consumer", pins, "h200-4", on_four), (Splits{{84, 48}}));  // one engine
}

TEST(Candidates, WithAPinnedTileThatDoesNotFitAreRefusedWithTheReason) {
  const Machine machine = find_machine("mi300x-8");
  KnobPins pins;
  pins.tile_m = 512;
  pins.tile_n = 512;
  try {
    knob_space(find_pattern("fused-sequential", "test"), kPaperShape, machine, pins);
    FAIL() << "a tile of 512x512 does not fit";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("512x512"), std::string::npos) << error.what();
  }
}

TEST(Candidates, WithAPinnedSplitThatIsTooLargeAreRefused) {
  const Machine machine = find_machine("mi300x-8");
  KnobPins pins;
  pins.gemm_cus = 300;
  pins.comm_cus = 48;
  EXPECT_THROW(knob_space(find_pattern("workgroup-specialised", "test"), kPaperShape, machine, pins),
               UserError);
}

TEST(Candidates, OfOneGpuDoNotVaryWhatOnlyPeersSee) {
  const Machine machine = find_machine("mi300x-8");
  const GemmAllScatter alone{4096, 4096, 4096, DType::fp16, 1};
  for (const Pattern& pattern : patterns()) {
    const KnobSpace space = knob_space(pattern, alone, machine);
    EXPECT_EQ(space.splits.size(), 1u) << pattern.name;
    EXPECT_EQ(space.peer_orders.size(), 1u) << pattern.name;
    EXPECT_EQ(space.pieces.size(), 1u) << pattern.name;
  }
}

TEST(Candidates, OfAPartWithOneDieDoNotVaryTheDieRemap) {
  const Machine machine = find_machine("h200-8");
  EXPECT_EQ(knob_space(patterns()[1], kPaperShape, machine).xcd_remaps, std::vector<bool>{false});
}

// Every candidate builds, whatever the shape.
RC_GTEST_PROP(CandidatesLaw, AllBuild, ()) {
  const auto machines = shipped_machines();
  const Machine machine = find_machine(*rc::gen::elementOf(machines));
  GemmAllScatter workload;
  workload.gpus = *rc::gen::inRange(1, machine.gpu_count() + 1);
  workload.m = *rc::gen::inRange(1, 1500);
  workload.n = *rc::gen::inRange(workload.gpus, 2000);
  workload.k = *rc::gen::inRange(1, 600);
  workload.dtype = *rc::gen::element(DType::fp32, DType::fp16, DType::bf16, DType::fp8);
  const Pattern& pattern = *rc::gen::elementOf(std::vector<Pattern>(patterns().begin(), patterns().end()));
  const KnobSpace space = knob_space(pattern, workload, machine);
  const std::vector<Knobs> all = with_neighbours(space, workload);
  RC_ASSERT(duplicates(coarse_candidates(space, workload)) == 0u);
  const Knobs knobs = *rc::gen::elementOf(all);
  const Schedule schedule = build_schedule(pattern, workload, machine, knobs);
  RC_ASSERT(!schedule.ops.empty());
}

}  // namespace
}  // namespace tritax
