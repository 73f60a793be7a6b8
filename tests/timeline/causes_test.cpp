// Which signal released which wait, and the critical path, on a timeline that can be followed by hand.
#include "model/timeline/causes.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "tests/timeline/small_timeline.hpp"

namespace tritax {
namespace {

using test::measured_tiles;
using test::tile_to_both;

struct Step {
  StepKind kind;
  std::uint32_t index;
  double begin_ns;
  double end_ns;
  bool operator==(const Step&) const = default;
};

std::vector<Step> path_of(const Timeline& timeline, const Schedule& schedule) {
  std::vector<Step> steps;
  for (const PathStep& step : critical_path_of(timeline, schedule, releases_of(timeline, schedule))) {
    steps.push_back({step.kind, step.index, step.begin_ns, step.end_ns});
  }
  return steps;
}

TEST(Releases, FindTheSignalThatAWaitSaw) {
  const std::vector<std::uint32_t> releases = releases_of(measured_tiles(), tile_to_both());
  ASSERT_EQ(releases.size(), 9u);
  for (std::size_t i = 0; i < releases.size(); ++i) EXPECT_EQ(releases[i], i == 1 ? 4u : kNoCause) << i;
}

TEST(Releases, FindNoneThatCameTooLate) {
  Timeline timeline = measured_tiles();
  timeline.ops[4].end_ns = 7700;  // after the wait had ended
  EXPECT_EQ(releases_of(timeline, tile_to_both())[1], kNoCause);
}

// Rank 1 ends last: it waited for rank 0, whose signal waited for its second store, which drained behind its
// first.
TEST(CriticalPath, GoesThroughTheFlagToTheRankThatWasWaitedFor) {
  const std::vector<Step> expected{
      {StepKind::op, 0, 0, 4000},       // matmul of rank 0
      {StepKind::op, 2, 4000, 5000},    // its first store
      {StepKind::op, 3, 5000, 7000},    // its second
      {StepKind::op, 4, 7000, 7500},    // signal
      {StepKind::op, 1, 7500, 7600},    // wait of rank 1
      {StepKind::op, 5, 7600, 11600},   // its matmul
      {StepKind::op, 6, 11600, 12500},  // stores
      {StepKind::op, 7, 12500, 15000},  //
      {StepKind::op, 8, 15000, 15700},  // signal
  };
  EXPECT_EQ(path_of(measured_tiles(), tile_to_both()), expected);
}

// With nothing to wait for the other rank is not on it.
TEST(CriticalPath, StaysOnOneRankWhereTheFlagStoodBefore) {
  Timeline timeline = measured_tiles();
  timeline.ops[1].begin_ns = 7550;  // its kernel came late
  timeline.kernels[1].begin_ns = 7550;
  const std::vector<Step> path = path_of(timeline, tile_to_both());
  ASSERT_FALSE(path.empty());
  EXPECT_EQ(path.front(), (Step{StepKind::kernel, 1, 0, 7550}));
  EXPECT_EQ(path[1], (Step{StepKind::op, 1, 7550, 7600}));
}

TEST(CriticalPath, IsEmptyOfNothing) { EXPECT_TRUE(path_of({}, tile_to_both()).empty()); }

}  // namespace
}  // namespace tritax
