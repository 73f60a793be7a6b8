// Grouped products: every way to share out their tiles is sound and right, whatever the rows of groups, gives
// every tile to one workgroup or exact parts of it to several, and pays what its mechanism says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/parts/expert_histogram.hpp"
#include "model/workloads/grouped_gemm/patterns.hpp"
#include "model/workloads/grouped_gemm/workload.hpp"
#include "tests/workloads/any_workload.hpp"

namespace tritax {
namespace {

Machine grouped_machine(const std::string& name = "h200-4") {
  Machine machine = find_machine(name);
  machine.gpu.cus_per_xcd = 8;
  machine.gpu.xcds = std::min(machine.gpu.xcds, 2);
  return machine;
}

TEST(GroupedGemm, IsSoundAndRightForEveryPatternAndDtype) {
  for (const char* name : {"h200-4", "mi300x-8"}) {
    const Machine machine = grouped_machine(name);
    for (const Pattern& pattern : grouped_gemm().patterns) {
      for (const DType dtype : {DType::fp32, DType::fp16, DType::bf16, DType::fp8}) {
        const Problem problem = problem_with(grouped_gemm(), {{"tokens", 70},
                                                              {"n", 40},
                                                              {"k", 72},
                                                              {"experts", 7},
                                                              {"top_k", 2},
                                                              {"routing", 2},
                                                              {"dtype", static_cast<std::int64_t>(dtype)}});
        const Values knobs =
            knobs_with(problem, machine, {{"tile_m", 64}, {"tile_n", 16}, {"tile_k", 32}, {"waves", 4}});
        EXPECT_EQ(what_is_wrong(pattern, problem, machine, knobs, 2, 1e-5), "")
            << pattern.name << " in " << name_of(dtype) << " on " << name;
      }
    }
  }
}

RC_GTEST_PROP(GroupedGemmLaw, AnyRowsAndKnobsGiveTheProductsOfTheGroups, ()) {
  const auto any = [](int low, int high) { return *rc::gen::inRange(low, high + 1); };
  const Machine machine = grouped_machine(any(0, 1) != 0 ? "h200-4" : "mi300x-8");
  const int experts = any(1, 24);
  const Problem problem = problem_with(grouped_gemm(), {{"tokens", any(1, 90)},
                                                        {"n", any(1, 50)},
                                                        {"k", any(1, 90)},
                                                        {"experts", experts},
                                                        {"top_k", any(1, std::min(experts, 4))},
                                                        {"routing", any(0, 2)},
                                                        {"skew", any(0, 300)}});
  const Values knobs = knobs_with(problem, machine,
                                  {{"tile_m", 64},
                                   {"tile_n", 16 * any(1, 2)},
                                   {"tile_k", 32},
                                   {"waves", 4},
                                   {"grid", any(1, machine.gpu.cu_count())},
                                   {"fixup", any(0, 1)},
                                   {"group_m", any(1, 4)},
                                   {"xcd_remap", any(0, 1)},
                                   {"lock", any(0, 2)},
                                   {"launch", any(0, 1)}});
  const Pattern& pattern =
      grouped_gemm()
          .patterns[static_cast<std::size_t>(any(0, static_cast<int>(grouped_gemm().patterns.size()) - 1))];
  RC_LOG() << pattern.name << ' ' << key_of(problem.values) << ' ' << key_of(knobs) << '\n';
  RC_ASSERT(what_is_wrong(pattern, problem, machine, knobs, 2, 1e-5) == std::string());
}

Problem skewed_problem() {
  return problem_with(grouped_gemm(), {{"tokens", 2048},
                                       {"n", 1024},
                                       {"k", 1024},
                                       {"experts", 16},
                                       {"top_k", 2},
                                       {"routing", 2},
                                       {"skew", 150}});
}

// Depth of matmuls by workgroup of the only kernel.
std::vector<std::int64_t> depths_of(const Schedule& schedule) {
  std::vector<std::int64_t> depths;
  for (const Workgroup& workgroup : schedule.kernels.front().workgroups) {
    depths.push_back(0);
    for (std::uint32_t i = 0; i < workgroup.op_count; ++i) {
      const Op& op = schedule.ops[workgroup.first_op + i];
      if (op.kind == OpKind::matmul) depths.back() += op.k_end - op.k_begin;
    }
  }
  return depths;
}

TEST(GroupedGemm, SharesOfWorkAreEvenToAnIteration) {
  const Machine machine = find_machine("h200-4");
  const auto depths = depths_of(
      schedule_with("work-oriented", skewed_problem(), machine, {{"tile_m", 128}, {"tile_n", 128}}));
  const auto [least, most] = std::minmax_element(depths.begin(), depths.end());
  EXPECT_EQ(depths.size(), static_cast<std::size_t>(machine.gpu.cu_count()));
  EXPECT_LE(*most - *least, 64);
}

TEST(GroupedGemm, TilesInTurnAreEvenToATileAndTeamsWaitForTheLargestGroup) {
  const Machine machine = find_machine("h200-4");
  const auto most_of = [&](const char* pattern) {
    const auto depths =
        depths_of(schedule_with(pattern, skewed_problem(), machine, {{"tile_m", 128}, {"tile_n", 128}}));
    const auto [least, most] = std::minmax_element(depths.begin(), depths.end());
    return std::pair(*least, *most);
  };
  const auto dealt = most_of("tile-mapped"), teams = most_of("group-mapped");
  EXPECT_LE(dealt.second - dealt.first, 1024);
  EXPECT_GT(teams.second, 2 * dealt.second);
}

TEST(GroupedGemm, PaysALaunchForEveryGroupAndWaitsForTheLargestTeam) {
  const Machine machine = find_machine("h200-4");
  const Given tile{{"tile_m", 128}, {"tile_n", 128}};
  const auto time = [&](const char* pattern) { return time_with(pattern, skewed_problem(), machine, tile); };
  EXPECT_GT(time("launch-per-group"), 1.5 * time("dispatched"));
  EXPECT_GT(time("group-mapped"), 1.5 * time("tile-mapped"));
}

TEST(GroupedGemm, TakesLowTilesForSmallGroups) {
  const Machine machine = find_machine("mi300x-8");
  const Schedule schedule = schedule_with("bucketing", skewed_problem(), machine);
  std::vector<std::int32_t> heights;
  for (const Kernel& kernel : schedule.kernels) heights.push_back(kernel.tile.m);
  EXPECT_GT(heights.size(), 1U);
  EXPECT_TRUE(std::is_sorted(heights.rbegin(), heights.rend()));
}

// A single row takes tiles of 16: in these all the others' tiles would be too many, but they have higher
// ones.
TEST(GroupedGemm, CountsTheTilesOfEveryBucketByItsOwnHeight) {
  const Machine machine = find_machine("mi300x-8");
  const auto refusal_of = [&](std::int32_t rows) {
    const GroupedProducts products{
        {rows, 1024, 32, DType::fp16}, {{0, rows - 1, 0}, {rows - 1, 1, 1024}}, 2048};
    GroupedKnobs knobs{default_gemm_knobs(machine, DType::fp16)};
    knobs.tile_m = 256;
    knobs.tile_n = 16;
    std::size_t workgroups = 0;
    const std::string refusal = refusal_by([&] {
      for (const Kernel& kernel : build_group_buckets(products, machine, knobs).kernels)
        workgroups += kernel.workgroups.size();
    });
    return refusal.find("too many to schedule") == std::string::npos ? std::to_string(workgroups) : refusal;
  };
  EXPECT_EQ(refusal_of(1'150'000), std::to_string((1'150'000 / 256 + 1) * 64 + 64));
  EXPECT_THAT(refusal_of(20'000'000),
              testing::HasSubstr("tile: tiles of 256x16 and lower cut these products"));
}

TEST(GroupedGemm, RefusesAGridThatIsNotResident) {
  const Machine machine = grouped_machine();
  EXPECT_THAT(refusal_by([&] {
                schedule_with("tile-mapped", skewed_problem(), machine, {{"grid", 4096}});
              }),
              testing::HasSubstr("grid: 4096 workgroups of this tile are not resident at once"));
}

}  // namespace
}  // namespace tritax
