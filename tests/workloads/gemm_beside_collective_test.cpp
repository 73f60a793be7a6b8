// A GEMM beside a collective: every pattern leaves the product and what the collective leaves on every rank,
// whatever the shape, and the checker finds nothing; what a pattern is said to do, it does.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <tuple>

#include "model/core/error.hpp"
#include "model/workloads/gemm_beside_collective/patterns.hpp"
#include "model/workloads/gemm_beside_collective/workload.hpp"
#include "sim/simulate.hpp"
#include "tests/workloads/partial_sums.hpp"
#include "tests/workloads/problems.hpp"

namespace tritax {
namespace {

namespace sums = partial_sums_test;

struct Sizes {
  std::int64_t m, n, k, rows, cols;
};

constexpr std::array<BesideCollective, 4> kCollectives{
    BesideCollective::all_gather, BesideCollective::reduce_scatter, BesideCollective::all_reduce,
    BesideCollective::all_to_all};

Problem beside(const Sizes& sizes, DType dtype, int gpus,
               BesideCollective collective = BesideCollective::all_gather) {
  Problem problem = problem_of(gemm_beside_collective());
  problem.values.give("m", sizes.m);
  problem.values.give("n", sizes.n);
  problem.values.give("k", sizes.k);
  problem.values.give("rows", sizes.rows);
  problem.values.give("cols", sizes.cols);
  problem.values.give("dtype", static_cast<std::int64_t>(dtype));
  problem.values.give("gpus", gpus);
  problem.values.give("collective", static_cast<std::int64_t>(collective));
  complete_problem(problem, "test");
  return problem;
}

// Copy engines do not add.
bool runs(const Pattern& pattern, BesideCollective collective) {
  return pattern.name != "copy-engine" || collective == BesideCollective::all_gather ||
         collective == BesideCollective::all_to_all;
}

Schedule scheduled(std::string_view pattern, const Problem& asked, const Machine& machine,
                   const Values& knobs) {
  return sums::built(find_pattern(gemm_beside_collective(), pattern, "test"), asked, machine, knobs);
}

double time_us(std::string_view pattern, const Problem& asked, const Machine& machine, const Values& knobs) {
  return simulate(scheduled(pattern, asked, machine, knobs), machine).makespan_ns / 1e3;
}

RC_GTEST_PROP(GemmBeside, EveryPatternIsSoundAndRightOnRaggedShapes, ()) {
  const auto dtype = static_cast<DType>(between(0, kCommonDTypeCount - 1));
  const auto collective = kCollectives[static_cast<std::size_t>(between(0, 3))];
  const Problem asked =
      beside({between(1, 150), between(1, 150), between(1, 90), between(8, 120), between(1, 120)}, dtype,
             between(1, 8), collective);
  Machine machine = find_machine("mi300x-8");
  machine.gpu.xcds = between(1, 4);
  machine.gpu.cus_per_xcd = between(2, 7);
  machine.library.channels = between(1, 9);
  const Values knobs = sums::some_knobs(gemm_beside_collective(), machine);
  for (const Pattern& pattern : gemm_beside_collective().patterns) {
    if (!runs(pattern, collective)) continue;
    const std::string wrong = sums::what_is_wrong(pattern, asked, machine, knobs);
    if (!wrong.empty()) RC_LOG() << kBesideNames[static_cast<std::size_t>(collective)] << " " << wrong;
    RC_ASSERT(wrong.empty());
  }
}

TEST(GemmBeside, CopyEnginesRefuseSumsAndSayWhatTheyRun) {
  const Machine machine = find_machine("mi300x-8");
  for (const BesideCollective collective : {BesideCollective::reduce_scatter, BesideCollective::all_reduce}) {
    const Problem asked = beside({128, 96, 64, 80, 56}, DType::bf16, 4, collective);
    try {
      scheduled("copy-engine", asked, machine, sums::small_tiles(gemm_beside_collective()));
      ADD_FAILURE() << "was built";
    } catch (const UserError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("copy engines do not add"));
      EXPECT_THAT(error.what(), testing::HasSubstr("all-gather or all-to-all"));
    }
  }
}

TEST(GemmBeside, RowsThatGpusShareAreNoFewerThanGpus) {
  const Problem asked = beside({128, 96, 64, 3, 56}, DType::bf16, 4, BesideCollective::reduce_scatter);
  const Machine machine = find_machine("mi300x-8");
  const Values knobs(gemm_beside_collective().knobs);
  for (const char* pattern : {"library", "streams"})
    EXPECT_THROW(scheduled(pattern, asked, machine, knobs), UserError);
}

// 256 tiles need one round of 304 compute units, but two where channels hold 64.
TEST(GemmBeside, ChannelsOfACollectiveHoldComputeUnits) {
  const Machine machine = find_machine("mi300x-8");
  const Problem asked = beside({4096, 4096, 4096, 4096, 4096}, DType::bf16, 8, BesideCollective::all_reduce);
  const Values knobs(gemm_beside_collective().knobs);
  const Pattern& alone = find_pattern(library_gemm(), "library", "test");
  const Schedule product = build_schedule(alone, library_gemm_of(4096, 4096, 4096, DType::bf16), machine, {});
  const double product_us = simulate(product, machine).makespan_ns / 1e3;
  EXPECT_GT(time_us("library-streams", asked, machine, knobs), 1.6 * product_us);
}

using Case = std::tuple<DType, BesideCollective>;
class BesideDType : public testing::TestWithParam<Case> {};

TEST_P(BesideDType, IsRightWithEveryPatternOnOneToEightRanks) {
  const auto [dtype, collective] = GetParam();
  Machine machine = find_machine("mi300x-8");
  machine.gpu.xcds = 2;  // small, so that workgroups take turns
  machine.gpu.cus_per_xcd = 4;
  for (int gpus = 1; gpus <= 8; ++gpus) {
    const Problem asked = beside({90, 70, 50, 43, 100}, dtype, gpus, collective);
    for (const bool host_barriers : {false, true}) {
      Values knobs = sums::small_tiles(gemm_beside_collective());
      knobs.give("host_barriers", host_barriers);
      for (const Pattern& pattern : gemm_beside_collective().patterns) {
        if (!runs(pattern, collective)) continue;
        EXPECT_EQ(sums::what_is_wrong(pattern, asked, machine, knobs), "") << gpus << " ranks";
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(DTypes, BesideDType,
                         testing::Combine(testing::Values(DType::fp32, DType::fp16, DType::bf16, DType::fp8),
                                          testing::ValuesIn(kCollectives)));

// Of a matrix of 80 x 56, three quarters are for peers; an all-reduce also sends a quarter of the sum to each
// of three peers.
TEST(GemmBeside, EveryRankSendsWhatTheCollectiveNeedsAndNothingElse) {
  constexpr std::array<double, 4> kMatricesSent{3, 0.75, 1.5, 0.75};
  for (const BesideCollective collective : kCollectives) {
    const Problem asked = beside({128, 96, 64, 80, 56}, DType::bf16, 4, collective);
    for (const Pattern& pattern : gemm_beside_collective().patterns) {
      if (!runs(pattern, collective)) continue;
      SCOPED_TRACE(fmt::format("{} {}", pattern.name, kBesideNames[static_cast<std::size_t>(collective)]));
      const auto bytes = sums::sent_bytes(scheduled(pattern.name, asked, find_machine("mi300x-8"),
                                                    sums::small_tiles(gemm_beside_collective())));
      ASSERT_EQ(bytes.size(), 4U);
      for (const auto& [rank, sent] : bytes)
        EXPECT_EQ(sent, kMatricesSent[static_cast<std::size_t>(collective)] * 80 * 56 * 2) << rank;
    }
  }
}

// Long work on both sides: the shorter one hides at least in part.
TEST(GemmBeside, TwoStreamsOfTheLibraryTakeLessThanOne) {
  const Problem asked = beside({8192, 8192, 8192, 8192, 4096}, DType::bf16, 8);
  const Machine machine = find_machine("mi300x-8");
  const Values knobs(gemm_beside_collective().knobs);
  EXPECT_LT(time_us("library-streams", asked, machine, knobs),
            0.95 * time_us("library", asked, machine, knobs));
}

// A split that is far off costs two fixed roles what the busier one takes; with queues the others help out.
TEST(GemmBeside, QueuesMakeUpForABadSplit) {
  const Machine machine = find_machine("mi300x-8");
  Values knobs(gemm_beside_collective().knobs);
  knobs.give("gemm_cus", 104);
  knobs.give("comm_cus", 200);
  knobs.give("pipeline", static_cast<std::int64_t>(Pipeline::overlapped));
  for (const BesideCollective collective : kCollectives) {
    const Problem asked = beside({8192, 8192, 8192, 256, 4096}, DType::bf16, 8, collective);
    EXPECT_LT(time_us("work-queues", asked, machine, knobs), 0.7 * time_us("streams", asked, machine, knobs))
        << kBesideNames[static_cast<std::size_t>(collective)];
  }
}

}  // namespace
}  // namespace tritax
