// Shares of products inside overlapping patterns: sound and right three times in a row, no slower than their
// bound, and faster where whole tiles leave the last wave almost empty.
#include "model/parts/product_shares.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "model/machine/machine.hpp"
#include "model/workloads/registry.hpp"
#include "tests/workloads/any_workload.hpp"

namespace tritax {
namespace {

const std::vector<const Workload*>& sharing_workloads() {
  static const std::vector<const Workload*> found = [] {
    std::vector<const Workload*> all;
    for (const Workload* workload : workloads()) {
      if (find_spec(workload->knobs, "sharing") != nullptr) all.push_back(workload);
    }
    return all;
  }();
  return found;
}

Machine machine_of(int dies, int units) {
  Machine machine = find_machine("mi300x-8");
  machine.gpu.xcds = dies;
  machine.gpu.cus_per_xcd = units;
  return machine;
}

// With host barriers: without them not every pattern may run again at once, shares or not.
Given small(ProductSharing sharing, int host_barriers) {
  return {{"tile_m", 16},
          {"tile_n", 16},
          {"tile_k", 16},
          {"k_split", 3},
          {"waves", 1},
          {"sharing", static_cast<int>(sharing)},
          {"host_barriers", host_barriers}};
}

TEST(ProductShares, AreRightInEveryPatternThreeTimesInARow) {
  const Machine machine = machine_of(2, 4);
  ASSERT_GE(sharing_workloads().size(), 3U);
  for (const Workload* workload : sharing_workloads()) {
    for (const int gpus : {1, 3}) {
      const Problem problem = problem_with(*workload, {{"m", 70}, {"n", 50}, {"k", 170}, {"gpus", gpus}});
      for (const Pattern& pattern : workload->patterns) {
        if (!pattern.uses("sharing")) continue;
        for (const ProductSharing sharing :
             {ProductSharing::fixed_split, ProductSharing::stream_k, ProductSharing::two_tile_stream_k}) {
          EXPECT_EQ(what_is_wrong(pattern, problem, machine, knobs_with(problem, machine, small(sharing, 1))),
                    "")
              << workload->name << ", " << pattern.name << ", " << static_cast<int>(sharing) << ", " << gpus;
        }
      }
    }
  }
}

TEST(ProductShares, TakeNoLessThanTheirBound) {
  const Machine machine = machine_of(2, 4);
  for (const Workload* workload : sharing_workloads()) {
    const Problem problem = problem_with(*workload, {{"m", 144}, {"n", 128}, {"k", 2048}, {"gpus", 2}});
    for (const Pattern& pattern : workload->patterns) {
      if (!pattern.uses("sharing")) continue;
      const Values knobs = knobs_with(problem, machine, small(ProductSharing::stream_k, 0));
      EXPECT_GE(simulate(build_schedule(pattern, problem, machine, knobs), machine, {}).makespan_ns,
                workload->bound_ns(pattern, problem, machine, knobs))
          << workload->name << ", " << pattern.name;
    }
  }
}

// 160 tiles of one GPU on 132 compute units.
TEST(ProductShares, TakeLessTimeThanTilesWhereTheLastWaveIsAlmostEmpty) {
  const Machine machine = find_machine("h100-4");
  int timed = 0;
  for (const Workload* workload : sharing_workloads()) {
    const auto& patterns = workload->patterns;
    if (std::none_of(patterns.begin(), patterns.end(),
                     [](const Pattern& pattern) { return pattern.name == "bulk-synchronous"; }))
      continue;
    ++timed;
    const bool splits_k = workload->projection.depth_of_all;
    const bool all_columns = workload->projection.projection == Projection::none;  // of both GPUs
    const Problem problem = problem_with(*workload, {{"m", 2048},
                                                     {"n", all_columns ? 2560 : 1280},
                                                     {"k", splits_k ? 16384 : 8192},
                                                     {"dtype", static_cast<int>(DType::bf16)},
                                                     {"gpus", 2}});
    const auto time_us = [&](ProductSharing sharing) {
      return time_with("bulk-synchronous", problem, machine,
                       {{"tile_m", 128}, {"tile_n", 128}, {"sharing", static_cast<int>(sharing)}});
    };
    EXPECT_LT(time_us(ProductSharing::stream_k), 0.92 * time_us(ProductSharing::tiles)) << workload->name;
  }
  EXPECT_EQ(timed, 5);
}

// Tiles are said to be whole when their owners have done what they have to do before.
TEST(ProductShares, KnowAfterHowManyIterationsTilesAreWhole) {
  ScheduleBuilder builder("test", 1);
  SharingKnobs knobs;
  knobs.sharing = ProductSharing::stream_k;
  const MatmulTile tile{16, 16, 4, 1, Pipeline::overlapped};
  const ProductShares shares =
      share_products(builder, find_machine("mi300x-8").gpu, knobs, tile, 4, {{9, 128}});
  // 72 iterations each: workgroup 0 has tiles 0 and 1 and begins 2; 1 begins 4 after 24 of tile 2, and 3.
  EXPECT_EQ(iterations_until_whole(shares, 0),
            (std::vector<std::int64_t>{32, 64, 72, 56, 72, 48, 72, 40, 72}));
}

TEST(ProductShares, RefuseMorePartsThanCanBeScheduledAndNameTheKnob) {
  ScheduleBuilder builder("test", 1);
  SharingKnobs knobs;
  knobs.sharing = ProductSharing::fixed_split;
  knobs.split = 256;
  const MatmulTile tile{16, 16, 16, 1, Pipeline::overlapped};
  const std::string refusal = refusal_by([&] {
    share_products(builder, find_machine("mi300x-8").gpu, knobs, tile, 304, {{1 << 16, 1 << 16}});
  });
  EXPECT_EQ(refusal.rfind("k_split: ", 0), 0U) << refusal;
}

}  // namespace
}  // namespace tritax
