#include "model/workloads/gemm_all_scatter/workload.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "model/core/error.hpp"

namespace tritax {
namespace {

constexpr std::int64_t kMaxSize = std::int64_t{1} << 20;

std::string refusal_of(const GemmAllScatter& workload) {
  try {
    Problem problem = problem_of(workload);
    complete_problem(problem, "here:7");
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

RC_GTEST_PROP(OwnedColumns, PartitionTheColumnsInRankOrderAndDifferByAtMostOne, ()) {
  GemmAllScatter workload{1, 0, 1, DType::fp16, *rc::gen::inRange(1, 65)};
  workload.n = *rc::gen::inRange<std::int64_t>(workload.gpus, 5000);
  std::int64_t next = 0;
  for (int rank = 0; rank < workload.gpus; ++rank) {
    const Share range = owned_columns(workload, rank);
    RC_ASSERT(range.begin == next);
    RC_ASSERT(range.size() >= workload.n / workload.gpus);
    RC_ASSERT(range.size() <= (workload.n + workload.gpus - 1) / workload.gpus);
    RC_ASSERT(range.size() <= owned_columns(workload, 0).size());  // rank 0 is never narrower than another
    next = range.end;
  }
  RC_ASSERT(next == workload.n);
}

RC_GTEST_PROP(EgressBytes, OfAllRanksTogetherAreTheResultSentToEveryPeer, ()) {
  GemmAllScatter workload{*rc::gen::inRange<std::int64_t>(1, kMaxSize + 1), 0, 1, DType::bf16,
                          *rc::gen::inRange(1, 17)};
  workload.n = *rc::gen::inRange<std::int64_t>(workload.gpus, kMaxSize + 1);
  double sum = 0;
  for (int rank = 0; rank < workload.gpus; ++rank) sum += egress_bytes(workload, rank);
  RC_ASSERT(sum == static_cast<double>(workload.m * workload.n * 2 * (workload.gpus - 1)));
}

TEST(EgressBytes, Of16384CubedOnEightGpusIs469Point8Megabytes) {
  // The scale stated for the shape of ROCm/iris PR 215.
  const GemmAllScatter workload{16384, 16384, 16384, DType::fp16, 8};
  EXPECT_EQ(egress_bytes(workload, 3), 469762048.0);
}

TEST(Flops, CountTheWholeProblemOnce) {
  EXPECT_EQ(flops({8192, 4608, 36864, DType::fp16, 8}), 2.0 * 8192 * 4608 * 36864);
  EXPECT_EQ(flops({kMaxSize, kMaxSize, kMaxSize, DType::fp16, 8}), 0x1p61);
}

TEST(CompleteProblem, AcceptsTheSmallestAndTheLargestProblem) {
  EXPECT_EQ(refusal_of({1, 1, 1, DType::fp8, 1}), "");
  EXPECT_EQ(refusal_of({1, 8, 1, DType::fp8, 8}), "");
  EXPECT_EQ(refusal_of({kMaxSize, kMaxSize, kMaxSize, DType::fp32, 8}), "");
}

TEST(CompleteProblem, RefusesFewerColumnsThanGpus) {
  EXPECT_NE(refusal_of({8, 7, 8, DType::fp16, 8}).find("N = 7 has fewer columns than there are GPUs (8)"),
            std::string::npos);
}

}  // namespace
}  // namespace tritax
