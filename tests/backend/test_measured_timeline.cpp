// Stamps as a timeline: every operation in its place.
#include <gtest/gtest.h>

#include "backend_hip/measured_timeline.hpp"
#include "model/timeline/op_times.hpp"
#include "tests/timeline/small_timeline.hpp"

namespace tritax::gpu {
namespace {

// As the executor reports them: by rank, in the order of the operations.
std::vector<StampedOp> stamps() {
  return {{0, 3, 0, 4},      {1, 3, 4.1, 5},     {2, 3, 4.2, 7},   {3, 3, 7, 7.5},  {4, 9, 0.5, 7.6},
          {5, 9, 7.6, 11.6}, {6, 9, 11.7, 12.5}, {7, 9, 11.8, 15}, {8, 9, 15, 15.7}};
}

TEST(MeasuredTimeline, PutsEveryStampInItsPlaceInOrderOfBegin) {
  const Schedule schedule = test::tile_to_both();
  const Timeline timeline = timeline_of(schedule, stamps());
  ASSERT_EQ(timeline.ops.size(), 9u);
  for (std::size_t i = 1; i < timeline.ops.size(); ++i) {
    EXPECT_LE(timeline.ops[i - 1].begin_ns, timeline.ops[i].begin_ns);
  }
  const OpInterval& wait = timeline.ops[1];
  EXPECT_EQ(wait.kind, OpKind::wait);
  EXPECT_EQ(wait.place.kernel, 1u);
  EXPECT_EQ(wait.place.rank, 1);
  EXPECT_EQ(wait.place.cu, 9);
  EXPECT_DOUBLE_EQ(wait.end_ns, 7600);
  ASSERT_EQ(timeline.kernels.size(), 2u);
  EXPECT_DOUBLE_EQ(timeline.kernels[1].begin_ns, 500);
  EXPECT_DOUBLE_EQ(timeline.kernels[1].end_ns, 15700);
}

TEST(MeasuredTimeline, KeepsTheClockOfWhatWasLongEnoughToTellIt) {
  std::vector<StampedOp> timed = stamps();
  timed[0].clock_ghz = 1.5;  // the first operation of rank 0 begins first
  const Timeline timeline = timeline_of(test::tile_to_both(), timed);
  EXPECT_EQ(timeline.ops[0].clock_ghz, 1.5);
  EXPECT_EQ(timeline.ops[1].clock_ghz, 0);
}

TEST(MeasuredTimeline, LeavesOutOperationsThatDidNotRun) {
  const Schedule schedule = test::tile_to_both();
  std::vector<StampedOp> some = stamps();
  some.resize(4);
  const Timeline timeline = timeline_of(schedule, some);
  EXPECT_EQ(timeline.ops.size(), 4u);
  EXPECT_EQ(timeline.kernels.size(), 1u);
  EXPECT_EQ(op_times(timeline, schedule).size(), 4u);
}

}  // namespace
}  // namespace tritax::gpu
