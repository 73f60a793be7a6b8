// The engine on schedules small enough to be timed by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "hand_machine.hpp"
#include "model/core/error.hpp"
#include "sim/simulate.hpp"
#include "tests/workloads/gemm_all_scatter.hpp"

namespace tritax {
namespace {

using hand::Draft;
using hand::kExact;
using hand::kStepNs;
using hand::kTile;
using hand::kTileBytes;
using hand::Observed;
using hand::run;

std::string stall_message(const Schedule& schedule, const Machine& machine) {
  try {
    simulate(schedule, machine);
  } catch (const UserError& error) {
    return error.what();
  }
  ADD_FAILURE() << "the simulation did not stall";
  return "";
}

TEST(Store, DrainsBehindTheNextMatmulAndHoldsBackTheNextStore) {
  Machine machine = hand::machine(2);
  machine.fabric.link_raw_gb_per_s = kTileBytes / 1500;  // a tile takes one and a half K steps
  Draft draft(2);
  const auto kernel = draft.gemm_kernel("gemm", 0);
  draft.builder.workgroup(kernel);
  for (int t = 0; t < 2; ++t) {
    draft.matmul(t);
    draft.builder.store(draft.c, Draft::tile(t), 1);
  }
  draft.builder.launch(0, kernel);
  draft.builder.host(0, HostOpKind::device_synchronize);
  const Schedule schedule = draft.builder.finish();
  const Observed overlapped = run(schedule, machine);
  // Matmul to 1000, store to 2500, beside it matmul to 2000, store from 2500 to 4000.
  EXPECT_NEAR((overlapped.seen.ops.at({0, 0, 2}).end_ns), 2000, kExact);
  EXPECT_NEAR((overlapped.seen.ops.at({0, 0, 3}).begin_ns), 2500, kExact);
  EXPECT_NEAR(overlapped.result.makespan_ns, 4000, kExact);
  // Where one counter orders loads behind stores, nothing overlaps.
  machine.gpu.loads_wait_for_stores = true;
  EXPECT_NEAR(run(schedule, machine).result.makespan_ns, 5000, kExact);
}

TEST(Locality, IsWhatReadingAnIntermediateAgainAdds) {
  Machine machine = hand::machine(2);
  machine.gpu.l2_latency_ns = machine.gpu.hbm_latency_ns = 400;
  machine.gpu.cu_remote_store_gb_per_s = 10;
  for (const bool written : {true, false}) {
    Draft draft(2);
    const auto kernel = draft.data_kernel("send", 0);
    draft.builder.workgroup(kernel);
    if (written) draft.builder.store(draft.c, Draft::tile(0), 0);
    draft.builder.copy(draft.c, Draft::tile(0), 1, draft.c, 0, 0, 0);
    draft.builder.launch(0, kernel);
    draft.builder.host(0, HostOpKind::device_synchronize);
    const Observed out = run(draft.builder.finish(), machine);
    EXPECT_NEAR(out.result.makespan_ns, 400 + kTileBytes / 10, kExact);
    EXPECT_NEAR(out.result.account.locality_ns, written ? 400 : 0, kExact);
    EXPECT_NEAR(out.result.account.wire_ns, kTileBytes / 10 + (written ? 0 : 400), kExact);
  }
}

// Waves of workgroups.

Schedule equal_workgroups(int count, std::int32_t cu_begin = 0, std::int32_t cu_end = 0) {
  Draft draft(1);
  const auto kernel = draft.gemm_kernel("gemm", 0, cu_begin, cu_end);
  for (int w = 0; w < count; ++w) {
    draft.builder.workgroup(kernel);
    draft.matmul(w);
  }
  draft.builder.launch(0, kernel);
  draft.builder.host(0, HostOpKind::device_synchronize);
  return draft.builder.finish();
}

int ceil_div(int a, int b) { return (a + b - 1) / b; }

TEST(Waves, EqualWorkgroupsTakeOneRoundPerFilledGpu) {
  for (const auto& [dies, cus] : {std::pair{1, 1}, {1, 7}, {2, 4}, {4, 2}, {3, 5}}) {
    Machine machine = hand::machine();
    machine.gpu.xcds = dies;
    machine.gpu.cus_per_xcd = cus;
    for (int workgroups = 1; workgroups <= 40; ++workgroups) {
      // Workgroup w goes to die w mod dies, and no die helps another: the fullest die decides.
      const int rounds = ceil_div(ceil_div(workgroups, dies), cus);
      EXPECT_NEAR(simulate(equal_workgroups(workgroups), machine).makespan_ns, rounds * kStepNs, kExact)
          << workgroups << " workgroups on " << dies << " dies of " << cus << " compute units";
    }
  }
}

TEST(Waves, GoRoundRobinOverDiesAndFillEachInOrder) {
  const Observed out = run(equal_workgroups(12), hand::machine());
  for (std::uint32_t w = 0; w < 8; ++w) {
    EXPECT_EQ((out.seen.cu_of.at({0, w})), static_cast<int>((w % 2) * 4 + w / 2));
  }
  for (std::uint32_t w = 8; w < 12; ++w) {
    EXPECT_EQ((out.seen.cu_of.at({0, w})) / 4, static_cast<int>(w % 2));
  }
}

TEST(ReservedComputeUnits, LimitAKernelToItsRange) {
  // [0, 3): three of one die. [2, 6): two of each die. [4, 8): the second die.
  for (const auto& [begin, end] : {std::pair{0, 3}, {2, 6}, {4, 8}, {7, 8}}) {
    const int cus = end - begin;
    for (int workgroups = 1; workgroups <= 13; ++workgroups) {
      const Observed out = run(equal_workgroups(workgroups, begin, end), hand::machine());
      EXPECT_NEAR(out.result.makespan_ns, ceil_div(workgroups, cus) * kStepNs, kExact)
          << workgroups << " workgroups on compute units [" << begin << ", " << end << ")";
      for (const auto& [workgroup, cu] : out.seen.cu_of) {
        EXPECT_GE(cu, begin);
        EXPECT_LT(cu, end);
      }
    }
  }
}

TEST(ReservedComputeUnits, LetTwoKernelsRunSideBySideWithoutSharing) {
  Draft draft(1);
  const auto wide = draft.gemm_kernel("wide", 0, 0, 6);
  const auto narrow = draft.gemm_kernel("narrow", 0, 6, 8);
  for (const auto kernel : {wide, narrow}) {
    for (int w = 0; w < 4; ++w) {
      draft.builder.workgroup(kernel);
      draft.matmul(w);
    }
  }
  draft.builder.launch(0, wide, 0);
  draft.builder.launch(0, narrow, 1);
  draft.builder.host(0, HostOpKind::device_synchronize);
  const Observed out = run(draft.builder.finish(), hand::machine());
  EXPECT_NEAR(out.seen.kernels.at(0).length_ns(), kStepNs, kExact);
  EXPECT_NEAR(out.seen.kernels.at(1).length_ns(), 2 * kStepNs, kExact);
}

TEST(Dispatch, SendsWorkgroupsOfADieOneAfterAnother) {
  Machine machine = hand::machine();
  machine.gpu.workgroup_dispatch_ns = 10;
  for (const double latency_ns : {0.0, 7.0}) {
    machine.gpu.dispatch_latency_ns = latency_ns;
    const Observed out = run(equal_workgroups(8), machine);
    for (std::uint32_t w = 0; w < 8; ++w) {
      EXPECT_NEAR((out.seen.ops.at({0, w, 0}).begin_ns), latency_ns + 10 * (w / 2), kExact);
    }
  }
}

// Flags.

// Also where ports limit the GPUs of a node: a copy to another node then uses the most resources.
TEST(TwoNodes, RunEveryPatternAndPayTheLatencyOfTheNetworkForFlags) {
  Machine machine = find_machine("mi300x-8");
  machine.nodes = 2;
  machine.fabric.network_latency_ns = 5000;
  for (const double gb_per_s : {50.0, 200.0, 400.0}) {
    machine.fabric.network_gb_per_s = gb_per_s;
    const GemmAllScatter workload{1024, 1024, 256, DType::fp16, 16};
    for (const Pattern& pattern : gemm_all_scatter().patterns) {
      const GemmKnobs knobs = default_gemm_knobs(machine, workload.dtype);
      const Schedule schedule = build(pattern, workload, machine, knobs);
      Machine farther = machine;
      farther.fabric.network_latency_ns += 1e5;
      const double more_ns =
          simulate(schedule, farther).makespan_ns - simulate(schedule, machine).makespan_ns;
      const auto to_a_peer = [](const Op& op) {
        return op.kind == OpKind::signal && op.scope == Scope::system;
      };
      if (std::any_of(schedule.ops.begin(), schedule.ops.end(), to_a_peer)) {
        // The release waits for the stores before it, then the flag travels; polls are a period apart.
        EXPECT_GT(more_ns, 2e5 - machine.gpu.poll_load_ns) << pattern.name;
      } else {
        EXPECT_NEAR(more_ns, 0, 1) << pattern.name;
      }
    }
  }
}

TEST(Claim, GivesEachItemToOneWorkgroupAndSkipsWhenTheQueueIsEmpty) {
  constexpr int kItems = 10;
  Draft draft(1);
  const auto queue = draft.builder.flags("queue", 1);
  const auto kernel = draft.gemm_kernel("dynamic", 0);
  for (int w = 0; w < 8; ++w) {
    draft.builder.workgroup(kernel);
    for (int i = 0; i < kItems; ++i) {
      draft.builder.claim(queue, 0, kItems, 1);
      draft.matmul(i);
    }
  }
  draft.builder.launch(0, kernel);
  draft.builder.host(0, HostOpKind::device_synchronize);
  const Observed out = run(draft.builder.finish(), hand::with_free_draws(hand::machine()));
  EXPECT_NEAR(out.result.makespan_ns, 2 * kStepNs, kExact);  // 10 items on 8 compute units
  EXPECT_EQ(out.result.matrix_flops, kItems * 2.0 * 64 * 64 * 64);
}

TEST(RankResult, TellsHowLongKernelsRanAndComputeUnitsWereBusy) {
  Machine machine = hand::machine(2);
  machine.host.launch_latency_ns = 500;
  machine.host.kernel_gap_ns = 100;
  Draft draft(2);
  for (int k = 0; k < 2; ++k) {
    const auto kernel = draft.gemm_kernel("gemm", 1);
    for (int w = 0; w < 10; ++w) {  // two rounds, the second on two of eight compute units
      draft.builder.workgroup(kernel);
      draft.matmul(w);
    }
    draft.builder.launch(1, kernel);
  }
  const auto copies = draft.data_kernel("two on one compute unit", 1);
  machine.gpu.cu_store_gb_per_s = 2 * kTileBytes / 1000;
  for (int w = 0; w < 16; ++w) {
    draft.builder.workgroup(copies);
    draft.builder.store(draft.c, Draft::tile(w), 1);
  }
  draft.builder.launch(1, copies);
  draft.builder.host(1, HostOpKind::device_synchronize);
  const Observed out = run(draft.builder.finish(), machine);
  EXPECT_NEAR(out.result.ranks[1].kernels_ns, 2 * kStepNs + 100 + 2 * kStepNs + 100 + kStepNs, kExact);
  EXPECT_NEAR(out.result.ranks[1].cu_busy_ns, 2 * 10 * kStepNs + 8 * kStepNs, kExact);
  EXPECT_EQ(out.result.ranks[0].kernels_ns, 0);
  EXPECT_EQ(out.result.ranks[0].cu_busy_ns, 0);
}

// Stalls.

TEST(Stall, NamesTheOperationTheFlagAndItsValues) {
  Draft draft(2);
  const auto ready = draft.builder.flags("ready", 5);
  const auto signaller = draft.data_kernel("signaller", 0);
  draft.builder.workgroup(signaller);
  draft.signal(ready, 4, 1);
  const auto waiter = draft.data_kernel("waiter", 1);
  draft.builder.workgroup(waiter);
  draft.builder.barrier();
  draft.builder.workgroup(waiter);
  draft.builder.barrier();
  draft.wait(ready, 4, 2);
  draft.builder.launch(0, signaller);
  draft.builder.launch(1, waiter);
  draft.builder.host(1, HostOpKind::device_synchronize);
  EXPECT_THAT(stall_message(draft.builder.finish(), hand::machine(2)),
              testing::AllOf(testing::HasSubstr("kernel 'waiter' rank 1 workgroup 1 operation 1 (wait)"),
                             testing::HasSubstr("'ready'[4] >= 2, which is 1"),
                             testing::HasSubstr("host of rank 1 waits in operation 1 (device_synchronize)"),
                             testing::Not(testing::HasSubstr("workgroup 0"))));
}

TEST(Stall, EndsWithAMessageEvenIfNoHostWaitsForTheKernel) {
  Draft draft(1);
  const auto ready = draft.builder.flags("ready", 1);
  const auto waiter = draft.data_kernel("waiter", 0);
  draft.builder.workgroup(waiter);
  draft.wait(ready, 0);
  draft.builder.launch(0, waiter);
  EXPECT_THAT(stall_message(draft.builder.finish(), hand::machine()), testing::HasSubstr("kernel 'waiter'"));
}

TEST(Stall, SaysThatWorkgroupsWaitForAComputeUnit) {
  // Nine workgroups on eight compute units, each waiting for the last one.
  Draft draft(1);
  const auto ready = draft.builder.flags("ready", 1);
  const auto kernel = draft.gemm_kernel("persistent", 0);
  for (int w = 0; w < 9; ++w) {
    draft.builder.workgroup(kernel);
    if (w < 8) draft.wait(ready, 0);
    if (w == 8) draft.signal(ready, 0, 0);
  }
  draft.builder.launch(0, kernel);
  draft.builder.host(0, HostOpKind::device_synchronize);
  EXPECT_THAT(
      stall_message(draft.builder.finish(), hand::machine()),
      testing::AllOf(testing::HasSubstr("1 of 9 workgroups wait for a free compute unit"),
                     testing::HasSubstr("kernel 'persistent' rank 0 workgroup 0 operation 0 (wait)")));
}

TEST(Stall, SaysWhichHostsAreMissingFromABarrier) {
  Draft draft(2);
  draft.builder.host(1, HostOpKind::barrier);
  EXPECT_THAT(stall_message(draft.builder.finish(), hand::machine(2)),
              testing::HasSubstr("host of rank 1 waits in operation 0 (barrier)"));
}

TEST(Refusal, OfAKernelThatIsLaunchedTwice) {
  Draft draft(1);
  Kernel kernel;
  kernel.name = "twice";
  const auto id = draft.builder.kernel(kernel);
  draft.builder.workgroup(id);
  draft.builder.barrier();
  draft.builder.launch(0, id);
  draft.builder.launch(0, id);
  EXPECT_THROW(simulate(draft.builder.finish(), hand::machine()), UserError);
}

TEST(Refusal, NamesAKernelThatFitsNoComputeUnit) {
  Draft draft(1);
  Kernel kernel;
  kernel.name = "huge";
  kernel.resources.lds_bytes = 65537;
  const auto id = draft.builder.kernel(kernel);
  draft.builder.workgroup(id);
  draft.builder.barrier();
  draft.builder.launch(0, id);
  const Schedule schedule = draft.builder.finish();
  EXPECT_THROW(simulate(schedule, hand::machine()), UserError);
}

TEST(GiveUp, StopsSoonAfterTheLimitAndSaysSo) {
  const Schedule schedule = equal_workgroups(80);  // 10 rounds
  SimulationOptions options;
  options.give_up_after_ns = 2500;
  const SimulationResult stopped = simulate(schedule, hand::machine(), options);
  EXPECT_TRUE(stopped.gave_up);
  EXPECT_GT(stopped.makespan_ns, 2500);
  EXPECT_LE(stopped.makespan_ns, 3000 + kExact);
  options.give_up_after_ns = 10 * kStepNs + 1;
  EXPECT_FALSE(simulate(schedule, hand::machine(), options).gave_up);
}

// Half of a slab does not bring the other half.
TEST(Engine, ReadsSlabsOfDifferentDepthEachForItself) {
  Machine machine = hand::machine();
  machine.gpu.hbm_gb_per_s = 1;
  ScheduleBuilder builder("depths", 1);
  const std::int16_t a = builder.buffer({"A", DType::fp16, kTile, 2 * kTile, kTile, kTile});
  const std::int16_t b = builder.buffer({"B", DType::fp16, 2 * kTile, kTile, kTile, kTile});
  Kernel kernel;
  kernel.name = "multiply";
  kernel.tile = {kTile, kTile, kTile, 4, Pipeline::serial};
  const std::int32_t id = builder.kernel(kernel);
  builder.workgroup(id);
  builder.matmul(a, b, {0, 0, kTile, kTile}, 0, kTile);
  builder.matmul(a, b, {0, 0, kTile, kTile}, 0, 2 * kTile);
  builder.launch(0, id, 0);
  builder.host(0, HostOpKind::device_synchronize);
  EXPECT_NEAR(simulate(builder.finish(), machine).makespan_ns, 2 * kTileBytes + 4 * kTileBytes, kExact);
}

// Times that a double no longer tells apart would follow each other without end, and no timeline could write
// them.
TEST(Run, OfManyDaysIsRefused) {
  Machine machine = hand::machine(2);
  machine.fabric.link_raw_gb_per_s = kTileBytes / 2e15;
  Draft draft(2);
  const auto kernel = draft.gemm_kernel("gemm", 0);
  draft.builder.workgroup(kernel);
  draft.matmul(0);
  draft.builder.store(draft.c, Draft::tile(0), 1);
  draft.builder.launch(0, kernel);
  draft.builder.host(0, HostOpKind::device_synchronize);
  EXPECT_THAT(stall_message(draft.builder.finish(), machine),
              testing::HasSubstr("takes longer than 1e+06 s"));
}

}  // namespace
}  // namespace tritax
