// Crossovers of a sweep: where, between which patterns, and whether the model can tell.
#include "sim/study/taxonomy.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "sim/account_fields.hpp"

namespace tritax {
namespace {

const std::array<Pattern, 3> kThreePatterns{
    {{.name = "a", .summary = ""}, {.name = "b", .summary = ""}, {.name = "c", .summary = ""}}};

// Times of the patterns in order; 0: it cannot be built.
std::vector<Candidate> candidates_of(const std::vector<double>& times_ns) {
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < times_ns.size(); ++i) {
    if (times_ns[i] == 0) continue;
    Candidate& one = candidates.emplace_back();
    one.pattern = &kThreePatterns[i];
    one.time_ns = 1e9 * times_ns[i];
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& x, const Candidate& y) { return x.time_ns < y.time_ns; });
  return candidates;
}

struct Swept {
  std::vector<std::vector<Candidate>> found;
  Trust trust;
  std::vector<SweepPoint> points;
};

std::unique_ptr<Swept> swept(const std::vector<std::pair<double, std::vector<double>>>& rows, double band) {
  auto sweep = std::make_unique<Swept>();
  if (band > 0) sweep->trust.own = {.off = band, .sets = 9, .count = 9};
  for (const auto& [value, times] : rows) sweep->found.push_back(candidates_of(times));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    sweep->points.push_back({rows[i].first, &sweep->found[i], &sweep->trust});
  }
  return sweep;
}

TEST(Taxonomy, UsefulTimeAndTaxesAddUpToTheTime) {
  TimeAccount account;
  account.compute_ns = 1;
  account.memory_ns = 2;
  account.wire_ns = 4;
  account.launch_ns = 8;
  account.bulk_synchronous_ns = 16;
  account.locality_ns = 32;
  account.contention_ns = 64;
  account.harness_ns = 128;
  EXPECT_EQ(useful_ns(account), 7);
  EXPECT_EQ(useful_ns(account) + 8 + 16 + 32 + 64 + 128, account.sum_ns());
}

TEST(Taxonomy, ACrossoverLiesWhereTwoPowerLawsMeet) {
  const auto sweep = swept({{64, {10, 12}}, {128, {20, 15}}, {256, {40, 20}}}, 0);
  const std::vector<Crossover> changes = crossovers_of(sweep->points);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].before, 0U);
  EXPECT_EQ(changes[0].after, 1U);
  EXPECT_EQ(changes[0].from->name, "a");
  EXPECT_EQ(changes[0].to->name, "b");
  EXPECT_NEAR(*changes[0].at, 83.7, 0.1);  // the example of the header
  EXPECT_FALSE(changes[0].tie_before || changes[0].tie_after);
}

TEST(Taxonomy, ATieIsMarkedOnTheSideWhereTheBandCannotPartTheTwo) {
  const auto sweep = swept({{64, {10, 11}}, {128, {20, 15}}}, 0.15);
  const std::vector<Crossover> changes = crossovers_of(sweep->points);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_TRUE(changes[0].tie_before);
  EXPECT_FALSE(changes[0].tie_after);
}

TEST(Taxonomy, ValuesWithoutAnAnswerAreLeftOut) {
  const auto sweep = swept({{1, {0, 0}}, {2, {1, 2}}, {4, {0, 0}}, {8, {2, 1}}, {16, {0, 0}}}, 0);
  const std::vector<Crossover> changes = crossovers_of(sweep->points);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].before, 1U);
  EXPECT_EQ(changes[0].after, 3U);
  EXPECT_NEAR(*changes[0].at, 4, 1e-9);
}

TEST(Taxonomy, APatternThatCannotBeBuiltOnOneSideHasNoCrossingPoint) {
  const auto sweep = swept({{2, {0, 2}}, {4, {1, 2}}}, 0.5);
  const std::vector<Crossover> changes = crossovers_of(sweep->points);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_FALSE(changes[0].at.has_value());
  EXPECT_FALSE(changes[0].tie_before);
}

RC_GTEST_PROP(Taxonomy, EveryChangeOfTheBestIsACrossoverBetweenItsValues, ()) {
  const auto times = *rc::gen::container<std::vector<std::array<int, 3>>>(
      rc::gen::container<std::array<int, 3>>(rc::gen::inRange(1, 100)));
  std::vector<std::pair<double, std::vector<double>>> rows;
  double value = 1;
  for (const auto& [a, b, c] : times) rows.push_back({value *= 2, {1.0 * a, 1.0 * b, 1.0 * c}});
  const auto sweep = swept(rows, 0.1);
  const std::vector<Crossover> changes = crossovers_of(sweep->points);
  std::size_t next = 0;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const Pattern* before = sweep->found[i - 1].front().pattern;
    const Pattern* after = sweep->found[i].front().pattern;
    if (before == after) continue;
    RC_ASSERT(next < changes.size());
    const Crossover& change = changes[next++];
    RC_ASSERT(change.before == i - 1 && change.after == i && change.from == before && change.to == after);
    RC_ASSERT(*change.at >= rows[i - 1].first * (1 - 1e-12) && *change.at <= rows[i].first * (1 + 1e-12));
  }
  RC_ASSERT(next == changes.size());
}

}  // namespace
}  // namespace tritax
