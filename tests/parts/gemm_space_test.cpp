// The knobs that a search tries: legal, without duplicates, and only those that matter.
#include "model/parts/gemm_space.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "model/core/error.hpp"
#include "model/parts/kernels.hpp"
#include "model/schedule/json.hpp"
#include "model/schedule/shader_engines.hpp"
#include "tests/machine/any_dtype.hpp"
#include "tests/workloads/gemm_all_scatter.hpp"

namespace tritax {
namespace {

constexpr GemmAllScatter kPaperShape{8192, 4608, 36864, DType::fp16, 8};

const Pattern& pattern_named(std::string_view name) { return find_pattern(gemm_all_scatter(), name, "test"); }

// Pins that hold nothing yet.
Values no_pins() { return Values(gemm_all_scatter().knobs); }

const Axis& axis_of(const KnobSpace& space, std::string_view name) {
  const auto found =
      std::find_if(space.axes.begin(), space.axes.end(), [&](const Axis& axis) { return axis.name == name; });
  if (found == space.axes.end()) throw std::runtime_error("no axis " + std::string(name));
  return *found;
}

std::vector<GemmKnobs> knobs_of(const std::vector<Option>& options) {
  std::vector<GemmKnobs> knobs;
  for (const Option& option : options) knobs.push_back(gemm_knobs_of(option.knobs));
  return knobs;
}

std::vector<GemmKnobs> coarse_knobs(const KnobSpace& space) { return knobs_of(coarse_choices(space)); }

std::vector<GemmKnobs> with_neighbours(const KnobSpace& space) {
  std::vector<GemmKnobs> all = coarse_knobs(space);
  const std::vector<GemmKnobs> near = knobs_of(neighbours(space, start_of(space)));
  all.insert(all.end(), near.begin(), near.end());
  return all;
}

std::size_t duplicates(const std::vector<GemmKnobs>& knobs) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < knobs.size(); ++i) {
    count += static_cast<std::size_t>(
        std::count(knobs.begin() + static_cast<std::ptrdiff_t>(i) + 1, knobs.end(), knobs[i]));
  }
  return count;
}

struct TileShape {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
};

std::vector<TileShape> tiles_of(const KnobSpace& space) {
  std::vector<TileShape> tiles;
  for (const AxisValue& value : axis_of(space, "tile").values) {
    tiles.push_back({value.id.at(0), value.id.at(1), value.id.at(2)});
  }
  return tiles;
}

// (gemm_cus, comm_cus) in the order in which they are tried.
using Splits = std::vector<std::pair<std::int64_t, std::int64_t>>;

Splits splits_of(const KnobSpace& space) {
  Splits splits;
  for (const AxisValue& value : axis_of(space, "split").values)
    splits.emplace_back(value.id.at(0), value.id.at(1));
  return splits;
}

TEST(Candidates, HaveNoDuplicates) {
  const Machine machine = find_machine("mi300x-8");
  for (const Pattern& pattern : gemm_all_scatter().patterns) {
    const KnobSpace space = knob_space(pattern, kPaperShape, machine);
    const std::vector<Option> coarse = coarse_choices(space);
    EXPECT_EQ(duplicates(knobs_of(coarse)), 0u) << pattern.name;
    for (const Option& option : coarse) {
      const std::vector<GemmKnobs> near = knobs_of(neighbours(space, option.choice));
      EXPECT_EQ(duplicates(near), 0u) << pattern.name;
      EXPECT_EQ(std::count(near.begin(), near.end(), gemm_knobs_of(option.knobs)), 0) << pattern.name;
    }
  }
}

TEST(Candidates, OfThePaperShapeAreAFewHundredBeforeRefinement) {
  const Machine machine = find_machine("mi300x-8");
  std::size_t total = 0;
  for (const Pattern& pattern : gemm_all_scatter().patterns) {
    total += coarse_knobs(knob_space(pattern, kPaperShape, machine)).size();
  }
  EXPECT_GE(total, 150u);
  EXPECT_LE(total, 1000u);
}

bool has_tile(const KnobSpace& space, std::int32_t m, std::int32_t n, std::int32_t k) {
  const std::vector<TileShape> tiles = tiles_of(space);
  return std::any_of(tiles.begin(), tiles.end(),
                     [&](const TileShape& tile) { return tile.m == m && tile.n == n && tile.k == k; });
}

TEST(Candidates, HaveDepthsOfATileThatDifferInTimeOrInWorkgroupsToAComputeUnit) {
  const Machine machine = find_machine("mi300x-8");
  const KnobSpace space = knob_space(pattern_named("fused-sequential"), kPaperShape, machine);
  EXPECT_TRUE(has_tile(space, 128, 64, 64));
  EXPECT_TRUE(has_tile(space, 128, 64, 32)) << "two stages of 12 KiB leave room for a second workgroup";
  EXPECT_FALSE(has_tile(space, 128, 64, 128))
      << "one stage of 48 KiB is as much LDS as two of 24, and the matrix cores set the pace";
  EXPECT_TRUE(has_tile(space, 64, 64, 128)) << "memory sets the pace, and brings twice as much per latency";
}

TEST(Candidates, HaveOneDepthWhereACopyEngineFetchesOperands) {
  const Machine machine = find_machine("h200-4");
  const Pattern& pattern = pattern_named("fused-sequential");
  const KnobSpace usual = knob_space(pattern, {2048, 4096, 4096, DType::bf16, 2}, machine);
  EXPECT_TRUE(has_tile(usual, 64, 128, 64));
  for (const TileShape& tile : tiles_of(usual)) EXPECT_EQ(tile.k, 64);
  const KnobSpace small = knob_space(pattern, {16, 2048, 8192, DType::bf16, 2}, machine);
  EXPECT_TRUE(has_tile(small, 16, 16, 64));
  for (const TileShape& tile : tiles_of(small)) EXPECT_EQ(tile.k, 64);
}

TEST(Candidates, HaveSidesBelowTheUsualOnlyWhereTilesTwiceAsLongLeaveComputeUnitsIdle) {
  const Machine machine = find_machine("mi300x-8");  // 304 compute units
  const Pattern& pattern = pattern_named("fused-sequential");
  const KnobSpace paper = knob_space(pattern, kPaperShape, machine);
  const std::vector<TileShape> tiles = tiles_of(paper);
  for (const std::size_t first : axis_of(paper, "tile").coarse) {
    EXPECT_GE(std::min(tiles[first].m, tiles[first].n), 64) << "1152 tiles of 64x64 a GPU are enough";
  }
  for (const TileShape& tile : tiles) EXPECT_GE(std::min(tile.m, tile.n), 32) << "tried at the end";
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
  for (const TileShape& tile : tiles_of(knob_space(gemm_all_scatter().patterns[1], shallow, machine)))
    EXPECT_LE(tile.k, 128);
}

TEST(Candidates, TakeTheTileOfAnotherPatternsCandidate) {
  const Machine machine = find_machine("mi300x-8");
  const KnobSpace fused = knob_space(pattern_named("fused-sequential"), kPaperShape, machine);
  const KnobSpace split = knob_space(pattern_named("producer-consumer"), kPaperShape, machine);
  KnobChoice other = start_of(fused);
  for (std::size_t a = 0; a < fused.axes.size(); ++a) {
    for (std::size_t v = 0; v < fused.axes[a].values.size(); ++v) {
      const std::vector<std::int64_t>& id = fused.axes[a].values[v].id;
      const bool wanted = fused.axes[a].name == "tile" ? id == std::vector<std::int64_t>{128, 64, 32, 8}
                                                       : fused.axes[a].name == "group_m" && id.front() == 4;
      if (wanted) other[a] = static_cast<std::uint16_t>(v);
    }
  }
  const GemmKnobs own = coarse_knobs(split).front();
  const auto taken = with_travelling(split, start_of(split), fused, other);
  ASSERT_TRUE(taken.has_value());
  const GemmKnobs knobs = gemm_knobs_of(taken->knobs);
  EXPECT_EQ(knobs.tile_m, 128);
  EXPECT_EQ(knobs.tile_n, 64);
  EXPECT_EQ(knobs.tile_k, 32);
  EXPECT_EQ(knobs.group_m, 4);
  EXPECT_EQ(knobs.gemm_cus, own.gemm_cus);
  EXPECT_EQ(knobs.comm_cus, own.comm_cus);
  Values pins = no_pins();
  pins.give("tile_m", 48);
  const KnobSpace odd = knob_space(pattern_named("fused-sequential"), kPaperShape, machine, pins);
  EXPECT_FALSE(with_travelling(split, start_of(split), odd, start_of(odd)).has_value());
}

TEST(Candidates, StartWithTheDefaultKnobsOfTheMachine) {
  for (const char* name : {"mi300x-8", "h200-8"}) {
    const Machine machine = find_machine(name);
    const GemmKnobs defaults = default_gemm_knobs(machine, DType::fp16);
    for (const Pattern& pattern : gemm_all_scatter().patterns) {
      const GemmKnobs first = coarse_knobs(knob_space(pattern, kPaperShape, machine)).front();
      EXPECT_EQ(first.tile_m, defaults.tile_m) << pattern.name;
      EXPECT_EQ(first.tile_n, defaults.tile_n) << pattern.name;
      EXPECT_EQ(first.tile_k, defaults.tile_k) << pattern.name;
      EXPECT_EQ(first.launch, defaults.launch) << pattern.name;
    }
  }
}

// In fp32 a tile of 128x256 is more than an H100 has LDS for.
TEST(DefaultKnobs, FitEveryMachineInEveryDtype) {
  for (const std::string& name : shipped_machines()) {
    const Machine machine = find_machine(name);
    for (const DType dtype : {DType::fp32, DType::fp16, DType::bf16, DType::fp8}) {
      if (machine.gpu.rate(dtype).flop_per_clk_per_cu <= 0) continue;
      const MatmulTile tile = matmul_tile(default_gemm_knobs(machine, dtype));
      EXPECT_NO_THROW(matmul_resources(machine.gpu, machine.interpreter, dtype, tile))
          << name << ' ' << name_of(dtype);
    }
  }
}

// A search starts at the defaults of `simulate --pattern`.
TEST(DefaultKnobs, TakeAsLongAsTheStartOfASearch) {
  for (const char* name : {"mi300x-8", "h200-4"}) {
    const Machine machine = find_machine(name);
    const Problem problem = problem_of(GemmAllScatter{300, 1000, 400, DType::bf16, 4});
    for (const Pattern& pattern : gemm_all_scatter().patterns) {
      const Values start =
          coarse_choices(gemm_all_scatter().space(pattern, problem, machine, {})).front().knobs;
      const Schedule from_start = build_schedule(pattern, problem, machine, start);
      const Schedule usual = build_schedule(pattern, problem, machine, resolved_knobs(problem, machine, {}));
      EXPECT_EQ(schedule_to_json(from_start), schedule_to_json(usual)) << pattern.name << " on " << name;
    }
  }
}

TEST(Candidates, OfAPatternWithoutKnobsAreOne) {
  const Machine machine = find_machine("mi300x-8");
  const KnobSpace space = knob_space(gemm_all_scatter().patterns.front(), kPaperShape, machine);
  ASSERT_EQ(coarse_choices(space).size(), 1u);
  EXPECT_TRUE(neighbours(space, start_of(space)).empty());
}

TEST(Candidates, ShareTheComputeUnitsBetweenTheRolesOfAPatternThatSplitsThem) {
  const Machine machine = find_machine("mi300x-8");
  const Pattern& pattern = pattern_named("producer-consumer");
  std::vector<std::int64_t> comm;  // of splits that use all of them
  std::vector<std::int64_t> all_comm;
  for (const auto& [gemm_cus, comm_cus] : splits_of(knob_space(pattern, kPaperShape, machine))) {
    all_comm.push_back(comm_cus);
    if (gemm_cus + comm_cus == 304) {
      comm.push_back(comm_cus);
    } else {
      EXPECT_LT(gemm_cus + comm_cus, 304);
      EXPECT_EQ(gemm_cus, workgroups_beside(machine.gpu, static_cast<std::int32_t>(comm_cus)));
    }
  }
  EXPECT_TRUE(std::is_sorted(all_comm.begin(), all_comm.end()));
  all_comm.erase(std::unique(all_comm.begin(), all_comm.end()), all_comm.end());
  EXPECT_EQ(comm, all_comm);  // each of them once
  for (const auto& [gemm_cus, comm_cus] :
       splits_of(knob_space(pattern_named("workgroup-specialised"), kPaperShape, machine))) {
    EXPECT_EQ(gemm_cus + comm_cus, 304);
  }
  EXPECT_NE(std::find(comm.begin(), comm.end(), 48), comm.end())
      << "256 + 48 is the split of ROCm/iris example 11";
  EXPECT_TRUE(std::is_sorted(comm.begin(), comm.end()));
}

TEST(Candidates, LeaveNoWorkgroupOfASecondKernelWithoutAComputeUnitAmongOthers) {
  const Machine machine = find_machine("mi300x-8");
  const Splits splits = splits_of(knob_space(pattern_named("producer-consumer"), kPaperShape, machine));
  EXPECT_NE(std::find(splits.begin(), splits.end(), std::pair<std::int64_t, std::int64_t>(256, 40)),
            splits.end());
}

TEST(Candidates, HoldPinnedKnobsFixed) {
  const Machine machine = find_machine("mi300x-8");
  Values pins = no_pins();
  pins.give("tile_m", 256);
  pins.give("tile_n", 64);
  pins.give("comm_cus", 40);
  pins.give("group_m", 3);
  pins.give("launch", static_cast<std::int64_t>(LaunchMode::graph));
  pins.give("comm_tile_m", 128);
  pins.give("comm_tile_n", 64);
  for (const Pattern& pattern : gemm_all_scatter().patterns) {
    if (!pattern.uses("tile")) continue;
    std::set<std::int32_t> gemm_cus;
    for (const GemmKnobs& knobs : with_neighbours(knob_space(pattern, kPaperShape, machine, pins))) {
      gemm_cus.insert(knobs.gemm_cus);
      EXPECT_EQ(knobs.tile_m, 256);
      EXPECT_EQ(knobs.tile_n, 64);
      EXPECT_EQ(knobs.group_m, 3);
      EXPECT_EQ(knobs.launch, LaunchMode::graph);
      EXPECT_EQ(knobs.comm_cus, pattern.uses("comm_cus") ? 40 : 0) << pattern.name;
      EXPECT_EQ(knobs.comm_tile_m, 128) << pattern.name;
    }
    // All of the rest, and of a second kernel what leaves nobody waiting.
    std::set<std::int32_t> expected{pattern.roles == Roles::in_turn ? 304 : 264};
    if (pattern.roles == Roles::in_two_kernels) expected.insert(256);
    expected.insert(*expected.rbegin() * 7 / 8);  // of the start: fewer that multiply
    EXPECT_EQ(gemm_cus, expected) << pattern.name;
  }
}

// On engines of 10, 9, 10 and 9 compute units 256 and 48 workgroups keep one of a die waiting.
TEST(Candidates, WithOnePinnedSideAlsoLeaveNobodyWaiting) {
  const Machine machine = find_machine("mi300x-8");
  const auto splits = [&](std::string_view pattern, const Values& pins) {
    return splits_of(knob_space(pattern_named(pattern), kPaperShape, machine, pins));
  };
  Values comm = no_pins();
  comm.give("comm_cus", 48);
  EXPECT_EQ(splits("producer-consumer", comm), (Splits{{232, 48}, {256, 48}}));
  EXPECT_EQ(splits("workgroup-specialised", comm), (Splits{{256, 48}}));  // one kernel
  Values both = comm;
  both.give("gemm_cus", 256);
  EXPECT_EQ(splits("producer-consumer", both), (Splits{{256, 48}}));
  Values gemm = no_pins();
  gemm.give("gemm_cus", 256);
  EXPECT_EQ(splits("producer-consumer", gemm), (Splits{{256, 40}, {256, 48}}));
  gemm.give("gemm_cus", 84);
  GemmAllScatter on_four = kPaperShape;
  on_four.gpus = 4;
  EXPECT_EQ(splits_of(knob_space(pattern_named("producer-consumer"), on_four, find_machine("h200-4"), gemm)),
            (Splits{{84, 48}}));  // one engine
}

TEST(Candidates, VaryEveryKnobThatThePatternUses) {
  for (const char* name : {"mi300x-8", "h200-8"}) {
    const Machine machine = find_machine(name);
    for (const Pattern& pattern : gemm_all_scatter().patterns) {
      const KnobSpace space = knob_space(pattern, kPaperShape, machine);
      const std::vector<Option> near = neighbours(space, start_of(space), Reach::all);
      const Values start = coarse_choices(space).front().knobs;
      for (const std::string_view knob : pattern.knobs) {
        if (knob.starts_with("xcd_") && machine.gpu.xcds == 1) continue;
        if (knob == "sharing" || knob == "k_split" || knob == "lock")
          continue;  // other values only if asked for
        const Spec& spec = *find_spec(start.specs(), knob);
        const bool varies = std::any_of(near.begin(), near.end(), [&](const Option& option) {
          return option.knobs[spec.column(0)] != start[spec.column(0)];
        });
        EXPECT_TRUE(varies) << knob << " of " << pattern.name << " on " << name;
      }
    }
  }
}

TEST(Candidates, HoldEveryPin) {
  const Machine machine = find_machine("mi300x-8");
  const auto pins = {std::pair{"waves", 2},   std::pair{"pipeline", 0},      std::pair{"lock", 1},
                     std::pair{"group_m", 9}, std::pair{"host_barriers", 1}, std::pair{"xcd_remap", 0},
                     std::pair{"launch", 1},  std::pair{"peer_order", 1},    std::pair{"gemm_cus", 200}};
  for (const GemmAllScatter& shape : {kPaperShape, GemmAllScatter{64, 512, 512, DType::fp16, 1}}) {
    for (const Pattern& pattern : gemm_all_scatter().patterns) {
      for (const auto& [knob, value] : pins) {
        if (std::string_view(knob) != "host_barriers" && !pattern.uses(knob)) continue;
        Values given = no_pins();
        given.give(knob, value);
        const KnobSpace space = knob_space(pattern, shape, machine, given);
        std::vector<Option> all = coarse_choices(space);
        for (Option& near : neighbours(space, start_of(space), Reach::all)) all.push_back(std::move(near));
        for (const Option& option : all) ASSERT_EQ(option.knobs[knob], value) << knob << ' ' << pattern.name;
      }
    }
  }
}

TEST(Candidates, WithMoreComputeUnitsThanThereAreAreRefused) {
  const Machine machine = find_machine("h200-4");
  for (const char* knob : {"gemm_cus", "comm_cus"}) {
    Values pins = no_pins();
    pins.give(knob, 304);
    for (const int gpus : {1, 4}) {
      const GemmAllScatter shape{1024, 1024, 1024, DType::fp16, gpus};
      EXPECT_THROW(knob_space(pattern_named("bulk-synchronous"), shape, machine, pins), UserError) << knob;
    }
  }
}

TEST(Candidates, WithAPinnedTileThatDoesNotFitAreRefusedWithTheReason) {
  const Machine machine = find_machine("mi300x-8");
  Values pins = no_pins();
  pins.give("tile_m", 512);
  pins.give("tile_n", 512);
  try {
    knob_space(pattern_named("fused-sequential"), kPaperShape, machine, pins);
    FAIL() << "a tile of 512x512 does not fit";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("512x512"), std::string::npos) << error.what();
  }
}

TEST(Candidates, WithAPinnedSplitThatIsTooLargeAreRefused) {
  const Machine machine = find_machine("mi300x-8");
  Values pins = no_pins();
  pins.give("gemm_cus", 300);
  pins.give("comm_cus", 48);
  EXPECT_THROW(knob_space(pattern_named("workgroup-specialised"), kPaperShape, machine, pins), UserError);
}

TEST(Candidates, OfOneGpuDoNotVaryWhatOnlyPeersSee) {
  const Machine machine = find_machine("mi300x-8");
  const GemmAllScatter alone{4096, 4096, 4096, DType::fp16, 1};
  for (const Pattern& pattern : gemm_all_scatter().patterns) {
    const KnobSpace space = knob_space(pattern, alone, machine);
    for (const char* axis : {"split", "peer_order", "piece"}) {
      EXPECT_EQ(axis_of(space, axis).values.size(), 1u) << axis << " of " << pattern.name;
    }
  }
}

TEST(Candidates, TryChunksOfDiesAtTheEndAlone) {
  const Machine machine = find_machine("mi300x-8");
  const KnobSpace space = knob_space(pattern_named("fused-sequential"), kPaperShape, machine);
  const auto has_chunks = [](const std::vector<Option>& options) {
    return std::any_of(options.begin(), options.end(),
                       [](const Option& option) { return option.knobs["xcd_chunk"] > 0; });
  };
  EXPECT_FALSE(has_chunks(coarse_choices(space)));
  EXPECT_FALSE(has_chunks(neighbours(space, start_of(space))));
  EXPECT_TRUE(has_chunks(neighbours(space, start_of(space), Reach::all)));
}

TEST(Candidates, WithPinnedChunksAreAllRemapped) {
  const Machine machine = find_machine("mi300x-8");
  Values pins = no_pins();
  pins.give("xcd_chunk", 4);
  for (const GemmKnobs& knobs :
       with_neighbours(knob_space(pattern_named("fused-sequential"), kPaperShape, machine, pins))) {
    EXPECT_EQ(knobs.xcd_chunk, 4);
    EXPECT_TRUE(knobs.xcd_remap);
  }
  pins.give("xcd_remap", 0);
  EXPECT_THROW(knob_space(pattern_named("fused-sequential"), kPaperShape, machine, pins), UserError);
}

TEST(Candidates, OfAPartWithOneDieDoNotVaryTheDieRemap) {
  const Machine machine = find_machine("h200-8");
  const KnobSpace space = knob_space(gemm_all_scatter().patterns[1], kPaperShape, machine);
  ASSERT_EQ(axis_of(space, "xcd_remap").values.size(), 1u);
  EXPECT_FALSE(coarse_knobs(space).front().xcd_remap);
}

// Every candidate builds, whatever the shape.
RC_GTEST_PROP(CandidatesLaw, AllBuild, ()) {
  const auto machines = shipped_machines();
  const Machine machine = find_machine(*rc::gen::elementOf(machines));
  GemmAllScatter workload;
  workload.gpus = *rc::gen::inRange(1, std::min(8, machine.gpu_count()) + 1);
  workload.m = *rc::gen::inRange(1, 1500);
  workload.n = *rc::gen::inRange(workload.gpus, 2000);
  workload.k = *rc::gen::inRange(1, 600);
  workload.dtype = any_dtype(machine.gpu);
  const Pattern& pattern =
      gemm_all_scatter().patterns[*rc::gen::inRange<std::size_t>(0, gemm_all_scatter().patterns.size())];
  const KnobSpace space = knob_space(pattern, workload, machine);
  const std::vector<GemmKnobs> all = with_neighbours(space);
  RC_ASSERT(duplicates(coarse_knobs(space)) == 0u);
  const GemmKnobs knobs = *rc::gen::elementOf(all);
  const Schedule schedule = build(pattern, workload, machine, knobs);
  RC_ASSERT(!schedule.ops.empty());
}

}  // namespace
}  // namespace tritax
