// Collectives with a root, and sends between GPUs: who sends how much, in which order pieces are taken out,
// and which pattern suits which size. collectives_test.cpp has what is true of all collectives.

#include <gtest/gtest.h>

#include <map>
#include <string_view>

#include "model/workloads/rooted/workload.hpp"
#include "sim/simulate.hpp"
#include "tests/workloads/any_workload.hpp"
#include "tests/workloads/partial_sums.hpp"

namespace tritax {
namespace {

constexpr int kPairs = 1;
constexpr double kBlock = 48 * 64 * 2;  // bytes of bf16

Problem block_of_48_by_64(const Workload& workload, int gpus, const Given& more = {}) {
  Given given{{"rows", 48}, {"cols", 64}, {"dtype", static_cast<std::int64_t>(DType::bf16)}, {"gpus", gpus}};
  for (const auto& [name, value] : more) given[name] = value;
  return problem_with(workload, given);
}

std::map<int, double> sent_by(const Workload& workload, std::string_view pattern, int transport, int gpus,
                              const Given& more = {}) {
  const Given knobs{{"comm_tile_m", 16}, {"comm_tile_n", 32}, {"transport", transport}};
  return partial_sums_test::sent_bytes(
      schedule_with(pattern, block_of_48_by_64(workload, gpus, more), find_machine("mi300x-8"), knobs));
}

TEST(Gather, SendsEveryBlockToTheRootOnce) {
  for (const char* pattern : {"library", "direct"}) {
    for (const int transport : {0, 1}) {
      EXPECT_EQ(sent_by(rooted_gather(), pattern, transport, 4),
                (std::map<int, double>{{1, kBlock}, {2, kBlock}, {3, kBlock}}))
          << pattern;
    }
  }
}

TEST(Scatter, SendsEveryBlockFromTheRootOnce) {
  for (const char* pattern : {"library", "direct"}) {
    for (const int transport : {0, 1})
      EXPECT_EQ(sent_by(rooted_scatter(), pattern, transport, 4), (std::map<int, double>{{0, 3 * kBlock}}))
          << pattern;
  }
}

TEST(SendReceive, PassesBlocksOnInARingOrInPairs) {
  for (const char* pattern : {"library", "direct", "message-passing"}) {
    for (const int transport : {0, 1}) {
      EXPECT_EQ(sent_by(send_receive(), pattern, transport, 3),
                (std::map<int, double>{{0, kBlock}, {1, kBlock}, {2, kBlock}}))
          << pattern;
      EXPECT_EQ(sent_by(send_receive(), pattern, transport, 5, {{"partners", kPairs}}),
                (std::map<int, double>{{0, kBlock}, {2, kBlock}}))
          << pattern;
    }
  }
}

TEST(SendReceive, IsSoundAndRightInPairsOnAnyNumberOfGpus) {
  Machine machine = find_machine("mi300x-8");
  machine.gpu.xcds = 2;  // so that workgroups take turns
  machine.gpu.cus_per_xcd = 3;
  for (int gpus = 2; gpus <= 8; ++gpus) {
    const Problem asked = block_of_48_by_64(send_receive(), gpus, {{"partners", kPairs}, {"rows", 35}});
    for (const Pattern& pattern : send_receive().patterns) {
      for (int run = 0; run < 4; ++run) {
        const Given knobs{
            {"comm_tile_m", 16}, {"comm_tile_n", 16}, {"transport", run / 2}, {"host_barriers", run % 2}};
        EXPECT_EQ(
            partial_sums_test::what_is_wrong(pattern, asked, machine, knobs_with(asked, machine, knobs)), "")
            << gpus << " GPUs, run " << run;
      }
    }
  }
}

// A piece is taken out of its slot behind the flag of this piece and of no other.
TEST(MessagePassing, TakesOutEachPieceBehindItsOwnFlag) {
  const Schedule schedule =
      schedule_with("message-passing", block_of_48_by_64(send_receive(), 2, {{"partners", kPairs}}),
                    find_machine("mi300x-8"), {{"comm_tile_m", 16}, {"comm_tile_n", 32}, {"comm_cus", 4}});
  ASSERT_EQ(schedule.kernels.size(), 2U);  // a producer on GPU 0, a consumer on GPU 1
  std::map<std::int32_t, Rect> sent;       // by flag
  int taken = 0;
  for (const Kernel& kernel : schedule.kernels) {
    for (const Workgroup& workgroup : kernel.workgroups) {
      Rect last;
      for (std::uint32_t i = 0; i < workgroup.op_count; ++i) {
        const Op& op = schedule.ops[workgroup.first_op + i];
        const bool of_pieces =
            op.flag >= 0 && schedule.flags[static_cast<std::size_t>(op.flag)].name == "sent";
        if (op.kind == OpKind::copy) last = op.rect;
        if (op.kind == OpKind::signal && of_pieces) sent[op.index] = last;
        if (op.kind != OpKind::wait || !of_pieces) continue;
        EXPECT_EQ(schedule.ops[workgroup.first_op + i + 1].rect, sent.at(op.index));
        ++taken;
      }
    }
  }
  EXPECT_EQ(sent.size(), 6U);
  EXPECT_EQ(taken, 6);
}

// With one workgroup per side, a block of one piece is taken out only once all of the block is there.
TEST(MessagePassing, TakesPiecesOutWhileOthersAreOnTheirWay) {
  const Machine machine = find_machine("mi300x-8");
  const Problem asked =
      block_of_48_by_64(send_receive(), 2, {{"partners", kPairs}, {"rows", 1024}, {"cols", 1024}});
  const auto time_ns = [&](std::int64_t side) {
    return time_with("message-passing", asked, machine,
                     {{"comm_cus", 1}, {"comm_tile_m", side}, {"comm_tile_n", side}});
  };
  EXPECT_LT(time_ns(256), 0.95 * time_ns(1024));
}

TEST(Reduce, SendsTheMatrixUpTheTreeOnce) {
  for (const char* pattern : {"direct", "ring", "tree"}) {
    for (const int transport : {0, 1}) {
      EXPECT_EQ(sent_by(rooted_reduce(), pattern, transport, 4),
                (std::map<int, double>{{1, kBlock}, {2, kBlock}, {3, kBlock}}))
          << pattern;
    }
  }
}

// Of the six pieces on three GPUs, each adds up two: a rank gives its four others to their adders, and sends
// the sum of its own two to the root.
TEST(Reduce, SendsSharesAndThenSumsInTwoPhases) {
  const double piece = kBlock / 6;
  EXPECT_EQ(sent_by(rooted_reduce(), "two-phase", 0, 3),
            (std::map<int, double>{{0, 4 * piece}, {1, 6 * piece}, {2, 6 * piece}}));
}

// On a full mesh two phases use all links, a ring one link per GPU; a few rows only pay for steps.
TEST(Reduce, IsFastestInTwoPhasesForLargeMatricesAndInOneStepForSmallOnes) {
  const Machine machine = find_machine("mi300x-8");
  const auto time_ns = [&](std::string_view pattern, std::int64_t rows) {
    const Problem asked = block_of_48_by_64(rooted_reduce(), 8, {{"rows", rows}, {"cols", 4096}});
    return time_with(pattern, asked, machine);
  };
  EXPECT_LT(time_ns("two-phase", 8192), time_ns("direct", 8192));
  EXPECT_LT(time_ns("two-phase", 8192), time_ns("ring", 8192));
  EXPECT_LT(time_ns("direct", 8), time_ns("tree", 8));
  EXPECT_LT(time_ns("tree", 8), time_ns("ring", 8));
}

}  // namespace
}  // namespace tritax
