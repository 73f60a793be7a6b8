// Bands, ties, and the sentence where nothing comparable was measured.
#include "sim/study/trust.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "model/core/error.hpp"
#include "model/workloads/registry.hpp"

namespace tritax {
namespace {

using testing::HasSubstr;

constexpr double kLong = 1e12;  // ns; hosts do not count

Problem product(std::int64_t m, std::int64_t n, std::int64_t k, int gpus) {
  Problem problem = problem_of(*workloads().front());
  problem.values.give("m", m);
  problem.values.give("n", n);
  problem.values.give("k", k);
  problem.values.give("gpus", gpus);
  return problem;
}

// Ten comparisons of 512 to 1024 rows on 8 MI300X.
ComparedSet a_set(const std::string& name, Compared of, double off, bool blind = false) {
  return {name,
          "MI300X",
          std::string(workloads().front()->name),
          of,
          blind,
          10,
          {off},
          {{"m", {}, 512, 1024}, {"gpus", {}, 8, 8}, {"dtype", {"fp16"}}}};
}

const Machine& mi300x() {
  static const Machine machine = find_machine("mi300x-8");
  return machine;
}

Trust trust(const Problem& problem, const std::vector<ComparedSet>& sets, std::string_view but = {}) {
  return trust_of(problem, mi300x(), sets, but);
}

TEST(Trust, AProblemLikeThoseComparedHasTheirBandAndNoCaution) {
  const Trust found = trust(product(512, 4096, 4096, 8),
                            {a_set("a", Compared::own, 0.1), a_set("a", Compared::library, 0.2)});
  EXPECT_DOUBLE_EQ(found.own.off, 0.1);
  EXPECT_DOUBLE_EQ(found.library.off, 0.2);
  EXPECT_FALSE(found.ratio.known());
  EXPECT_EQ(found.source, "10 comparisons of own in a; 10 comparisons of library in a");
  EXPECT_TRUE(found.cautions.empty());
}

TEST(Trust, NumbersMayBeTwiceAndHalfAndBf16IsLikeFp16) {
  const std::vector<ComparedSet> sets{a_set("a", Compared::own, 0.1)};
  Problem problem = product(256, 64, 64, 4);
  problem.values.give("dtype", static_cast<std::int64_t>(DType::bf16));
  EXPECT_TRUE(trust(problem, sets).own.known());
  EXPECT_TRUE(trust(product(2048, 64, 64, 8), sets).own.known());
  EXPECT_FALSE(trust(product(255, 64, 64, 8), sets).own.known());
  EXPECT_FALSE(trust(product(2049, 64, 64, 8), sets).own.known());
  problem.values.give("dtype", static_cast<std::int64_t>(DType::fp8));
  EXPECT_FALSE(trust(problem, sets).own.known());
}

TEST(Trust, OneGpuIsLikeOneGpuOnly) {
  ComparedSet set = a_set("a", Compared::own, 0.1);
  set.ranges[1] = {"gpus", {}, 2, 2};
  EXPECT_FALSE(trust(product(512, 64, 64, 1), {set}).own.known());
  set.ranges[1] = {"gpus", {}, 1, 1};
  EXPECT_TRUE(trust(product(512, 64, 64, 1), {set}).own.known());
  EXPECT_FALSE(trust(product(512, 64, 64, 2), {set}).own.known());
}

TEST(Trust, OtherGpusKindsOfKernelsAndTooFewMakeNoBandButASentence) {
  const Problem problem = product(512, 4096, 4096, 8);
  ComparedSet other = a_set("h200-2-x", Compared::own, 0.3);
  other.gpu = "H200";
  ComparedSet few = a_set("b", Compared::own, 0.2);
  few.count = kFewestCompared - 1;
  for (const ComparedSet& set : {other, few, a_set("c", Compared::library, 0.25)}) {
    const Trust found = trust(problem, {set});
    EXPECT_FALSE(found.own.known());
    ASSERT_EQ(found.cautions.size(), 1U);
    EXPECT_THAT(found.cautions[0], testing::StartsWith("Nothing comparable to "));
    EXPECT_THAT(found.cautions[0], HasSubstr("; nine of ten similar predictions were within "));
    EXPECT_THAT(found.cautions[0], HasSubstr("of " + set.set + " on " + set.gpu));
  }
  EXPECT_EQ(trust(problem, {}).cautions,
            std::vector<std::string>{"Nothing comparable to gemm-all-scatter was measured."});
}

TEST(Trust, WhatLiesOutsideIsSaidWithTheRangesThatItMisses) {
  const Trust found = trust(product(64, 4096, 4096, 2), {a_set("a", Compared::own, 0.1)});
  ASSERT_EQ(found.cautions.size(), 1U);
  EXPECT_EQ(
      found.cautions[0],
      "Nothing comparable to gemm-all-scatter was measured; nine of ten similar predictions were within 10 % "
      "(nearest: own of a on MI300X, m=512..1024 gpus=8..8).");
}

TEST(Trust, BlindSetsCountAloneWhereTheyAreEnough) {
  const Problem problem = product(512, 64, 64, 8);
  std::vector<ComparedSet> sets{a_set("a", Compared::own, 0.1), a_set("b", Compared::own, 0.3, true)};
  EXPECT_DOUBLE_EQ(trust(problem, sets).own.off, 0.3);
  sets[1].count = 1;
  EXPECT_EQ(trust(problem, sets).own.sets, 2);
}

TEST(Trust, ASetCanBeJudgedByTheOthers) {
  const std::vector<ComparedSet> sets{a_set("a", Compared::own, 0.1), a_set("b", Compared::own, 0.3)};
  EXPECT_DOUBLE_EQ(trust(product(512, 64, 64, 8), sets, "b").own.off, 0.1);
}

TEST(Trust, HostsDifferMoreWhereSetsAreFewAndRunsShort) {
  EXPECT_DOUBLE_EQ((Band{0.12, 4, 80}.at(30e3)), std::hypot(0.12, std::sqrt(0.5) * 5.1 / 30));
  EXPECT_NEAR((Band{0.12, 4, 80}.at(300e3)), 0.1206, 1e-4);
  EXPECT_EQ(Band().at(1e3), 0);
}

TEST(Trust, OfTwoSidesIsOfTheirRatioOrOfBoth) {
  const Workload& workload = *workloads().front();
  const Pattern& library = find_pattern(workload, "library", "test");
  const Pattern& own = *std::find_if(workload.patterns.begin(), workload.patterns.end(),
                                     [](const Pattern& one) { return !one.vendor; });
  Trust found;
  found.own = {0.3, 9, 90};
  EXPECT_EQ(found.between(own, kLong, library, kLong), 0);
  EXPECT_NEAR(found.between(own, kLong, own, kLong), 0.3, 1e-6);
  found.library = {0.4, 9, 90};
  EXPECT_NEAR(found.between(own, kLong, library, kLong), 0.5, 1e-6);
  found.ratio = {0.2, 9, 90};
  EXPECT_NEAR(found.between(own, kLong, library, kLong), 0.2, 1e-6);
}

TEST(Trust, AMachineThatWasChangedIsSaid) {
  Machine machine = mi300x();
  machine.changes.push_back({"fabric.link", "32 GB/s", "64 GB/s", false});
  const std::vector<ComparedSet> sets{a_set("a", Compared::own_over_library, 0.1),
                                      a_set("a", Compared::own, 0.1)};
  EXPECT_EQ(trust_of(product(512, 4096, 4096, 8), machine, sets).cautions,
            std::vector<std::string>{"The band was measured on mi300x-8 without the changes."});
}

TEST(Trust, ATieIsWhatTheBandCannotPart) {
  EXPECT_TRUE(is_tie(100, 109, 0.1));
  EXPECT_TRUE(is_tie(109, 100, 0.1));
  EXPECT_FALSE(is_tie(100, 111, 0.1));
  const auto same = [](double band) { return [band](std::size_t, std::size_t) { return band; }; };
  EXPECT_EQ(ranks_with_ties({100, 105, 110, 120, 125, 200}, same(0.1)), (std::vector<int>{1, 1, 1, 4, 4, 6}));
  EXPECT_EQ(ranks_with_ties({100, 101}, same(0)), (std::vector<int>{1, 2}));
}

TEST(Trust, DoubtsAreOfOnePatternAndItsRange) {
  Machine machine = mi300x();
  machine.doubts = {
      {std::string(workloads().front()->name), "library", {{"m", {}, 1, 600}}, "It is too slow."}};
  EXPECT_NE(doubt_of(product(512, 4096, 4096, 8), "library", machine), nullptr);
  EXPECT_EQ(doubt_of(product(601, 4096, 4096, 8), "library", machine), nullptr);
  EXPECT_EQ(doubt_of(product(512, 4096, 4096, 8), "fused-sequential", machine), nullptr);
  machine.doubts[0].ranges[0] = {"m", {"fp16"}};
  EXPECT_THROW(doubt_of(product(512, 4096, 4096, 8), "library", machine), UserError);
}

TEST(Compared, SetsHaveTheirRangesAndAtMostTwentyErrors) {
  std::vector<Comparison> comparisons;
  for (int i = 0; i <= 100; ++i)
    comparisons.push_back({"a", "H200", product(8 + i, 8, 8, 2), Compared::own, 0.01 * i});
  comparisons.push_back({"a", "H200", product(1, 8, 8, 2), Compared::library, -0.5});
  const std::vector<ComparedSet> sets = compared_sets(comparisons);
  ASSERT_EQ(sets.size(), 2U);
  EXPECT_EQ(sets[0].count, 101);
  ASSERT_EQ(sets[0].off.size(), 20U);
  EXPECT_NEAR(sets[0].off[0], 0.025, 1e-12);
  EXPECT_NEAR(sets[0].off[19], 0.975, 1e-12);
  EXPECT_EQ(sets[0].ranges[0].field, "m");
  EXPECT_EQ(sets[0].ranges[0].high, 108);
  EXPECT_DOUBLE_EQ(sets[1].off[0], 1);  // half the time is twice as fast
}

TEST(Compared, WhatIsWrittenIsRead) {
  const std::vector<ComparedSet> sets =
      compared_sets({{"a", "H200", product(16, 8, 8, 2), Compared::own, 0.25}});
  const std::string csv = "set,gpu,workload,of,blind,count,off,problems\na,H200," + sets[0].workload +
                          ",own,true,1,0.25," + problems_text(sets[0].ranges) + "\n";
  const std::vector<ComparedSet> read = parse_compared(csv, "a test");
  ASSERT_EQ(read.size(), 1U);
  EXPECT_TRUE(read[0].blind);
  EXPECT_EQ(problems_text(read[0].ranges), problems_text(sets[0].ranges));
  EXPECT_EQ(read[0].off, sets[0].off);
  EXPECT_THROW(
      parse_compared("set,gpu,workload,of,blind,count,off,problems\na,b,c,own,true,1,x,m=1..2\n", "a"),
      UserError);
  EXPECT_THROW(
      parse_compared("set,gpu,workload,of,blind,count,off,problems\na,b,c,own,true,1,1,m=3..2\n", "a"),
      UserError);
}

TEST(ShippedComparisons, AreOfWorkloadsAndFieldsThatExist) {
  EXPECT_GT(shipped_comparisons().size(), 200U);
  for (const ComparedSet& set : shipped_comparisons()) {
    SCOPED_TRACE(set.set + ' ' + set.workload);
    const Workload& workload = find_workload(set.workload, "compared.csv");
    const Problem problem = problem_of(workload);
    for (const FieldRange& range : set.ranges) EXPECT_TRUE(problem.values.has(range.field)) << range.field;
    EXPECT_NO_THROW(outside_of(set, problem));
  }
}

// Whatever is asked of whichever machine: a band rests on comparisons that count as comparable, and where
// there is none the answer says so.
RC_GTEST_PROP(TrustLaw, NoBandWithoutComparableRows, ()) {
  const std::vector<std::string> machines = shipped_machines();
  const Machine machine = find_machine(*rc::gen::elementOf(machines));
  for (const Workload* workload : workloads()) {
    Problem problem = problem_of(*workload);
    for (const Spec& field : workload->fields) {
      if (field.columns() != 1 || field.kind == ValueKind::name || field.kind == ValueKind::file) continue;
      if (field.required) problem.values.give(field.name, *rc::gen::inRange<std::int64_t>(field.low, 16385));
    }
    std::int64_t own = 0, library = 0, ratio = 0;
    for (const ComparedSet& set : shipped_comparisons()) {
      if (set.workload != workload->name || set.gpu != machine.gpu.name || !outside_of(set, problem).empty())
        continue;
      (set.of == Compared::own ? own : set.of == Compared::library ? library : ratio) += set.count;
    }
    const Trust found = trust_of(problem, machine);
    RC_ASSERT(found.own.known() == (own >= kFewestCompared));
    RC_ASSERT(found.library.known() == (library >= kFewestCompared));
    RC_ASSERT(found.ratio.known() == (ratio >= kFewestCompared));
    RC_ASSERT((own + library + ratio > 0) || !found.cautions.empty());
    for (const Pattern& a : workload->patterns) {
      for (const Pattern& b : workload->patterns) {
        const bool band = found.between(a, kLong, b, kLong) > 0;
        RC_ASSERT(!band || own + library + ratio >= kFewestCompared);
        RC_ASSERT(band || found.ratio.known() || !found.cautions.empty());
      }
    }
  }
}

TEST(ShippedMachines, HaveDoubtsOfPatternsAndFieldsThatExist) {
  for (const std::string& name : shipped_machines()) {
    SCOPED_TRACE(name);
    const Machine machine = find_machine(name);
    for (const Doubt& doubt : machine.doubts) {
      const Workload& workload = find_workload(doubt.workload, "doubt");
      EXPECT_NO_THROW(find_pattern(workload, doubt.pattern, "doubt"));
      EXPECT_NO_THROW(doubt_of(problem_of(workload), doubt.pattern, machine));
    }
  }
}

}  // namespace
}  // namespace tritax
