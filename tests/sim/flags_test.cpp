// Flags on schedules small enough to be timed by hand: when a waiter sees a signal, and which stores the
// signal waits for.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "hand_machine.hpp"
#include "sim/simulate.hpp"

namespace tritax {
namespace {

using hand::Draft;
using hand::kExact;
using hand::kStepNs;
using hand::kTileBytes;
using hand::Observed;
using hand::run;

struct FlagTimes {
  double signalled = 0;  // end of the release
  double seen = 0;
};

enum class Distance { same_die, other_die, other_gpu };

// A workgroup computes and signals, another one waits. Workgroups 0 and 2 share a die, 0 and 1 do not.
FlagTimes signal_and_wait(const Machine& machine, Distance distance,
                          LockProtocol protocol = LockProtocol::load_store) {
  Draft draft(2);
  const auto ready = draft.builder.flags("ready", 1);
  const int waiter = distance == Distance::other_gpu ? 1 : 0;
  const auto producer = draft.gemm_kernel("produce", 0);
  draft.builder.workgroup(producer);
  draft.matmul(0);
  draft.signal(ready, 0, waiter, protocol);
  std::int32_t consumer = producer;
  if (distance == Distance::other_gpu) {
    consumer = draft.data_kernel("consume", 1);
    draft.builder.launch(1, consumer);
  }
  if (distance == Distance::same_die) {
    draft.builder.workgroup(producer);
    draft.builder.barrier();
  }
  draft.builder.workgroup(consumer);
  draft.wait(ready, 0, 1, protocol);
  draft.builder.launch(0, producer);
  const Observed out = run(draft.builder.finish(), machine);
  const std::uint32_t workgroup = distance == Distance::other_gpu  ? 0
                                  : distance == Distance::same_die ? 2
                                                                   : 1;
  return {out.seen.ops.at({0, 0, 1}).end_ns,
          out.seen.ops.at({static_cast<std::uint32_t>(consumer), workgroup, 0}).end_ns};
}

Machine with_flag_costs() {
  Machine machine = hand::machine(2);
  machine.gpu.flag_same_die_ns = 101;
  machine.gpu.flag_cross_die_ns = 203;
  machine.fabric.flag_latency_ns = 547;
  machine.gpu.release_ns = 50;
  return machine;
}

TEST(Flag, IsSeenAfterTheLatencyOfTheDistance) {
  const Machine machine = with_flag_costs();
  for (const auto& [distance, latency] :
       {std::pair{Distance::same_die, 101.0}, {Distance::other_die, 203.0}, {Distance::other_gpu, 547.0}}) {
    const FlagTimes times = signal_and_wait(machine, distance);
    EXPECT_NEAR(times.signalled, kStepNs + 50, kExact);
    EXPECT_NEAR(times.seen, kStepNs + 50 + latency, kExact);
  }
}

TEST(Flag, IsSeenWithTheFirstPollAfterItIsVisible) {
  Machine machine = with_flag_costs();
  machine.gpu.poll_load_ns = 300;  // polls at 0, 300, …, 1200, 1500, 1800
  EXPECT_NEAR(signal_and_wait(machine, Distance::same_die).seen, 1200, kExact);
  EXPECT_NEAR(signal_and_wait(machine, Distance::other_die).seen, 1500, kExact);
  EXPECT_NEAR(signal_and_wait(machine, Distance::other_gpu).seen, 1800, kExact);
}

TEST(Flag, AtomicProtocolsPayAnAtomicToRelease) {
  Machine machine = with_flag_costs();
  machine.gpu.poll_atomic_ns = 70;
  EXPECT_NEAR(signal_and_wait(machine, Distance::other_die, LockProtocol::exchange).signalled,
              kStepNs + 50 + 70, kExact);
  // The swap of the one who spins is in the way.
  const FlagTimes swap = signal_and_wait(machine, Distance::other_die, LockProtocol::compare_and_swap);
  EXPECT_NEAR(swap.signalled, kStepNs + 50 + 2 * 70, kExact);
  EXPECT_NEAR(swap.seen, std::ceil((swap.signalled + 203) / 70) * 70, kExact);
}

TEST(Flag, ToAPeerWaitsUntilTheOneBeforeIsKnownToBeThere) {
  Machine machine = with_flag_costs();
  for (const double round_trip_ns : {0.0, 30.0, 400.0}) {
    machine.fabric.signal_round_trip_ns = round_trip_ns;
    const double next = std::max(50.0, round_trip_ns);
    Draft draft(2);
    const auto ready = draft.builder.flags("ready", 3);
    const auto kernel = draft.data_kernel("signal", 0);
    draft.builder.workgroup(kernel);
    draft.signal(ready, 0, 1);
    draft.signal(ready, 1, 1);
    draft.signal(ready, 2, 0);  // a release of any flag
    draft.builder.launch(0, kernel);
    const Observed out = run(draft.builder.finish(), machine);
    EXPECT_NEAR((out.seen.ops.at({0, 0, 0}).end_ns), 50, kExact);
    EXPECT_NEAR((out.seen.ops.at({0, 0, 1}).end_ns), 50 + next, kExact);
    EXPECT_NEAR((out.seen.ops.at({0, 0, 2}).end_ns), 50 + 2 * next, kExact);
  }
}

TEST(Flag, AlreadySetCostsOnePoll) {
  Machine machine = with_flag_costs();
  machine.gpu.poll_load_ns = 300;
  Draft draft(2);
  const auto ready = draft.builder.flags("ready", 1);
  const auto kernel = draft.gemm_kernel("both", 0);
  draft.builder.workgroup(kernel);
  draft.signal(ready, 0, 0);
  draft.matmul(0);
  draft.wait(ready, 0);
  draft.builder.launch(0, kernel);
  const Observed out = run(draft.builder.finish(), machine);
  EXPECT_NEAR((out.seen.ops.at({0, 0, 2}).length_ns()), 300, kExact);
}

TEST(Flag, CountsSignalsUpToTheAwaitedValue) {
  Draft draft(1);
  const auto ready = draft.builder.flags("ready", 1);
  const auto kernel = draft.gemm_kernel("count", 0);
  draft.builder.workgroup(kernel);
  draft.wait(ready, 0, 3);
  for (int w = 1; w <= 3; ++w) {
    draft.builder.workgroup(kernel);
    for (int i = 0; i < w; ++i) draft.matmul(w);
    draft.signal(ready, 0, 0);
  }
  draft.builder.launch(0, kernel);
  const Observed out = run(draft.builder.finish(), hand::machine());
  EXPECT_NEAR((out.seen.ops.at({0, 0, 0}).end_ns), 3 * kStepNs, kExact);
}

TEST(Flag, ToAPeerWaitsForTheStoresBeforeIt) {
  Machine machine = with_flag_costs();
  machine.fabric.link_raw_gb_per_s = 8;
  machine.fabric.store_latency_ns = 330;
  Draft draft(2);
  const auto ready = draft.builder.flags("ready", 2);
  const auto kernel = draft.data_kernel("send", 0);
  draft.builder.workgroup(kernel);
  draft.builder.store(draft.c, Draft::tile(0), 1);
  draft.signal(ready, 0, 1);
  draft.signal(ready, 1, 1);  // nothing left to drain
  draft.builder.launch(0, kernel);
  const Observed out = run(draft.builder.finish(), machine);
  EXPECT_NEAR((out.seen.ops.at({0, 0, 1}).end_ns), kTileBytes / 8 + 330 + 50, kExact);
  EXPECT_NEAR((out.seen.ops.at({0, 0, 2}).end_ns), kTileBytes / 8 + 330 + 50 + 50, kExact);
}

}  // namespace
}  // namespace tritax
