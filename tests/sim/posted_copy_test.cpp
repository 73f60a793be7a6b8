// Copies that workgroups post to copy engines, timed by hand.
#include <gtest/gtest.h>

#include <string>

#include "hand_machine.hpp"
#include "model/core/error.hpp"
#include "model/schedule/check.hpp"
#include "sim/functional.hpp"
#include "sim/simulate.hpp"

namespace tritax {
namespace {

using hand::Draft;
using hand::kExact;
using hand::kTileBytes;
using hand::Observed;
using hand::run;

constexpr double kPacketNs = 500;
constexpr double kMovingNs = kTileBytes / 10;

Machine with_engines(int engines) {
  Machine machine = hand::machine(2);
  machine.copy_engine = {engines, 10, kPacketNs};
  return machine;
}

// Two workgroups of rank 0 post a tile each to rank 1, and tell it.
Schedule two_posts() {
  Draft draft(2);
  const auto ready = draft.builder.flags("ready", 2);
  const auto kernel = draft.data_kernel("post", 0);
  for (int number = 0; number < 2; ++number) {
    draft.builder.workgroup(kernel);
    const Rect tile = draft.tile(number);
    draft.builder.post(draft.c, tile, 1, draft.a, tile.row, tile.col, 0);
    draft.builder.signal(ready, number, 1, 1, Scope::system, LockProtocol::load_store);
  }
  const auto waits = draft.data_kernel("wait", 1);
  draft.builder.workgroup(waits);
  for (int number = 0; number < 2; ++number)
    draft.builder.wait(ready, number, 1, Scope::system, LockProtocol::load_store);
  draft.builder.load(draft.c, draft.tile(1), 1);
  draft.builder.launch(0, kernel);
  draft.builder.launch(1, waits);
  return draft.builder.finish();
}

TEST(PostedCopy, TakesAnEngineEachAndTheSignalWaitsForItsEnd) {
  const Observed out = run(two_posts(), with_engines(2));
  for (const std::uint32_t workgroup : {0u, 1u}) {
    EXPECT_NEAR((out.seen.ops.at({0, workgroup, 0}).begin_ns), 0, kExact);
    EXPECT_NEAR((out.seen.ops.at({0, workgroup, 0}).end_ns), kPacketNs + kMovingNs, kExact);
    EXPECT_NEAR((out.seen.ops.at({0, workgroup, 1}).begin_ns), kPacketNs + kMovingNs, kExact);
  }
}

TEST(PostedCopy, WaitsForAFreeEngine) {
  const Observed out = run(two_posts(), with_engines(1));
  EXPECT_NEAR((out.seen.ops.at({0, 0, 0}).end_ns), kPacketNs + kMovingNs, kExact);
  EXPECT_NEAR((out.seen.ops.at({0, 1, 0}).end_ns), 2 * (kPacketNs + kMovingNs), kExact);
  // The path goes through both transfers: packets are launch tax, bytes are wire time.
  EXPECT_NEAR(out.result.account.launch_ns, 2 * kPacketNs, kExact);
  EXPECT_NEAR(out.result.account.wire_ns, 2 * kMovingNs, kExact);
}

TEST(PostedCopy, IsACopyForCheckerAndExecutor) {
  const Schedule schedule = two_posts();
  EXPECT_TRUE(check_schedule(schedule).empty());
  Schedule without = schedule;
  for (Op& op : without.ops) {
    if (op.kind == OpKind::wait) op.value = 0;
  }
  EXPECT_FALSE(check_schedule(without).empty());
  Schedule wrong = schedule;
  wrong.ops[1].by_engine = true;  // the signal
  bool found = false;
  for (const Finding& finding : check_schedule(wrong))
    found = found || finding.message.find("a copy engine only copies") != std::string::npos;
  EXPECT_TRUE(found);
}

TEST(PostedCopy, IsRefusedWithoutEngines) {
  EXPECT_THROW(simulate(two_posts(), hand::machine(2)), UserError);
}

}  // namespace
}  // namespace tritax
