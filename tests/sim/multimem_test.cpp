// Groups that the switch carries out (multimem): timed by hand, their links, results and limits.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "hand_machine.hpp"
#include "model/core/error.hpp"
#include "model/machine/topology.hpp"
#include "model/schedule/check.hpp"
#include "model/select/bounds.hpp"
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

constexpr std::int64_t kMultimem = 2;

template <typename Run>
void expect_error(Run run, const std::string& text) {
  try {
    run();
    FAIL() << "nothing was refused";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
}

Machine switched(int gpus) {
  Machine machine = hand::machine(gpus);
  machine.fabric.kind = LinkKind::node_switch;
  machine.fabric.multicast = true;
  machine.fabric.link_raw_gb_per_s = 100;
  return machine;
}

void store_to_all(Draft& draft, int ranks) {
  for (int rank = 0; rank < ranks; ++rank) draft.builder.store(draft.c, draft.tile(0), rank);
}

// A store takes as long as one to one peer; peer by peer the own link carries it three times.
TEST(Multimem, StoreCrossesTheOwnLinkOnce) {
  for (const bool in_switch : {false, true}) {
    Draft draft(4);
    const auto kernel = draft.data_kernel("send", 0);
    draft.builder.workgroup(kernel);
    draft.builder.load(draft.a, draft.tile(0), 0);
    const auto stores = [&] { store_to_all(draft, 4); };
    in_switch ? draft.builder.multimem(stores) : draft.builder.together(stores);
    draft.builder.launch(0, kernel);
    const Observed out = run(draft.builder.finish(), switched(4));
    double last = 0;
    for (std::uint32_t op = 1; op < 5; ++op) last = std::max(last, out.seen.ops.at({0, 0, op}).end_ns);
    EXPECT_NEAR(last, (in_switch ? 1 : 3) * kTileBytes / 100, kExact);
  }
}

// The sum of four ranks: one latency and the bytes of one tile over the own link.
TEST(Multimem, SumCrossesTheOwnLinkOnce) {
  for (const bool in_switch : {false, true}) {
    Machine machine = switched(4);
    machine.fabric.load_round_trip_ns = 900;
    machine.gpu.cu_remote_load_gb_per_s = 10;
    Draft draft(4);
    const auto kernel = draft.data_kernel("add", 0);
    draft.builder.workgroup(kernel);
    const auto loads = [&] {
      draft.builder.load(draft.a, draft.tile(0), 0);
      for (int peer = 1; peer < 4; ++peer) draft.builder.reduce(draft.a, draft.tile(0), peer);
    };
    in_switch ? draft.builder.multimem(loads) : draft.builder.together(loads);
    draft.builder.barrier();
    draft.builder.launch(0, kernel);
    const Observed out = run(draft.builder.finish(), machine);
    // Peer by peer four loads share the rate of the workgroup.
    EXPECT_NEAR((out.seen.ops.at({0, 0, 4}).begin_ns), 900 + (in_switch ? 1 : 4) * kTileBytes / 10, kExact);
  }
}

// Every rank sums an own part of a matrix and stores the sum to all: N + N/W bytes over each link and way.
TEST(Multimem, LoadsEachLinkOnceForEveryWay) {
  constexpr int kRanks = 4;
  Draft draft(kRanks);
  for (int rank = 0; rank < kRanks; ++rank) {
    const auto kernel = draft.data_kernel("two_shot", rank);
    draft.builder.workgroup(kernel);
    draft.builder.multimem([&] {
      draft.builder.load(draft.a, draft.tile(rank), rank);
      for (int peer = 0; peer < kRanks; ++peer)
        if (peer != rank) draft.builder.reduce(draft.a, draft.tile(rank), peer);
    });
    draft.builder.multimem([&] {
      for (int peer = 0; peer < kRanks; ++peer) draft.builder.store(draft.c, draft.tile(rank), peer);
    });
    draft.builder.launch(rank, kernel);
  }
  const Schedule schedule = draft.builder.finish();
  const Machine machine = switched(kRanks);
  const SimulationResult out = simulate(schedule, machine);
  ASSERT_EQ(out.link_bytes.size(), 2u * kRanks);
  for (const double bytes : out.link_bytes) EXPECT_NEAR(bytes, (kRanks + 1) * kTileBytes, kExact);
  // First the sums fill the way out, then the stores fill the way in.
  EXPECT_NEAR(out.kernels_ns, 2.0 * kRanks * kTileBytes / 100, kExact);
}

TEST(Multimem, GivesTheRightSumForAllRanksAndTypes) {
  const Machine machine = small_h200();
  for (Question question : kQuestions) {
    for (int gpus = 1; gpus <= 8; ++gpus) {
      question.gpus = gpus;
      question.rows = 23;
      for (const DType dtype : {DType::fp16, DType::bf16, DType::fp32}) {
        const Schedule schedule = schedule_of(question, machine, kTogether, kMultimem, dtype);
        const bool used =
            std::any_of(schedule.ops.begin(), schedule.ops.end(), [](const Op& op) { return op.multimem; });
        EXPECT_EQ(used, gpus > 1);
        EXPECT_TRUE(check_schedule(schedule).empty()) << question.workload << " " << question.pattern;
        const FunctionalResult result = execute_functionally(schedule, machine, 3);
        EXPECT_TRUE(result.stale_reads.empty()) << result.stale_reads.front();
        EXPECT_LE(result.max_relative_error, result.right_within)
            << question.workload << " " << question.pattern << " on " << gpus;
      }
    }
  }
}

TEST(Multimem, WithoutOneOfItsOperationsDoesNotGoUnseen) {
  const Machine machine = small_h200();
  for (const Question& question : kQuestions) {
    const Schedule right = schedule_of(question, machine, kTogether, kMultimem);
    const Workgroup& program = right.kernels.front().workgroups.front();
    int tried = 0;
    for (std::uint32_t i = program.first_op; i < program.first_op + program.op_count; ++i) {
      const Op& op = right.ops[i];
      const bool leaves = op.with_previous && op.multimem;
      if (!leaves && op.kind != OpKind::wait) continue;
      Schedule mutant = right;
      if (op.kind == OpKind::wait) {
        mutant.ops[i].value = 0;
      } else {
        mutant.ops[i].rank = mutant.ops[i - 1].rank;  // one rank twice
      }
      ++tried;
      if (!check_schedule(mutant).empty()) continue;
      const FunctionalResult result = execute_functionally(mutant, machine, 5);
      EXPECT_TRUE(!result.stale_reads.empty() || result.max_relative_error > result.right_within)
          << question.workload << " " << question.pattern << " operation " << i - program.first_op;
    }
    EXPECT_GT(tried, 0);
  }
}

TEST(Multimem, IsRefusedWhereNoSwitchMulticasts) {
  const Question question{"all-reduce", "two-shot"};
  expect_error([&] { schedule_of(question, find_machine("mi300x-8"), kTogether, kMultimem); },
               "fabric.multicast");
  expect_error([&] { schedule_of(question, find_machine("h200-8-no-multicast"), kTogether, kMultimem); },
               "use push or pull");
  expect_error(
      [&] {
        schedule_of({"all-reduce", "two-shot", 64, 64, 16}, find_machine("h200-8x8"), kTogether, kMultimem);
      },
      "the 8 GPUs of a node");
  expect_error([&] { schedule_of(question, small_h200(), kTogether, kMultimem, DType::fp8); }, "fp8");
  const Schedule schedule = schedule_of(question, small_h200(), kTogether, kMultimem);
  expect_error([&] { simulate(schedule, find_machine("mi300x-8")); }, "multimem");
}

// Less time than peer by peer where links are full, never less than the bound, and no run is given up at its
// own time.
TEST(Multimem, TakesLessTimeForManyBytesAndNeverLessThanTheBound) {
  const Machine machine = find_machine("h200-8");
  for (Question question : kQuestions) {
    question.gpus = 8;
    question.rows = 1024;
    question.cols = 1024;
    std::vector<double> kernels_ns;
    for (const std::int64_t transport : {kMultimem, std::int64_t{1}}) {
      const Schedule schedule = schedule_of(question, machine, kTogether, transport);
      SimulationOptions options;
      const SimulationResult out = simulate(schedule, machine, options);
      kernels_ns.push_back(out.kernels_ns);
      const TimeBound bound = time_bound(schedule, machine, build_topology(machine, 8));
      EXPECT_LE(bound.total_ns, out.makespan_ns) << question.workload << " " << question.pattern;
      options.give_up_after_ns = out.makespan_ns;
      EXPECT_FALSE(simulate(schedule, machine, options).gave_up);
    }
    // A norm takes row after row, whose bytes are few; there is the residual to load besides.
    if (question.workload != "all-reduce-norm") {
      EXPECT_LT(kernels_ns[0], kernels_ns[1]) << question.workload << " " << question.pattern;
    }
  }
}

// Ranks that are alike give the same time as all ranks in full.
TEST(Multimem, TakesTheSameTimeByOneRankForAll) {
  const Machine machine = small_h200();
  const Schedule schedule = schedule_of({"all-reduce", "two-shot", 64, 64, 4}, machine, kTogether, kMultimem);
  SimulationOptions options;
  options.symmetry = Symmetry::off;
  const SimulationResult full = simulate(schedule, machine, options);
  options.symmetry = Symmetry::ranks;
  const SimulationResult folded = simulate(schedule, machine, options);
  EXPECT_EQ(folded.simulated_ranks, 1);
  EXPECT_NEAR(folded.makespan_ns, full.makespan_ns, 0.02 * full.makespan_ns);
  for (std::size_t edge = 0; edge < full.link_bytes.size(); ++edge)
    EXPECT_NEAR(folded.link_bytes[edge], full.link_bytes[edge], 1) << edge;
}

}  // namespace
}  // namespace tritax
