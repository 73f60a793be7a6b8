// `compare`: rows by id, parts by how much they changed, and bad files refused.
#include "sim/study/compare.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "model/core/error.hpp"

namespace tritax {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string run_of(const std::string& id, double time, double compute, double wire,
                   const std::string& machine = "a-8", const std::string& tile = "256x256x64") {
  return "{\"id\":\"" + id + "\",\"time_us\":" + std::to_string(time) +
         ",\"critical_path\":{\"compute_us\":" + std::to_string(compute) +
         ",\"wire_us\":" + std::to_string(wire) + "},\"version\":\"0.1.0\",\"machine\":\"" + machine +
         "\",\"workload\":{\"name\":\"gemm\",\"m\":64},\"knobs\":{\"tile\":\"" + tile + "\",\"waves\":8}}";
}

ResultFile runs(const std::string& list, const std::string& origin = "a.json") {
  return parse_result(R"({"schema":"tritax.simulate/1","runs":[)" + list + "]}", origin);
}

std::string message_of(const std::string& json) {
  try {
    parse_result(json, "a.json");
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(Compare, SaysWhichPartMadeARunSlower) {
  const auto comparison = compare_results(runs(run_of("one", 100, 60, 40)), runs(run_of("one", 110, 59, 51)));
  ASSERT_EQ(comparison.rows.size(), 1u);
  const RowComparison& row = comparison.rows[0];
  EXPECT_NEAR(row.change(), 0.1, 1e-12);
  EXPECT_EQ(row.parts[0].part, "wire");
  EXPECT_DOUBLE_EQ(row.parts[0].change_us(), 11);
  EXPECT_EQ(row.parts[1].part, "compute");
  EXPECT_EQ(describe_change(row), "slower by 10.0 us (10.0 %): wire +11.0");
  EXPECT_TRUE(row.differences.empty());
}

// Exchanging the files turns every sign.
TEST(Compare, IsTheOtherWayRoundTheOtherWayRound) {
  const ResultFile a = runs(run_of("one", 100, 60, 40) + "," + run_of("two", 50, 50, 0));
  const ResultFile b = runs(run_of("one", 90, 61, 29) + "," + run_of("two", 70, 40, 30));
  const auto there = compare_results(a, b);
  const auto back = compare_results(b, a);
  for (std::size_t i = 0; i < 2; ++i) {
    ASSERT_EQ(there.rows[i].parts.size(), back.rows[i].parts.size());
    for (std::size_t p = 0; p < there.rows[i].parts.size(); ++p) {
      EXPECT_EQ(there.rows[i].parts[p].part, back.rows[i].parts[p].part);
      EXPECT_DOUBLE_EQ(there.rows[i].parts[p].change_us(), -back.rows[i].parts[p].change_us());
    }
  }
}

TEST(Compare, NamesWhatTheRunsDifferIn) {
  const auto comparison = compare_results(runs(run_of("one", 100, 60, 40)),
                                          runs(run_of("one", 100, 60, 40, "b-8", "128x128x64")));
  const RowComparison& row = comparison.rows[0];
  EXPECT_EQ(describe_change(row), "unchanged");
  ASSERT_EQ(row.differences.size(), 2u);
  EXPECT_EQ(row.differences[0].name, "machine");
  EXPECT_EQ(row.differences[0].before, "a-8");
  EXPECT_EQ(row.differences[0].after, "b-8");
  EXPECT_EQ(row.differences[1].name, "tile");
}

TEST(Compare, ListsWhatOnlyOneHas) {
  const auto comparison = compare_results(runs(run_of("one", 1, 1, 0) + "," + run_of("two", 1, 1, 0)),
                                          runs(run_of("two", 1, 1, 0) + "," + run_of("three", 1, 1, 0)));
  ASSERT_EQ(comparison.rows.size(), 1u);
  EXPECT_EQ(comparison.rows[0].id, "two");
  EXPECT_THAT(comparison.only_before, ElementsAre("one"));
  EXPECT_THAT(comparison.only_after, ElementsAre("three"));
}

TEST(Compare, TakesSingleRunsWhateverTheyAreCalled) {
  const auto comparison = compare_results(runs(run_of("one", 1, 1, 0)), runs(run_of("other", 2, 1, 1)));
  EXPECT_EQ(comparison.rows[0].id, "one -> other");
}

TEST(Compare, RefusesFilesWithNothingInCommon) {
  const ResultFile a = runs(run_of("one", 1, 1, 0) + "," + run_of("two", 1, 1, 0));
  const ResultFile b = runs(run_of("three", 1, 1, 0) + "," + run_of("four", 1, 1, 0), "b.json");
  try {
    compare_results(a, b);
    FAIL();
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("'a.json' and 'b.json' have no row in common"));
    EXPECT_THAT(error.what(), HasSubstr("one, two"));
  }
}

TEST(Compare, ReadsAdviceAndLayersByPatternAndStep) {
  const ResultFile advice = parse_result(
      R"({"schema":"tritax.advise/1","candidates":[{"pattern":"p","time_us":3,"critical_path":{"compute_us":3}}]})",
      "a.json");
  EXPECT_EQ(advice.rows[0].id, "p");
  const ResultFile layer = parse_result(
      R"({"schema":"tritax.layer/1","steps":[{"step":"qkv","time_us":3,"taxes":{"useful_us":2,"launch_us":1}}]})",
      "a.json");
  EXPECT_EQ(layer.rows[0].id, "qkv");
  EXPECT_EQ(layer.rows[0].parts[1].first, "launch");
}

TEST(Compare, SaysChangesOfTheMachineInWords) {
  const auto changed = [](const std::string& changes) {
    return parse_result(
        R"({"schema":"tritax.explain/1","id":"a","time_us":1,"critical_path":{},"machine_changes":)" +
            changes + "}",
        "a.json");
  };
  const auto comparison = compare_results(changed("[]"), changed(R"x(["x=1 (was 2)","y=3"])x"));
  EXPECT_EQ(comparison.rows[0].differences[0].before, "none");
  EXPECT_EQ(comparison.rows[0].differences[0].after, "x=1 (was 2), y=3");
}

// Two points of a sweep have one id.
TEST(Compare, NumbersRowsOfOneId) {
  const ResultFile file = runs(run_of("one", 1, 1, 0) + "," + run_of("one", 2, 2, 0));
  EXPECT_EQ(file.rows[0].id, "one");
  EXPECT_EQ(file.rows[1].id, "one (2)");
  const ResultFile taken =
      runs(run_of("one", 1, 1, 0) + "," + run_of("one (2)", 2, 2, 0) + "," + run_of("one", 3, 3, 0));
  EXPECT_EQ(taken.rows[2].id, "one (3)");
}

TEST(Compare, RefusesWhatIsNoResultWithPlaceAndWhatIsAllowed) {
  EXPECT_THAT(message_of("{"), HasSubstr("a.json: is not a JSON object; give what --json of"));
  EXPECT_THAT(message_of("{}"), HasSubstr("the file has no \"schema\""));
  EXPECT_THAT(message_of(R"({"schema":"tritax.machine/1"})"),
              HasSubstr("schema 'tritax.machine/1' cannot be compared; allowed: tritax.simulate/1"));
  EXPECT_THAT(message_of(R"({"schema":"tritax.simulate/1","runs":3})"), HasSubstr("\"runs\" is not a list"));
  EXPECT_THAT(message_of(R"({"schema":"tritax.simulate/1","runs":[]})"), HasSubstr("has no run to compare"));
  EXPECT_THAT(
      message_of(R"({"schema":"tritax.simulate/1","runs":[{"id":"a","time_us":0,"critical_path":{}}]})"),
      HasSubstr("runs[0]: time_us = 0 is not allowed"));
  EXPECT_THAT(message_of(R"({"schema":"tritax.simulate/1","runs":[{"id":"a","time_us":"x"}]})"),
              HasSubstr("runs[0]: time_us is not a number"));
  EXPECT_THAT(message_of(R"({"schema":"tritax.simulate/1","runs":[{"id":"a","time_us":1}]})"),
              HasSubstr("runs[0] has no \"critical_path\""));
  EXPECT_THAT(message_of(std::string(5000, '[')), StartsWith("a.json: is nested more than 32 levels deep"));
}

}  // namespace
}  // namespace tritax
