// Operations that start together, timed by hand, and their results.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "hand_machine.hpp"
#include "model/schedule/check.hpp"
#include "model/schedule/op_traits.hpp"
#include "peer_questions.hpp"
#include "sim/functional.hpp"
#include "sim/simulate.hpp"

namespace tritax {
namespace {

using hand::Draft;
using hand::kExact;
using hand::kTileBytes;
using hand::Observed;
using hand::run;
using namespace peers;

TEST(Group, OfSignalsTakesOneRelease) {
  Machine machine = hand::machine(4);
  machine.gpu.release_ns = 50;
  machine.fabric.flag_latency_ns = 547;
  machine.fabric.signal_round_trip_ns = 400;
  for (const bool together : {false, true}) {
    Draft draft(4);
    const auto ready = draft.builder.flags("ready", 1);
    const auto kernel = draft.data_kernel("signal", 0);
    draft.builder.workgroup(kernel);
    const auto signals = [&] {
      for (int peer = 1; peer < 4; ++peer) draft.signal(ready, 0, peer);
    };
    if (together) {
      draft.builder.together(signals);
    } else {
      signals();
    }
    draft.builder.launch(0, kernel);
    const Observed out = run(draft.builder.finish(), machine);
    for (std::uint32_t op = 0; op < 3; ++op)
      EXPECT_NEAR((out.seen.ops.at({0, 0, op}).end_ns), together ? 50 : 50 + 400 * op, kExact) << op;
  }
}

TEST(Group, OfLoadsHasOneLatencyAndSharesTheRateOfItsWorkgroup) {
  Machine machine = hand::machine(4);
  machine.gpu.cu_remote_load_gb_per_s = 10;
  machine.fabric.load_round_trip_ns = 900;
  const double moving_ns = kTileBytes / 10;
  for (const bool together : {false, true}) {
    Draft draft(4);
    const auto kernel = draft.data_kernel("add", 0);
    draft.builder.workgroup(kernel);
    draft.builder.load(draft.a, draft.tile(0), 0);
    const auto loads = [&] {
      for (int peer = 1; peer < 4; ++peer) draft.builder.reduce(draft.a, draft.tile(0), peer);
    };
    if (together) {
      draft.builder.together(loads);
    } else {
      loads();
    }
    draft.builder.barrier();
    draft.builder.launch(0, kernel);
    const Observed out = run(draft.builder.finish(), machine);
    const double last = (out.seen.ops.at({0, 0, 3}).end_ns);
    EXPECT_NEAR(last, together ? 900 + 3 * moving_ns : 3 * (900 + moving_ns), kExact);
    EXPECT_NEAR((out.seen.ops.at({0, 0, 4}).begin_ns), last, kExact);
  }
}

TEST(Group, OfWaitsEndsWithTheLast) {
  Draft draft(1);
  const auto ready = draft.builder.flags("ready", 2);
  const auto slow = draft.gemm_kernel("slow", 0);
  for (std::int32_t number = 0; number < 2; ++number) {
    draft.builder.workgroup(slow);
    for (std::int32_t step = 0; step <= 2 * (1 - number); ++step) draft.matmul(0);
    draft.signal(ready, number, 0);
  }
  const auto waits = draft.data_kernel("waits", 0);
  draft.builder.workgroup(waits);
  draft.builder.together([&] {
    draft.wait(ready, 0);
    draft.wait(ready, 1);
  });
  draft.builder.barrier();
  draft.builder.launch(0, slow, 0);
  draft.builder.launch(0, waits, 1);
  const Observed out = run(draft.builder.finish(), hand::machine());
  EXPECT_NEAR((out.seen.ops.at({1, 0, 0}).end_ns), 3 * hand::kStepNs, kExact);
  EXPECT_NEAR((out.seen.ops.at({1, 0, 1}).end_ns), hand::kStepNs, kExact);
  EXPECT_NEAR((out.seen.ops.at({1, 0, 2}).begin_ns), 3 * hand::kStepNs, kExact);
}

TEST(Group, OfStoresIsPublishedByTheSignalBehindIt) {
  Machine machine = hand::machine(3);
  machine.gpu.cu_remote_store_gb_per_s = 10;
  machine.fabric.store_latency_ns = 300;
  Draft draft(3);
  const auto ready = draft.builder.flags("ready", 1);
  const auto kernel = draft.data_kernel("send", 0);
  draft.builder.workgroup(kernel);
  draft.builder.load(draft.a, draft.tile(0), 0);
  draft.builder.together([&] {
    for (int peer = 1; peer < 3; ++peer) draft.builder.store(draft.c, draft.tile(0), peer);
  });
  draft.signal(ready, 0, 1);
  draft.builder.launch(0, kernel);
  const Observed out = run(draft.builder.finish(), machine);
  const double stored = 2 * kTileBytes / 10;
  EXPECT_NEAR((out.seen.ops.at({0, 0, 1}).end_ns), stored, kExact);
  EXPECT_NEAR((out.seen.ops.at({0, 0, 2}).end_ns), stored, kExact);
  EXPECT_NEAR((out.seen.ops.at({0, 0, 3}).end_ns), stored + 300, kExact);
}

bool has_groups(const Schedule& schedule) {
  return std::any_of(schedule.ops.begin(), schedule.ops.end(), [](const Op& op) { return op.with_previous; });
}

TEST(Group, GivesTheSameResultAsPeersInTurn) {
  for (const Machine& machine : {small_h200(), find_machine("mi300x-8")}) {
    for (Question question : kQuestions) {
      for (int gpus = 1; gpus <= 8; ++gpus) {
        question.gpus = gpus;
        for (const std::int64_t transport : {0, 1}) {
          const DType dtype = gpus == 3 ? DType::fp32 : gpus == 5 ? DType::bf16 : DType::fp16;
          const Schedule schedule = schedule_of(question, machine, kTogether, transport, dtype);
          EXPECT_TRUE(has_groups(schedule) || gpus == 1) << question.workload << " on " << gpus;
          const FunctionalResult result = execute_functionally(schedule, machine, 11);
          EXPECT_TRUE(result.stale_reads.empty()) << result.stale_reads.front();
          EXPECT_LE(result.max_relative_error, result.right_within)
              << question.workload << " " << question.pattern << " on " << gpus;
          EXPECT_FALSE(has_groups(schedule_of(question, machine, kInTurn, transport, dtype)));
        }
      }
    }
  }
}

// Serving peers at the same time never takes longer, and is less than half of it for eight GPUs and little
// data.
TEST(Group, PaysForFewBytes) {
  const Machine machine = find_machine("h200-8");
  for (Question question : kQuestions) {
    question.gpus = 8;
    for (const std::int64_t transport : {0, 1}) {
      const auto kernels_ns = [&](std::int64_t peers) {
        return simulate(schedule_of(question, machine, peers, transport), machine).kernels_ns;
      };
      EXPECT_LT(kernels_ns(kTogether), 0.6 * kernels_ns(kInTurn))
          << question.workload << " " << question.pattern;
    }
  }
}

// A run that may take exactly as long as it takes is not given up: what is left of a run counts a group once.
TEST(Group, IsNotGivenUpTooEarly) {
  const Machine machine = find_machine("h200-8");
  for (Question question : kQuestions) {
    question.gpus = 8;
    for (const std::int64_t transport : {0, 1}) {
      const Schedule schedule = schedule_of(question, machine, kTogether, transport);
      SimulationOptions options;
      const double makespan_ns = simulate(schedule, machine, options).makespan_ns;
      options.give_up_after_ns = makespan_ns;
      EXPECT_FALSE(simulate(schedule, machine, options).gave_up)
          << question.workload << " " << question.pattern;
    }
  }
}

// Whatever operation of a group is missing, the checker or the executor says so.
TEST(Group, WithoutOneOfItsOperationsDoesNotGoUnseen) {
  const Machine machine = small_h200();
  for (const Question& question : kQuestions) {
    for (const std::int64_t transport : {0, 1}) {
      const Schedule right = schedule_of(question, machine, kTogether, transport);
      const Kernel& kernel = right.kernels.front();
      const Workgroup& program = kernel.workgroups.front();
      int tried = 0;
      for (std::uint32_t i = program.first_op; i < program.first_op + program.op_count; ++i) {
        const bool in_group = right.ops[i].with_previous;
        const OpKind kind = right.ops[i].kind;
        if (!in_group || (kind != OpKind::signal && kind != OpKind::wait && kind != OpKind::reduce)) continue;
        Schedule mutant = right;
        Op& op = mutant.ops[i];
        ++tried;
        if (kind == OpKind::reduce) {
          op.rank = static_cast<std::int16_t>(kernel.rank);  // its own summand once more
          op.buffer = right.ops[i - 1].buffer;
          op.rect = right.ops[i - 1].rect;
          op.rank = right.ops[i - 1].rank;
        } else {
          op.value = kind == OpKind::signal ? op.value : op.value + 100;
          if (kind == OpKind::signal) op.rank = static_cast<std::int16_t>(kernel.rank);  // tells nobody
        }
        const bool refused = !check_schedule(mutant).empty();
        if (refused) continue;
        const FunctionalResult result = execute_functionally(mutant, machine, 5);
        EXPECT_TRUE(!result.stale_reads.empty() || result.max_relative_error > result.right_within)
            << question.workload << " " << question.pattern << " operation " << i - program.first_op;
      }
      EXPECT_GT(tried, 0) << question.workload << " " << question.pattern;
    }
  }
}

}  // namespace
}  // namespace tritax
