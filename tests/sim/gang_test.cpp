// Gang placement: a kernel starts whole or not at all.
#include <gtest/gtest.h>

#include "hand_machine.hpp"
#include "model/core/error.hpp"

namespace tritax {
namespace {

using hand::Draft;
using hand::kExact;
using hand::kStepNs;
using hand::Observed;
using hand::run;

// On the eight compute units one works for three steps; "whole" needs all of them for one, and "late", which
// is launched last, four for one.
Schedule one_is_busy(Placement placement, bool late) {
  Draft draft(1);
  const auto add = [&](const std::string& name, int workgroups, int steps, int stream) {
    const auto kernel = draft.gemm_kernel(name, 0);
    for (int w = 0; w < workgroups; ++w) {
      draft.builder.workgroup(kernel);
      for (int step = 0; step < steps; ++step) draft.matmul(w);
    }
    draft.builder.launch(0, kernel, stream);
  };
  add("busy", 1, 3, 0);
  add("whole", 8, 1, 1);
  if (late) add("late", 4, 1, 2);
  draft.builder.host(0, HostOpKind::device_synchronize);
  Schedule schedule = draft.builder.finish();
  schedule.kernels[1].placement = placement;
  return schedule;
}

TEST(Gang, StartsWhenThereIsRoomForAllOfIt) {
  const Observed gang = run(one_is_busy(Placement::gang, false), hand::machine());
  const Observed persistent = run(one_is_busy(Placement::persistent, false), hand::machine());
  int early = 0;
  for (std::uint32_t w = 0; w < 8; ++w) {
    EXPECT_NEAR((gang.seen.ops.at({1, w, 0}).begin_ns), 3 * kStepNs, kExact);
    early += persistent.seen.ops.at({1, w, 0}).begin_ns < kExact;
  }
  EXPECT_EQ(early, 7);
  EXPECT_NEAR(gang.result.makespan_ns, 4 * kStepNs, kExact);
}

TEST(Gang, LetsOthersGoAheadWhileItWaits) {
  const Observed out = run(one_is_busy(Placement::gang, true), hand::machine());
  EXPECT_NEAR(out.seen.kernels.at(2).end_ns, kStepNs, kExact);
  EXPECT_NEAR((out.seen.ops.at({1, 0, 0}).begin_ns), 3 * kStepNs, kExact);
}

TEST(Gang, ThatNoGpuCanHoldStallsWithAWordOfIt) {
  Draft draft(1);
  const auto kernel = draft.gemm_kernel("whole", 0, 0, 2);
  for (int w = 0; w < 3; ++w) draft.builder.workgroup(kernel);
  draft.builder.launch(0, kernel);
  draft.builder.host(0, HostOpKind::device_synchronize);
  Schedule schedule = draft.builder.finish();
  schedule.kernels[0].placement = Placement::gang;
  try {
    simulate(schedule, hand::machine());
    FAIL();
  } catch (const UserError& error) {
    EXPECT_NE(
        std::string(error.what()).find("'whole' rank 0: 3 of 3 workgroups wait for room for all of them"),
        std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace tritax
