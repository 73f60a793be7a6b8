// Work queues: the time of lists of items, and the shipped example executed on numbers.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <queue>
#include <set>

#include "hand_machine.hpp"
#include "model/schedule/check.hpp"
#include "model/schedule/items.hpp"
#include "model/schedule/json.hpp"
#include "model/select/bounds.hpp"
#include "model/timeline/perfetto.hpp"
#include "sim/functional.hpp"
#include "sim/simulate.hpp"
#include "sim/timeline.hpp"
#include "tests/workloads/repeated.hpp"

namespace tritax {
namespace {

using hand::Draft;
using hand::kExact;
using hand::kStepNs;
using hand::kTile;
using hand::kTileBytes;
using hand::Observed;
using hand::run;

// `workers` workgroups, each with a compute unit of its own, draw items of `steps` matmuls.
Schedule queue_of(int workers, const std::vector<int>& steps) {
  Draft draft(1);
  const auto queue = draft.builder.flags("queue", 1);
  const auto kernel = draft.gemm_kernel("gemm", 0);
  for (int w = 0; w < workers; ++w) {
    draft.builder.workgroup(kernel);
    draft.builder.claim_items(queue, 0, 0, static_cast<std::int32_t>(steps.size()));
  }
  for (std::size_t i = 0; i < steps.size(); ++i) {
    draft.builder.item(kernel);
    for (int s = 0; s < steps[i]; ++s) draft.matmul(static_cast<std::int32_t>(i));
  }
  draft.builder.launch(0, kernel);
  draft.builder.host(0, HostOpKind::device_synchronize);
  return draft.builder.finish();
}

TEST(WorkQueue, EqualItemsTakeOneRoundForEveryWorkerAndItsDraws) {
  Machine machine = hand::with_free_draws(hand::machine());
  machine.gpu.flag_cross_die_ns = 10;  // of a draw, if nobody else is at it
  for (const int workers : {1, 3, 8}) {
    for (int items = 1; items <= 20; ++items) {
      const Schedule schedule = queue_of(workers, std::vector<int>(static_cast<std::size_t>(items), 1));
      const int rounds = (items + workers - 1) / workers;
      const Observed out = run(schedule, machine);
      // Every item has a draw before it, and the last one a draw that finds nothing.
      EXPECT_NEAR(out.result.makespan_ns, rounds * (10 + kStepNs) + 10, kExact)
          << items << " items on " << workers << " workgroups";
      EXPECT_EQ(out.result.matrix_flops, items * 2.0 * kTile * kTile * kTile);
      EXPECT_EQ(out.result.tile_operations, static_cast<std::uint64_t>(2 * items + workers));
    }
  }
}

// Right after an equal run the operands come out of the L2 if they fit, those of items as well.
TEST(WorkQueue, OperandsOfItemsStayInL2BetweenRunsIfTheyFit) {
  Machine machine = hand::with_free_draws(hand::machine());
  machine.gpu.stage_latency_ns = 6 * kStepNs;  // twice a step, with three stages on their way
  SimulationOptions options;
  options.warm = true;
  EXPECT_NEAR(simulate(queue_of(1, {1, 1}), machine, options).makespan_ns, 2 * kStepNs, kExact);
  machine.gpu.l2_bytes = kTileBytes;  // A has 64 tiles
  EXPECT_NEAR(simulate(queue_of(1, {1, 1}), machine, options).makespan_ns, 4 * kStepNs, kExact);
}

TEST(WorkQueue, DrawsFromOneCounterAreServedOneByOne) {
  Machine machine = hand::machine();
  machine.gpu.poll_atomic_ns = 1000;  // how long an answer takes says nothing of how often there is one
  // All draw at once, the last waits for seven others, each of which takes a clock; and once more at the end.
  const Observed out = run(queue_of(8, std::vector<int>(8, 1)), machine);
  EXPECT_NEAR(out.result.makespan_ns, 7 / machine.gpu.boost_clock_ghz + kStepNs, kExact);
}

// Graham: each item goes to the worker that is free first.
double list_schedule_ns(int workers, const std::vector<int>& steps) {
  std::priority_queue<double, std::vector<double>, std::greater<>> free_at;
  for (int w = 0; w < workers; ++w) free_at.push(0);
  double last = 0;
  for (const int item : steps) {
    const double end = free_at.top() + item * kStepNs;
    free_at.pop();
    free_at.push(end);
    last = std::max(last, end);
  }
  return last;
}

RC_GTEST_PROP(WorkQueue, TakesAsLongAsListScheduling, ()) {
  const int workers = *rc::gen::inRange(1, 9);
  std::vector<int> steps(static_cast<std::size_t>(*rc::gen::inRange(1, 40)));
  for (int& item : steps) item = *rc::gen::inRange(0, 9);
  const Schedule schedule = queue_of(workers, steps);
  RC_ASSERT(check_schedule(schedule).empty());
  const Machine machine = hand::with_free_draws(hand::machine());
  const double expected = list_schedule_ns(workers, steps);
  const double makespan = simulate(schedule, machine).makespan_ns;
  RC_ASSERT(std::abs(makespan - expected) < kExact);
  RC_ASSERT(time_bound(schedule, machine, build_topology(machine, 1)).total_ns <= makespan + kExact);
  // A limit that it keeps gives it up no more than one that it does not keep lets it pass.
  SimulationOptions options;
  options.give_up_after_ns = expected + 1;
  RC_ASSERT(!simulate(schedule, machine, options).gave_up);
  options.give_up_after_ns = expected - 1;
  RC_ASSERT(expected < 1 || simulate(schedule, machine, options).gave_up);
}

// As above, but with stores that go on beside the next item, and what the machine has for them.
RC_GTEST_PROP(WorkQueue, StoresOfAnItemDrainBesideTheNext, ()) {
  const bool sender = *rc::gen::arbitrary<bool>();
  Machine machine = hand::with_free_draws(hand::machine(2));
  machine.gpu.async_tile_store = sender;
  machine.gpu.cu_remote_store_gb_per_s = kTileBytes / 600;  // a tile takes less than a matmul
  Draft draft(2);
  const auto queue = draft.builder.flags("queue", 1);
  const auto kernel = draft.gemm_kernel("gemm", 0);
  const int workers = *rc::gen::inRange(1, 5);
  const int items = *rc::gen::inRange(1, 20);
  for (int w = 0; w < workers; ++w) {
    draft.builder.workgroup(kernel);
    draft.builder.claim_items(queue, 0, 0, items);
  }
  for (int i = 0; i < items; ++i) {
    draft.builder.item(kernel);
    draft.matmul(i);
    draft.builder.store(draft.c, Draft::tile(i), 1);
  }
  draft.builder.launch(0, kernel);
  for (int rank = 0; rank < 2; ++rank) draft.builder.host(rank, HostOpKind::device_synchronize);
  const Schedule schedule = draft.builder.finish();
  const double rounds = (items + workers - 1) / workers;
  // The claim waits for waves that store; else the store goes on beside the next matmul.
  const double expected = sender ? rounds * (kStepNs + 600) : rounds * kStepNs + 600;
  RC_ASSERT(std::abs(simulate(schedule, machine).makespan_ns - expected) < kExact);
}

TEST(WorkQueue, WithoutBoundariesItRunsToItsEnd) {
  // Writers, then a queue that reads what they wrote and stores; free flags take the place of the boundary.
  Machine machine = hand::machine(1);
  machine.gpu.cu_store_gb_per_s = kTileBytes / 300;
  for (const bool sender : {false, true}) {
    machine.gpu.async_tile_store = sender;
    Draft draft(1);
    const auto queue = draft.builder.flags("queue", 1);
    const auto writer = draft.gemm_kernel("writer", 0);
    for (int i = 0; i < 6; ++i) {
      draft.builder.workgroup(writer);
      for (int more = 0; more <= i; ++more) draft.matmul(i);
      draft.builder.store(draft.c, Draft::tile(i), 0);
    }
    const auto d = draft.builder.buffer({"D", DType::fp16, 64 * kTile, kTile, kTile, kTile});
    const auto kernel = draft.gemm_kernel("queue", 0);
    for (int w = 0; w < 2; ++w) {
      draft.builder.workgroup(kernel);
      draft.builder.claim_items(queue, 0, 0, 6);
    }
    for (int i = 0; i < 6; ++i) {
      draft.builder.item(kernel);
      draft.builder.load(draft.c, Draft::tile(i), 0);
      draft.builder.store(d, Draft::tile(i), 0);
      draft.builder.store(d, Draft::tile(i + 6), 0);
    }
    const auto last = draft.gemm_kernel("last", 0);
    for (int i = 0; i < 6; ++i) {
      draft.builder.workgroup(last);
      draft.builder.load(d, Draft::tile(i), 0);
    }
    for (const auto k : {writer, kernel, last}) draft.builder.launch(0, k);
    draft.builder.host(0, HostOpKind::device_synchronize);
    draft.builder.input(draft.builder.whole(draft.a));
    draft.builder.input(draft.builder.whole(draft.b));
    const Schedule schedule = draft.builder.finish();
    ASSERT_TRUE(check_schedule(schedule).empty());
    const SimulationResult whole = simulate(schedule, machine);
    const Taxes taxes = account_taxes(schedule, machine);
    EXPECT_GT(taxes.bulk_synchronous_ns, 0);
    EXPECT_LT(taxes.bulk_synchronous_ns, whole.makespan_ns);
  }
}

const std::string kFile = TRITAX_SOURCE_DIR "/scenarios/work-queue.json";

TEST(WorkQueueExample, IsSoundOnEveryShippedMachine) {
  const Schedule schedule = read_schedule(kFile);
  for (const std::string& name : shipped_machines()) {
    const Machine machine = find_machine(name);
    if (machine.gpu_count() < 2) continue;
    EXPECT_TRUE(check_schedule(schedule).empty());
    EXPECT_TRUE(check_schedule_on(schedule, machine).empty()) << name;
  }
}

TEST(WorkQueueExample, IsRefusedWithoutItsWaits) {
  Schedule schedule = read_schedule(kFile);
  for (Op& op : schedule.ops) {
    if (op.kind == OpKind::wait) op = Op{};
  }
  const std::vector<Finding> findings = check_schedule(schedule);
  ASSERT_EQ(findings.size(), 1U);  // of one cause
  EXPECT_EQ(findings[0].count, 6U);
  EXPECT_EQ(findings[0].where, "kernel 'workers' rank 0 item 8 operation 1 (copy)");
  const FunctionalResult result = execute_functionally(schedule, find_machine("h100-4"), 7);
  ASSERT_FALSE(result.stale_reads.empty());
  EXPECT_NE(result.stale_reads[0].find(" item 8 operation 1 (copy) reads tile C"), std::string::npos)
      << result.stale_reads[0];
}

TEST(WorkQueueExample, IsRightThreeTimesInARow) {
  const Schedule schedule = repeated(read_schedule(kFile), 3);
  EXPECT_TRUE(check_schedule(schedule).empty());
  for (const std::string machine : {"h100-4", "h200-4", "mi300x-8"}) {
    const FunctionalResult result = execute_functionally(schedule, find_machine(machine), 7);
    EXPECT_TRUE(result.stale_reads.empty()) << result.stale_reads[0];
    EXPECT_LT(result.max_relative_error, 1e-6);
  }
}

TEST(WorkQueueExample, EveryItemIsRunOnceAndTheTraceSaysWhich) {
  const Schedule schedule = read_schedule(kFile);
  const Machine machine = find_machine("mi300x-8");
  TimelineRecorder recorder(schedule);
  SimulationOptions options;
  options.observer = &recorder;
  simulate(schedule, machine, options);
  const Timeline timeline = recorder.take();
  std::multiset<std::uint32_t> seen;
  std::set<std::uint32_t> workers;
  for (const OpInterval& op : timeline.ops) {
    const Kernel& kernel = schedule.kernels[op.place.kernel];
    const std::uint32_t index = kernel.workgroups[op.place.workgroup].first_op + op.place.op;
    if (op.kind == OpKind::claim) continue;
    EXPECT_GE(item_of(kernel, index), 0);
    seen.insert(index);
    if (op.place.kernel == 0) workers.insert(op.place.workgroup);
  }
  EXPECT_EQ(seen.size(), schedule.ops.size() - 6);
  for (const std::uint32_t index : seen) EXPECT_EQ(seen.count(index), 1U);
  EXPECT_EQ(workers.size(), 3U);
  const std::string trace = timeline_to_perfetto_json(timeline, schedule, build_topology(machine, 2));
  EXPECT_NE(trace.find(R"("item":8,"operation":1)"), std::string::npos);
  EXPECT_NE(trace.find("claim queue[0] of 11 items"), std::string::npos);
}

}  // namespace
}  // namespace tritax
