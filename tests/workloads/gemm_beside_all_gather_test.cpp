// A GEMM beside an all-gather: every pattern leaves the product and all blocks on every rank, whatever the
// shape, and the checker finds nothing; what a pattern is said to do, it does.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "model/workloads/gemm_beside_all_gather/patterns.hpp"
#include "sim/simulate.hpp"
#include "tests/workloads/partial_sums.hpp"

namespace tritax {
namespace {

namespace sums = partial_sums_test;

struct Sizes {
  std::int64_t m, n, k, rows, cols;
};

Problem beside(const Sizes& sizes, DType dtype, int gpus) {
  Problem problem = problem_of(gemm_beside_all_gather());
  problem.values.give("m", sizes.m);
  problem.values.give("n", sizes.n);
  problem.values.give("k", sizes.k);
  problem.values.give("rows", sizes.rows);
  problem.values.give("cols", sizes.cols);
  problem.values.give("dtype", static_cast<std::int64_t>(dtype));
  problem.values.give("gpus", gpus);
  complete_problem(problem, "test");
  return problem;
}

Schedule scheduled(std::string_view pattern, const Problem& asked, const Machine& machine,
                   const Values& knobs) {
  return sums::built(find_pattern(gemm_beside_all_gather(), pattern, "test"), asked, machine, knobs);
}

double time_us(std::string_view pattern, const Problem& asked, const Machine& machine, const Values& knobs) {
  return simulate(scheduled(pattern, asked, machine, knobs), machine).makespan_ns / 1e3;
}

RC_GTEST_PROP(GemmBesideAllGather, EveryPatternIsSoundAndRightOnRaggedShapes, ()) {
  const auto dtype = static_cast<DType>(between(0, kCommonDTypeCount - 1));
  const Problem asked =
      beside({between(1, 150), between(1, 150), between(1, 90), between(1, 120), between(1, 120)}, dtype,
             between(2, 8));
  Machine machine = find_machine("mi300x-8");
  machine.gpu.xcds = between(1, 4);
  machine.gpu.cus_per_xcd = between(2, 7);
  machine.library.channels = between(1, 9);
  const Values knobs = sums::some_knobs(gemm_beside_all_gather(), machine);
  for (const Pattern& pattern : gemm_beside_all_gather().patterns) {
    const std::string wrong = sums::what_is_wrong(pattern, asked, machine, knobs);
    if (!wrong.empty()) RC_LOG() << wrong;
    RC_ASSERT(wrong.empty());
  }
}

class BesideDType : public testing::TestWithParam<DType> {};

TEST_P(BesideDType, IsRightWithEveryPatternOnTwoToEightRanks) {
  Machine machine = find_machine("mi300x-8");
  machine.gpu.xcds = 2;  // small, so that workgroups take turns
  machine.gpu.cus_per_xcd = 4;
  for (int gpus = 2; gpus <= 8; ++gpus) {
    const Problem asked = beside({90, 70, 50, 40, 100}, GetParam(), gpus);
    for (const bool host_barriers : {false, true}) {
      Values knobs = sums::small_tiles(gemm_beside_all_gather());
      knobs.give("host_barriers", host_barriers);
      for (const Pattern& pattern : gemm_beside_all_gather().patterns)
        EXPECT_EQ(sums::what_is_wrong(pattern, asked, machine, knobs), "") << gpus << " ranks";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(DTypes, BesideDType,
                         testing::Values(DType::fp32, DType::fp16, DType::bf16, DType::fp8));

TEST(GemmBesideAllGather, EveryRankSendsItsBlockToEachPeerAndNothingElse) {
  const Problem asked = beside({128, 96, 64, 80, 56}, DType::bf16, 4);
  for (const Pattern& pattern : gemm_beside_all_gather().patterns) {
    SCOPED_TRACE(pattern.name);
    const auto bytes = sums::sent_bytes(scheduled(pattern.name, asked, find_machine("mi300x-8"),
                                                  sums::small_tiles(gemm_beside_all_gather())));
    ASSERT_EQ(bytes.size(), 4U);
    for (const auto& [rank, sent] : bytes) EXPECT_EQ(sent, 3 * 80 * 56 * 2) << rank;
  }
}

// Long work on both sides: the shorter one hides at least in part.
TEST(GemmBesideAllGather, TwoStreamsOfTheLibraryTakeLessThanOne) {
  const Problem asked = beside({8192, 8192, 8192, 8192, 4096}, DType::bf16, 8);
  const Machine machine = find_machine("mi300x-8");
  const Values knobs(gemm_beside_all_gather().knobs);
  EXPECT_LT(time_us("library-streams", asked, machine, knobs),
            0.95 * time_us("library", asked, machine, knobs));
}

// A split that is far off costs two fixed roles what the busier one takes; with queues the others help out.
TEST(GemmBesideAllGather, QueuesMakeUpForABadSplit) {
  const Problem asked = beside({8192, 8192, 8192, 256, 4096}, DType::bf16, 8);
  const Machine machine = find_machine("mi300x-8");
  Values knobs(gemm_beside_all_gather().knobs);
  knobs.give("gemm_cus", 104);
  knobs.give("comm_cus", 200);
  knobs.give("pipeline", static_cast<std::int64_t>(Pipeline::overlapped));
  EXPECT_LT(time_us("work-queues", asked, machine, knobs), 0.7 * time_us("streams", asked, machine, knobs));
}

}  // namespace
}  // namespace tritax
