// Host programs, streams, graphs and barriers, timed by hand.
#include <gtest/gtest.h>

#include <utility>

#include "hand_machine.hpp"
#include "sim/simulate.hpp"

namespace tritax {
namespace {

using hand::Draft;
using hand::kExact;
using hand::kStepNs;
using hand::Observed;
using hand::run;

Machine with_host_costs(int gpus = 1) {
  Machine machine = hand::machine(gpus);
  machine.host = {.launch_call_ns = 100,
                  .launch_latency_ns = 1000,
                  .kernel_gap_ns = 30,
                  .graph_launch_call_ns = 250,
                  .graph_node_gap_ns = 7,
                  .synchronize_ns = 500,
                  .barrier_ns = 2000};
  machine.library.collective_call_ns = 11;
  machine.library.framework_sync_ns = 13;
  machine.library.framework_gather_ns = 17;
  return machine;
}

TEST(Host, PaysLaunchCallLatencyAndSynchronisationAroundAnEmptyKernel) {
  Draft draft(1);
  draft.builder.launch(0, draft.data_kernel("empty", 0));
  draft.builder.host(0, HostOpKind::stream_synchronize);
  const Observed out = run(draft.builder.finish(), with_host_costs());
  EXPECT_EQ(out.seen.kernels.at(0).begin_ns, 1100);
  EXPECT_EQ(out.seen.kernels.at(0).end_ns, 1100);
  EXPECT_EQ(out.result.makespan_ns, 1600);
  EXPECT_EQ(out.result.account.launch_ns, 1600);
}

TEST(Host, PaysForLibraryCallsAndFrameworkWork) {
  Draft draft(1);
  draft.builder.host_work(0, kCollectiveCall);
  draft.builder.host_work(0, kFrameworkSync);
  draft.builder.host_work(0, kFrameworkGather);
  const Observed out = run(draft.builder.finish(), with_host_costs());
  EXPECT_EQ(out.result.makespan_ns, 41);
  EXPECT_EQ(out.result.account.launch_ns, 41);
}

TEST(Host, SynchronisingWithNothingRunningCostsTheCallOnly) {
  Draft draft(1);
  draft.builder.host(0, HostOpKind::device_synchronize);
  EXPECT_EQ(run(draft.builder.finish(), with_host_costs()).result.makespan_ns, 500);
}

TEST(Kernel, BeginsAfterItsOwnStartTimeWhichIsLaunchTax) {
  Draft draft(1);
  const auto kernel = draft.data_kernel("library", 0);
  draft.builder.workgroup(kernel);
  draft.builder.store(draft.c, Draft::tile(0), 0);
  draft.builder.launch(0, kernel);
  draft.builder.host(0, HostOpKind::stream_synchronize);
  Schedule schedule = draft.builder.finish();
  Machine machine = with_host_costs();
  machine.library.kernel_start_ns = 7150;
  const Observed at_once = run(schedule, machine);
  schedule.kernels[0].library.routine = LibraryRoutine::plain;
  const Observed later = run(schedule, machine);
  EXPECT_NEAR(later.result.makespan_ns, at_once.result.makespan_ns + 7150, kExact);
  EXPECT_NEAR(later.result.account.launch_ns, at_once.result.account.launch_ns + 7150, kExact);
  SimulationOptions free;
  free.counterfactual.free_launches = true;
  EXPECT_NEAR(simulate(schedule, machine, free).makespan_ns,
              at_once.result.makespan_ns - at_once.result.account.launch_ns, kExact);
}

TEST(Stream, KernelsFollowEachOtherWithTheGapWhenTheLaunchWasEarly) {
  Draft draft(1);
  for (int k = 0; k < 3; ++k) {
    const auto kernel = draft.gemm_kernel("gemm", 0);
    draft.builder.workgroup(kernel);
    draft.matmul(k);
    draft.builder.launch(0, kernel);
  }
  draft.builder.host(0, HostOpKind::stream_synchronize);
  const Observed out = run(draft.builder.finish(), with_host_costs());
  EXPECT_NEAR(out.seen.kernels.at(0).begin_ns, 1100, kExact);
  EXPECT_NEAR(out.seen.kernels.at(1).begin_ns, 1100 + kStepNs + 30, kExact);
  EXPECT_NEAR(out.seen.kernels.at(2).begin_ns, 1100 + 2 * (kStepNs + 30), kExact);
  EXPECT_NEAR(out.result.makespan_ns, 1100 + 3 * kStepNs + 2 * 30 + 500, kExact);
  EXPECT_NEAR(out.result.account.launch_ns, 1100 + 2 * 30 + 500, kExact);
}

TEST(Stream, ShortKernelsWaitForTheLaunchAndNotForTheGap) {
  Draft draft(1);
  for (int k = 0; k < 3; ++k) draft.builder.launch(0, draft.data_kernel("empty", 0));
  const Observed out = run(draft.builder.finish(), with_host_costs());
  for (std::uint32_t k = 0; k < 3; ++k) EXPECT_EQ(out.seen.kernels.at(k).begin_ns, 1100 + 100 * k);
}

TEST(Stream, KernelsOfDifferentStreamsRunSideBySide) {
  Draft draft(1);
  for (int k = 0; k < 2; ++k) {
    const auto kernel = draft.gemm_kernel("gemm", 0);
    draft.builder.workgroup(kernel);
    draft.matmul(k);
    draft.builder.launch(0, kernel, k);
  }
  draft.builder.host(0, HostOpKind::stream_synchronize, 0);
  draft.builder.host(0, HostOpKind::stream_synchronize, 1);
  const Observed out = run(draft.builder.finish(), with_host_costs());
  EXPECT_NEAR(out.seen.kernels.at(0).begin_ns, 1100, kExact);
  EXPECT_NEAR(out.seen.kernels.at(1).begin_ns, 1200, kExact);
  EXPECT_NEAR((out.seen.host_ops.at({0, 2}).end_ns), 1100 + kStepNs + 500, kExact);
  // The second synchronisation finds its kernel finished.
  EXPECT_NEAR((out.seen.host_ops.at({0, 3}).end_ns), 1100 + kStepNs + 500 + 500, kExact);
}

TEST(Graph, IsOneCallWithItsOwnGapBetweenNodes) {
  Draft draft(1);
  Graph graph;
  for (int k = 0; k < 3; ++k) {
    const auto kernel = draft.gemm_kernel("gemm", 0);
    draft.builder.workgroup(kernel);
    draft.matmul(k);
    graph.push_back({kernel, k == 2 ? 1 : 0});
  }
  draft.builder.graph_launch(0, graph);
  draft.builder.host(0, HostOpKind::device_synchronize);
  const Observed out = run(draft.builder.finish(), with_host_costs());
  EXPECT_NEAR(out.seen.kernels.at(0).begin_ns, 1250, kExact);
  EXPECT_NEAR(out.seen.kernels.at(1).begin_ns, 1250 + kStepNs + 7, kExact);
  EXPECT_NEAR(out.seen.kernels.at(2).begin_ns, 1250, kExact);
  EXPECT_NEAR(out.result.makespan_ns, 1250 + 2 * kStepNs + 7 + 500, kExact);
}

// Every rank launches `kernels` kernels of one step, each in a stream of its own.
Schedule launches(int ranks, int kernels, bool in_graph, int late_rank = -1) {
  Draft draft(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank == late_rank) draft.builder.host_work(rank, kCollectiveCall);
    Graph graph;
    for (int stream = 0; stream < kernels; ++stream) {
      const auto kernel = draft.gemm_kernel("gemm", rank);
      draft.builder.workgroup(kernel);
      draft.matmul(0);
      graph.push_back({kernel, stream});
      if (!in_graph) draft.builder.launch(rank, kernel, stream);
    }
    if (in_graph) draft.builder.graph_launch(rank, graph);
  }
  Schedule schedule = draft.builder.finish();
  schedule.one_process = true;
  return schedule;
}

// Of one process; processes of their own wait for nobody.
TEST(Launch, ThreadsOfANodeTakeTurns) {
  for (const bool in_graph : {false, true}) {
    for (const int gpus_of_node : {3, 2}) {
      Machine machine = with_host_costs(3);
      machine.gpus_per_node = gpus_of_node;
      machine.nodes = 2;
      machine.fabric.network_gb_per_s = 50;
      machine.host.launch_turn_ns = 30;
      const double alone = in_graph ? 1250 : 1100;
      const Observed out = run(launches(3, 1, in_graph), machine);
      EXPECT_NEAR(out.seen.kernels.at(0).begin_ns, alone, kExact);
      EXPECT_NEAR(out.seen.kernels.at(1).begin_ns, alone + 30, kExact);
      EXPECT_NEAR(out.seen.kernels.at(2).begin_ns, gpus_of_node == 3 ? alone + 60 : alone, kExact);
      EXPECT_NEAR(out.result.ranks[1].account.launch_ns, alone + 30, kExact);
      Schedule apart = launches(3, 1, in_graph);
      apart.one_process = false;
      for (const RankResult& rank : simulate(apart, machine).ranks)
        EXPECT_NEAR(rank.account.launch_ns, alone, kExact);
    }
  }
}

TEST(Launch, AThreadThatComesLaterThanTheTurnDoesNotWait) {
  Machine machine = with_host_costs(2);
  machine.host.launch_turn_ns = 10;
  const Observed out = run(launches(2, 1, false, 1), machine);
  EXPECT_NEAR(out.seen.kernels.at(1).begin_ns, 11 + 1100, kExact);
}

// The second launches take nobody's turn.
TEST(Launch, ThreadsHaveTheirFirstTurnEvenWhereLaunchesAreFree) {
  Machine machine = with_host_costs(3);
  machine.host.launch_turn_ns = 30;
  SimulationOptions options;
  options.counterfactual.free_launches = true;
  const SimulationResult result = simulate(launches(3, 2, false), machine, options);
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_NEAR(result.ranks[static_cast<std::size_t>(rank)].makespan_ns, 30 * rank + kStepNs, kExact);
  }
}

TEST(Barrier, EndsForEverybodyAfterTheLastArrives) {
  Draft draft(3);
  const auto kernel = draft.gemm_kernel("late", 1);
  draft.builder.workgroup(kernel);
  draft.matmul(0);
  draft.builder.launch(1, kernel);
  draft.builder.host(1, HostOpKind::device_synchronize);
  for (int rank = 0; rank < 3; ++rank) {
    draft.builder.host(rank, HostOpKind::barrier);
    draft.builder.host_work(rank, kCollectiveCall);
  }
  const Observed out = run(draft.builder.finish(), with_host_costs(3));
  const double last = 1100 + kStepNs + 500;
  for (const auto& [rank, op] : {std::pair{0, 0U}, {1, 2U}, {2, 0U}}) {
    EXPECT_NEAR((out.seen.host_ops.at({rank, op}).end_ns), last + 2000, kExact);
    EXPECT_NEAR(out.result.ranks[static_cast<std::size_t>(rank)].makespan_ns, last + 2000 + 11, kExact);
  }
  // The account of every rank is that of the one that came last.
  EXPECT_NEAR(out.result.ranks[0].account.compute_ns, kStepNs, kExact);
  EXPECT_NEAR(out.result.ranks[0].account.bulk_synchronous_ns, 2000, kExact);
}

// Around all work: the harness's time, whichever rank comes last, and no tax.
TEST(Barrier, AroundTheMeasuredRegionIsTheHarness) {
  for (const bool dependences : {false, true}) {
    Draft draft(2);
    for (int rank = 0; rank < 2; ++rank) {
      const auto kernel = draft.gemm_kernel("gemm", rank);
      draft.builder.workgroup(kernel);
      draft.matmul(rank);
      draft.builder.host(rank, HostOpKind::barrier);
      draft.builder.launch(rank, kernel);
      draft.builder.host(rank, HostOpKind::device_synchronize);
      draft.builder.host(rank, HostOpKind::barrier);
    }
    SimulationOptions options;
    options.counterfactual.dependences_for_barriers = dependences;
    const SimulationResult result = simulate(draft.builder.finish(), with_host_costs(2), options);
    EXPECT_NEAR(result.account.harness_ns, 2 * 2000, kExact) << dependences;
    EXPECT_NEAR(result.account.bulk_synchronous_ns, 0, kExact) << dependences;
    EXPECT_NEAR(result.account.sum_ns(), result.makespan_ns, kExact) << dependences;
  }
}

TEST(Makespan, ReachesTheLastKernelEvenIfTheHostDoesNotWaitForIt) {
  Draft draft(1);
  const auto kernel = draft.gemm_kernel("gemm", 0);
  draft.builder.workgroup(kernel);
  draft.matmul(0);
  draft.builder.launch(0, kernel);
  const Observed out = run(draft.builder.finish(), with_host_costs());
  EXPECT_NEAR(out.result.makespan_ns, 1100 + kStepNs, kExact);
  EXPECT_NEAR(out.result.account.compute_ns, kStepNs, kExact);
}

}  // namespace
}  // namespace tritax
