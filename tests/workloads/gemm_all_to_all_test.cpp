// GEMM + all-to-all: every pattern leaves every rank all rows of its columns of the product, whatever the
// shape, and the checker finds nothing; what a pattern is said to do, it does.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "model/core/error.hpp"
#include "model/parts/partial_sums.hpp"
#include "model/workloads/gemm_all_to_all/workload.hpp"
#include "sim/simulate.hpp"
#include "tests/workloads/partial_sums.hpp"

namespace tritax {
namespace {

namespace sums = partial_sums_test;

Problem exchanged(std::int64_t m, std::int64_t n, std::int64_t k, DType dtype, int gpus) {
  Problem problem = problem_of(gemm_all_to_all());
  problem.values.give("m", m);
  problem.values.give("n", n);
  problem.values.give("k", k);
  problem.values.give("dtype", static_cast<std::int64_t>(dtype));
  problem.values.give("gpus", gpus);
  complete_problem(problem, "test");
  return problem;
}

const Pattern& exchange_pattern(std::string_view name) {
  return find_pattern(gemm_all_to_all(), name, "test");
}

Schedule exchange(std::string_view pattern, const Problem& asked, const Values& knobs) {
  return sums::built(exchange_pattern(pattern), asked, find_machine("mi300x-8"), knobs);
}

RC_GTEST_PROP(GemmAllToAll, EveryPatternIsSoundAndRightOnRaggedShapes, ()) {
  const int gpus = between(1, 8);
  const auto dtype = static_cast<DType>(between(0, kCommonDTypeCount - 1));
  const Problem asked =
      exchanged(gpus + between(0, 150), gpus + between(0, 150), between(1, 90), dtype, gpus);
  Machine machine = find_machine("mi300x-8");
  machine.gpu.xcds = between(1, 4);
  machine.gpu.cus_per_xcd = between(2, 7);
  machine.library.channels = between(1, 9);
  const Values knobs = sums::some_knobs(gemm_all_to_all(), machine);
  for (const Pattern& pattern : gemm_all_to_all().patterns) {
    const std::string wrong = sums::what_is_wrong(pattern, asked, machine, knobs);
    if (!wrong.empty()) RC_LOG() << wrong;
    RC_ASSERT(wrong.empty());
  }
}

class AllToAllDType : public testing::TestWithParam<DType> {};

TEST_P(AllToAllDType, IsRightWithEveryPatternOnOneToEightRanks) {
  Machine machine = find_machine("mi300x-8");
  machine.gpu.xcds = 2;  // small, so that workgroups take turns
  machine.gpu.cus_per_xcd = 4;
  for (int gpus = 1; gpus <= 8; ++gpus) {
    const Problem asked = exchanged(170, 90, 50, GetParam(), gpus);
    for (const bool host_barriers : {false, true}) {
      Values knobs = sums::small_tiles(gemm_all_to_all());
      knobs.give("host_barriers", host_barriers);
      for (const Pattern& pattern : gemm_all_to_all().patterns) {
        for (const Posts posts : {Posts::kernel, Posts::host}) {
          if (posts == Posts::host && !pattern.uses("posts")) continue;
          knobs.give("posts", static_cast<std::int64_t>(posts));
          EXPECT_EQ(sums::what_is_wrong(pattern, asked, machine, knobs), "") << gpus << " ranks";
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(DTypes, AllToAllDType,
                         testing::Values(DType::fp32, DType::fp16, DType::bf16, DType::fp8));

// M·N·(W-1)/W² elements: its rows of what the others own.
TEST(GemmAllToAll, EveryRankSendsWhatTheOthersOwnOfItsRows) {
  const Problem asked = exchanged(256, 192, 128, DType::bf16, 4);
  for (const Pattern& pattern : gemm_all_to_all().patterns) {
    SCOPED_TRACE(pattern.name);
    const auto bytes = sums::sent_bytes(exchange(pattern.name, asked, sums::small_tiles(gemm_all_to_all())));
    ASSERT_EQ(bytes.size(), 4U);
    for (const auto& [rank, sent] : bytes) EXPECT_EQ(sent, 64 * 144 * 2) << rank;
  }
}

TEST(GemmAllToAll, FusedStoresCopyNothing) {
  const Problem asked = exchanged(256, 192, 128, DType::bf16, 4);
  const Schedule schedule = exchange("fused-stores", asked, sums::small_tiles(gemm_all_to_all()));
  EXPECT_TRUE(schedule.transfers.empty());
  for (const Op& op : schedule.ops) EXPECT_NE(op.kind, OpKind::copy);
}

// Rows of a rank: 64, tiles of 32.
TEST(GemmAllToAll, HasAKernelAChunkAndCopiesOrAKernelBehindIt) {
  const Problem asked = exchanged(256, 192, 128, DType::bf16, 4);
  Values knobs = sums::small_tiles(gemm_all_to_all());
  for (const int chunks : {1, 2, 5}) {
    knobs.give("chunks", chunks);
    const std::size_t pieces = std::min(chunks, 2);
    EXPECT_EQ(exchange("chunked", asked, knobs).kernels.size(), 4 * 2 * pieces);
    knobs.give("posts", static_cast<std::int64_t>(Posts::host));
    const Schedule copied = exchange("copy-engine", asked, knobs);
    EXPECT_EQ(copied.transfers.size(), 4 * 3 * pieces);
    EXPECT_EQ(copied.kernels.size(), 4 * (pieces + 1));  // and one that tells
    knobs.give("posts", static_cast<std::int64_t>(Posts::kernel));
    const Schedule posted = exchange("copy-engine", asked, knobs);
    EXPECT_TRUE(posted.transfers.empty());
    EXPECT_EQ(posted.kernels.size(), 4 * 2);
    const auto by_engine = [](const Op& op) { return op.by_engine; };
    EXPECT_EQ(std::count_if(posted.ops.begin(), posted.ops.end(), by_engine),
              static_cast<std::ptrdiff_t>(4 * 3 * pieces));
  }
}

// A product that takes long beside what is sent: two chunks hide half of it, one hides nothing.
TEST(GemmAllToAll, ChunksHideTheExchangeBehindTheProduct) {
  const Problem asked = exchanged(16384, 8192, 8192, DType::bf16, 8);
  const Machine machine = find_machine("mi300x-8");
  Values knobs(gemm_all_to_all().knobs);
  const auto time_ns = [&](int chunks) {
    knobs.give("chunks", chunks);
    return simulate(exchange("chunked", asked, knobs), machine).makespan_ns;
  };
  EXPECT_LT(time_ns(2), 0.97 * time_ns(1));
}

TEST(GemmAllToAll, IsRefusedWithFewerRowsOrColumnsThanGpus) {
  EXPECT_THROW(exchanged(3, 64, 64, DType::fp16, 4), UserError);
  EXPECT_THROW(exchanged(64, 3, 64, DType::fp16, 4), UserError);
  EXPECT_NO_THROW(exchanged(4, 4, 1, DType::fp16, 4));
}

TEST(GemmAllToAll, CopyEnginesAreAskedOfTheMachine) {
  Machine machine = find_machine("mi300x-8");
  machine.copy_engine = {};
  const Problem asked = exchanged(256, 192, 128, DType::bf16, 4);
  EXPECT_THROW(sums::built(exchange_pattern("copy-engine"), asked, machine, Values(gemm_all_to_all().knobs)),
               UserError);
}

TEST(GemmAllToAll, CountsTheFlopsOfTheWholeProduct) {
  EXPECT_EQ(work_of(exchanged(10, 20, 30, DType::fp16, 4)).flops, 2.0 * 10 * 20 * 30);
}

}  // namespace
}  // namespace tritax
