// Bands, ties and domains of predictions.
#include "sim/study/standing.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "model/core/error.hpp"
#include "model/workloads/registry.hpp"

namespace tritax {
namespace {

Problem product(std::int64_t m, std::int64_t n, std::int64_t k, int gpus) {
  Problem problem = problem_of(*workloads().front());
  problem.values.give("m", m);
  problem.values.give("n", n);
  problem.values.give("k", k);
  problem.values.give("gpus", gpus);
  return problem;
}

Machine compared_machine() {
  Machine machine = find_machine("mi300x-8");
  const std::string workload(workloads().front()->name);
  machine.compared = {
      {workload, {{"m", {}, 512, 1024}, {"gpus", {}, 8, 8}, {"dtype", {"fp16"}}}, 9, 0.1, "a test"}};
  machine.doubts = {{workload, "library", {{"m", {}, 1, 600}}, "It is too slow."}};
  return machine;
}

TEST(Standing, AProblemLikeThoseComparedHasTheirResidualAndNoCaution) {
  const Standing standing = standing_of(product(512, 4096, 4096, 8), compared_machine());
  EXPECT_EQ(standing.residual, 0.1);
  EXPECT_EQ(standing.source, "a test");
  EXPECT_TRUE(standing.cautions.empty());
}

TEST(Standing, WhatLiesOutsideIsSaidWithTheRangesThatItMisses) {
  const Standing standing = standing_of(product(64, 4096, 4096, 2), compared_machine());
  ASSERT_EQ(standing.cautions.size(), 1U);
  EXPECT_EQ(standing.cautions[0],
            "Nothing like it was ever compared: the 9 predictions of gemm-all-scatter on mi300x-8 that were "
            "have m 512 to "
            "1024; gpus 8.");
}

TEST(Standing, AMachineThatWasChangedOrNeverComparedIsSaid) {
  Machine machine = compared_machine();
  machine.changes.push_back({"fabric.link", "32 GB/s", "64 GB/s", false});
  EXPECT_EQ(standing_of(product(512, 4096, 4096, 8), machine).cautions.size(), 1U);
  machine.compared.clear();
  const Standing standing = standing_of(product(512, 4096, 4096, 8), machine);
  ASSERT_EQ(standing.cautions.size(), 1U);
  EXPECT_NE(standing.cautions[0].find("was ever compared"), std::string::npos);
}

TEST(Standing, ATieIsWhatTheBandCannotPart) {
  EXPECT_TRUE(is_tie(100, 109, 0.1));
  EXPECT_TRUE(is_tie(109, 100, 0.1));
  EXPECT_FALSE(is_tie(100, 111, 0.1));
  EXPECT_EQ(ranks_with_ties({100, 105, 110, 120, 125, 200}, 0.1), (std::vector<int>{1, 1, 1, 4, 4, 6}));
  EXPECT_EQ(ranks_with_ties({100, 101}, 0), (std::vector<int>{1, 2}));
}

TEST(Standing, DoubtsAreOfOnePatternAndItsRange) {
  const Machine machine = compared_machine();
  EXPECT_NE(doubt_of(product(512, 4096, 4096, 8), "library", machine), nullptr);
  EXPECT_EQ(doubt_of(product(601, 4096, 4096, 8), "library", machine), nullptr);
  EXPECT_EQ(doubt_of(product(512, 4096, 4096, 8), "fused-sequential", machine), nullptr);
}

TEST(Standing, FieldsThatTheWorkloadDoesNotHaveAreRefused) {
  Machine machine = compared_machine();
  machine.compared[0].ranges.push_back({"mm", {}, 1, 2});
  EXPECT_THROW(standing_of(product(512, 4096, 4096, 8), machine), UserError);
  machine = compared_machine();
  machine.compared[0].ranges[0] = {"m", {"fp16"}};
  EXPECT_THROW(standing_of(product(512, 4096, 4096, 8), machine), UserError);
}

TEST(Standing, SetsOfComparisonsHaveTheirRangesAndTwoOfThreeErrors) {
  const std::vector<MachineComparisons> sets = compared_sets({{"a", product(1, 8, 8, 2), 0.01},
                                                              {"a", product(64, 8, 8, 8), -0.04},
                                                              {"b", product(2, 8, 8, 2), 0.5},
                                                              {"a", product(9, 8, 8, 2), 0.02},
                                                              {"a", product(9, 8, 8, 2), 0.03}});
  ASSERT_EQ(sets.size(), 2U);
  EXPECT_EQ(sets[0].machine, "a");
  EXPECT_EQ(sets[0].set.count, 4);
  EXPECT_DOUBLE_EQ(sets[0].set.residual, 0.03);
  const FieldRange& m = sets[0].set.ranges[0];
  EXPECT_EQ(m.field, "m");
  EXPECT_EQ(m.low, 1);
  EXPECT_EQ(m.high, 64);
}

TEST(ShippedMachines, StateAResidualWithItsSourceAndFieldsThatExist) {
  for (const std::string& name : shipped_machines()) {
    SCOPED_TRACE(name);
    const Machine machine = find_machine(name);
    // Those of data sheets say so, and need claim nothing.
    const bool from_data_sheets = machine.description.find("data sheet only") != std::string::npos;
    EXPECT_TRUE(from_data_sheets || !machine.compared.empty());
    for (const ComparedSet& set : machine.compared) {
      const auto workload = std::find_if(workloads().begin(), workloads().end(),
                                         [&](const Workload* one) { return one->name == set.workload; });
      ASSERT_NE(workload, workloads().end()) << set.workload;
      EXPECT_EQ(set.source.rfind("tritax ", 0), 0U) << set.source;
      EXPECT_NO_THROW(standing_of(problem_of(**workload), machine));
    }
    for (const Doubt& doubt : machine.doubts) {
      const auto workload = std::find_if(workloads().begin(), workloads().end(),
                                         [&](const Workload* one) { return one->name == doubt.workload; });
      ASSERT_NE(workload, workloads().end()) << doubt.workload;
      EXPECT_NO_THROW(find_pattern(**workload, doubt.pattern, "doubt"));
      EXPECT_NO_THROW(doubt_of(problem_of(**workload), doubt.pattern, machine));
    }
  }
}

}  // namespace
}  // namespace tritax
