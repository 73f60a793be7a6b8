// GEMM + all-gather: every pattern leaves every rank all rows of the product, whatever the shape, and the
// checker finds nothing; what a pattern is said to do, it does.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "model/core/error.hpp"
#include "model/workloads/gemm_all_scatter/workload.hpp"
#include "sim/simulate.hpp"
#include "tests/workloads/partial_sums.hpp"

namespace tritax {
namespace {

namespace sums = partial_sums_test;

Problem gathered(std::int64_t m, std::int64_t n, std::int64_t k, DType dtype, int gpus) {
  Problem problem = problem_of(GemmAllScatter{m, n, k, dtype, gpus, Blocks::rows});
  complete_problem(problem, "test");
  return problem;
}

const Pattern& gather_pattern(std::string_view name) { return find_pattern(gemm_all_gather(), name, "test"); }

Schedule gather(std::string_view pattern, const Problem& asked, const Values& knobs) {
  return sums::built(gather_pattern(pattern), asked, find_machine("mi300x-8"), knobs);
}

void give(Values& knobs, const char* knob, auto value) { knobs.give(knob, static_cast<std::int64_t>(value)); }

RC_GTEST_PROP(GemmAllGather, EveryPatternIsSoundAndRightOnRaggedShapes, ()) {
  const int gpus = between(1, 8);
  const auto dtype = static_cast<DType>(between(0, kCommonDTypeCount - 1));
  const Problem asked = gathered(gpus + between(0, 300), between(1, 150), between(1, 90), dtype, gpus);
  Machine machine = find_machine("mi300x-8");
  machine.gpu.xcds = between(1, 4);
  machine.gpu.cus_per_xcd = between(2, 7);
  machine.library.channels = between(1, 9);
  Values knobs = sums::some_knobs(gemm_all_gather(), machine);
  give(knobs, "peers", between(0, 1));
  give(knobs, "posts", between(0, 1));
  for (const Pattern& pattern : gemm_all_gather().patterns) {
    const std::string wrong = sums::what_is_wrong(pattern, asked, machine, knobs);
    if (!wrong.empty()) RC_LOG() << wrong;
    RC_ASSERT(wrong.empty());
  }
}

class AllGatherDType : public testing::TestWithParam<DType> {};

TEST_P(AllGatherDType, IsRightWithEveryPatternOnOneToEightRanks) {
  Machine machine = find_machine("mi300x-8");
  machine.gpu.xcds = 2;  // small, so that workgroups take turns
  machine.gpu.cus_per_xcd = 4;
  for (int gpus = 1; gpus <= 8; ++gpus) {
    const Problem asked = gathered(170, 90, 50, GetParam(), gpus);
    for (const bool host_barriers : {false, true}) {
      Values knobs = sums::small_tiles(gemm_all_gather());
      give(knobs, "host_barriers", host_barriers);
      for (const Pattern& pattern : gemm_all_gather().patterns) {
        for (const int other : {0, 1}) {
          if (other == 1 && !pattern.uses("posts") && !pattern.uses("transport")) continue;
          give(knobs, "posts", other);
          give(knobs, "transport", other);
          EXPECT_EQ(sums::what_is_wrong(pattern, asked, machine, knobs), "") << gpus << " ranks";
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(DTypes, AllGatherDType,
                         testing::Values(DType::fp32, DType::fp16, DType::bf16, DType::fp8));

// M/W·N·(W-1) elements: its rows of C, in the type of C.
TEST(GemmAllGather, EveryRankSendsItsRowsToAllOthers) {
  const Problem asked = gathered(256, 192, 128, DType::fp8, 4);
  Values knobs = sums::small_tiles(gemm_all_gather());
  give(knobs, "result_dtype", 1 + static_cast<int>(DType::bf16));
  for (const Pattern& pattern : gemm_all_gather().patterns) {
    SCOPED_TRACE(pattern.name);
    const auto bytes = sums::sent_bytes(gather(pattern.name, asked, knobs));
    ASSERT_EQ(bytes.size(), 4U);
    for (const auto& [rank, sent] : bytes) EXPECT_EQ(sent, 64 * 192 * 3 * 2) << rank;
  }
}

TEST(GemmAllGather, PullsWhatPeersHaveComputed) {
  const Problem asked = gathered(256, 192, 128, DType::bf16, 4);
  Values knobs = sums::small_tiles(gemm_all_gather());
  for (const Transport transport : {Transport::push, Transport::pull}) {
    give(knobs, "transport", transport);
    const Schedule schedule = gather("bulk-synchronous", asked, knobs);
    for (const Kernel& kernel : schedule.kernels) {
      for (const Workgroup& workgroup : kernel.workgroups) {
        for (const Op& op : ops_of(schedule, workgroup)) {
          if (op.kind == OpKind::copy) {
            EXPECT_EQ(transport == Transport::pull ? op.rank : op.src_rank, kernel.rank);
          }
        }
      }
    }
  }
}

// A mutant: a barrier of the own workgroup in place of one wait for data.
TEST(GemmAllGather, TheCheckerFindsEveryWaitThatIsLeftOut) {
  const Problem asked = gathered(192, 96, 64, DType::bf16, 3);
  Values knobs = sums::small_tiles(gemm_all_gather());
  give(knobs, "comm_cus", 2);
  give(knobs, "peers", ServesPeers::in_turn);
  give(knobs, "posts", Posts::kernel);
  give(knobs, "transport", Transport::pull);
  for (const auto& [pattern, flag] : {std::pair{"copy-engine", "ready"},
                                      {"bulk-synchronous", "computed"},
                                      {"producer-consumer", "lock"},
                                      {"workgroup-specialised", "lock"}}) {
    const Schedule schedule = gather(pattern, asked, knobs);
    EXPECT_TRUE(check_schedule(schedule).empty()) << pattern;
    int mutants = 0;
    for (std::size_t i = 0; i < schedule.ops.size(); ++i) {
      const Op& op = schedule.ops[i];
      if (op.kind != OpKind::wait || schedule.flags[static_cast<std::size_t>(op.flag)].name != flag) continue;
      Schedule mutant = schedule;
      mutant.ops[i] = Op{};
      mutant.ops[i].kind = OpKind::barrier;
      EXPECT_FALSE(check_schedule(mutant).empty()) << pattern << ", operation " << i;
      ++mutants;
    }
    EXPECT_GT(mutants, 0) << pattern;
  }
}

// Rows of a rank: 64, tiles of 32.
TEST(GemmAllGather, LaunchesAKernelPerChunkOrOneThatPosts) {
  const Problem asked = gathered(256, 192, 128, DType::bf16, 4);
  Values knobs = sums::small_tiles(gemm_all_gather());
  for (const int chunks : {1, 2, 5}) {
    give(knobs, "chunks", chunks);
    const std::size_t pieces = std::min(chunks, 2);
    give(knobs, "posts", Posts::host);
    const Schedule copied = gather("copy-engine", asked, knobs);
    EXPECT_EQ(copied.transfers.size(), 4 * 3 * pieces);
    EXPECT_EQ(copied.kernels.size(), 4 * (pieces + 1));  // and one that tells
    give(knobs, "posts", Posts::kernel);
    const Schedule posted = gather("copy-engine", asked, knobs);
    EXPECT_TRUE(posted.transfers.empty());
    EXPECT_EQ(posted.kernels.size(), 4 * 2);
    const auto by_engine = [](const Op& op) { return op.by_engine; };
    EXPECT_EQ(std::count_if(posted.ops.begin(), posted.ops.end(), by_engine),
              static_cast<std::ptrdiff_t>(4 * 3 * pieces));
  }
}

// Rows are contiguous: there is no copy into slices, and the host waits for nothing in between.
TEST(GemmAllGather, TheLibraryGathersIntoC) {
  const Schedule schedule = gather("library", gathered(256, 192, 128, DType::bf16, 4), {});
  for (const Kernel& kernel : schedule.kernels) EXPECT_NE(kernel.name, "copy_into_slices");
  for (const auto& program : schedule.host) {
    for (const HostOp& op : program) EXPECT_NE(op.kind, HostOpKind::stream_synchronize);
  }
}

TEST(GemmAllGather, ChunksHideTheCopiesBehindTheProduct) {
  const Problem asked = gathered(32768, 8192, 16384, DType::bf16, 8);
  Values knobs(gemm_all_gather().knobs);
  const auto time_ns = [&](int chunks) {
    give(knobs, "chunks", chunks);
    return simulate(gather("copy-engine", asked, knobs), find_machine("mi300x-8")).makespan_ns;
  };
  EXPECT_LT(time_ns(2), 0.97 * time_ns(1));
}

TEST(GemmAllGather, IsRefusedWithFewerRowsThanGpus) {
  EXPECT_THROW(gathered(3, 64, 64, DType::fp16, 4), UserError);
  EXPECT_NO_THROW(gathered(4, 1, 1, DType::fp16, 4));
}

TEST(GemmAllGather, CopyEnginesAreAskedOfTheMachine) {
  Machine machine = find_machine("mi300x-8");
  machine.copy_engine = {};
  const Problem asked = gathered(256, 192, 128, DType::bf16, 4);
  EXPECT_THROW(sums::built(gather_pattern("copy-engine"), asked, machine, Values(gemm_all_gather().knobs)),
               UserError);
}

TEST(GemmAllGather, CountsTheFlopsOfTheWholeProduct) {
  EXPECT_EQ(work_of(gathered(10, 20, 30, DType::fp16, 4)).flops, 2.0 * 10 * 20 * 30);
}

}  // namespace
}  // namespace tritax
