// How much a run of a schedule is, counted by hand.
#include "model/schedule/operations.hpp"

#include <gtest/gtest.h>

#include "tests/schedule/small_schedules.hpp"

namespace tritax {
namespace {

// Two workgroups with three operations in all.
std::int32_t add_kernel(SmallSchedule& s, int rank) {
  const std::int32_t kernel = s.kernel("k", rank);
  s.builder.workgroup(kernel);
  s.compute(0);
  s.store(0, 1 - rank);
  s.builder.workgroup(kernel);
  s.compute(1);
  return kernel;
}

TEST(ExecutedOperations, AreWorkgroupsAndOperationsOfEveryLaunch) {
  SmallSchedule s;
  const std::int32_t on_first = add_kernel(s, 0);
  const std::int32_t on_second = add_kernel(s, 1);
  s.builder.launch(0, on_first);
  s.builder.launch(0, on_first);
  s.builder.launch(1, on_second);
  EXPECT_EQ(executed_operations(s.builder.finish()), 15u);
}

TEST(ExecutedOperations, CountThoseOfAGraphAtEveryLaunchOfIt) {
  SmallSchedule s;
  const std::int32_t kernel = add_kernel(s, 0);
  s.builder.graph_launch(0, {{kernel, 0}, {kernel, 0}});
  EXPECT_EQ(executed_operations(s.builder.finish()), 10u);
}

TEST(ExecutedOperations, OfNoLaunchAreNone) {
  SmallSchedule s;
  add_kernel(s, 0);
  EXPECT_EQ(executed_operations(s.builder.finish()), 0u);
}

}  // namespace
}  // namespace tritax
