// GEMM + reduce-scatter: every pattern leaves every rank its part of the summed product, whatever the shape,
// and the checker finds nothing; what a pattern is said to do, it does.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>

#include "model/core/error.hpp"
#include "model/parts/partial_sums.hpp"
#include "model/workloads/gemm_reduce_scatter/workload.hpp"
#include "tests/workloads/partial_sums.hpp"

namespace tritax {
namespace {

namespace sums = partial_sums_test;

Problem scattered(std::int64_t m, std::int64_t n, std::int64_t k, DType dtype, Blocks scatter, int gpus) {
  Problem problem = problem_of(gemm_reduce_scatter());
  problem.values.give("m", m);
  problem.values.give("n", n);
  problem.values.give("k", k);
  problem.values.give("dtype", static_cast<std::int64_t>(dtype));
  problem.values.give("scatter", static_cast<std::int64_t>(scatter));
  problem.values.give("gpus", gpus);
  complete_problem(problem, "test");
  return problem;
}

Schedule reduce_scatter(std::string_view pattern, const Problem& asked, const Values& knobs) {
  return sums::built(find_pattern(gemm_reduce_scatter(), pattern, "test"), asked, find_machine("mi300x-8"),
                     knobs);
}

RC_GTEST_PROP(GemmReduceScatter, EveryPatternIsSoundAndRightOnRaggedShapes, ()) {
  const int gpus = between(1, 8);
  const auto dtype = static_cast<DType>(between(0, kCommonDTypeCount - 1));
  const Problem asked = scattered(gpus + between(0, 90), gpus + between(0, 90), gpus + between(0, 90), dtype,
                                  static_cast<Blocks>(between(0, 1)), gpus);
  Machine machine = find_machine("mi300x-8");
  machine.gpu.xcds = between(1, 4);
  machine.gpu.cus_per_xcd = between(2, 7);
  machine.library.channels = between(1, 9);
  const Values knobs = sums::some_knobs(gemm_reduce_scatter(), machine);
  for (const Pattern& pattern : gemm_reduce_scatter().patterns) {
    const std::string wrong = sums::what_is_wrong(pattern, asked, machine, knobs);
    if (!wrong.empty()) RC_LOG() << wrong;
    RC_ASSERT(wrong.empty());
  }
}

class ReduceScatterDType : public testing::TestWithParam<DType> {};

TEST_P(ReduceScatterDType, IsRightWithEveryPatternOnOneToEightRanks) {
  Machine machine = find_machine("mi300x-8");
  machine.gpu.xcds = 2;  // small, so that workgroups take turns
  machine.gpu.cus_per_xcd = 4;
  for (const int gpus : {1, 2, 3, 8}) {
    for (const Blocks scatter : {Blocks::rows, Blocks::columns}) {
      const Problem asked = scattered(70, 50, 90, GetParam(), scatter, gpus);
      for (const bool host_barriers : {false, true}) {
        Values knobs = sums::small_tiles(gemm_reduce_scatter());
        knobs.give("host_barriers", host_barriers);
        for (const Pattern& pattern : gemm_reduce_scatter().patterns) {
          // Push or pull, and who posts copies.
          for (const std::int64_t way : {0, 1}) {
            if (way == 1 && !pattern.uses("transport") && !pattern.uses("posts")) continue;
            knobs.give("transport", way);
            knobs.give("posts", way);
            EXPECT_EQ(sums::what_is_wrong(pattern, asked, machine, knobs), "") << gpus << " ranks";
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(DTypes, ReduceScatterDType,
                         testing::Values(DType::fp32, DType::fp16, DType::bf16, DType::fp8));

// M·N·(W-1)/W elements, which no algorithm can do with less.
TEST(GemmReduceScatter, EveryRankSendsAllButItsOwnBlockOnce) {
  for (const Blocks scatter : {Blocks::rows, Blocks::columns}) {
    const Problem asked = scattered(256, 192, 128, DType::bf16, scatter, 4);
    for (const Pattern& pattern : gemm_reduce_scatter().patterns) {
      for (const Transport transport : {Transport::push, Transport::pull}) {
        SCOPED_TRACE(pattern.name);
        Values knobs = sums::small_tiles(gemm_reduce_scatter());
        knobs.give("transport", static_cast<std::int64_t>(transport));
        const auto bytes = sums::sent_bytes(reduce_scatter(pattern.name, asked, knobs));
        ASSERT_EQ(bytes.size(), 4U);
        for (const auto& [rank, sent] : bytes) EXPECT_EQ(sent, 256 * 192 * 2 * 3 / 4) << rank;
      }
    }
  }
}

// fp8 crosses links in fp32: no GPU adds fp8, and partial sums in it would lose most of their digits.
TEST(GemmReduceScatter, PartialSumsOfFp8AreFp32) {
  const Problem asked = scattered(256, 192, 128, DType::fp8, Blocks::rows, 4);
  const auto bytes =
      sums::sent_bytes(reduce_scatter("fused-slots", asked, sums::small_tiles(gemm_reduce_scatter())));
  for (const auto& [rank, sent] : bytes) EXPECT_EQ(sent, 256 * 192 * 4 * 3 / 4) << rank;
}

// On a ring rank r stores to r + 1 only; with all strides that reach every rank, to those as well.
TEST(GemmReduceScatter, RingsStoreToTheirNextRank) {
  const Problem asked = scattered(512, 512, 128, DType::bf16, Blocks::rows, 8);
  Values knobs = sums::small_tiles(gemm_reduce_scatter());
  for (const int rings : {1, 4}) {
    knobs.give("rings", rings);
    const Schedule schedule = reduce_scatter("ring", asked, knobs);
    std::set<int> distances;
    for (const Kernel& kernel : schedule.kernels) {
      for (const Workgroup& workgroup : kernel.workgroups) {
        for (std::uint32_t i = 0; i < workgroup.op_count; ++i) {
          const Op& op = schedule.ops[workgroup.first_op + i];
          if (op.kind == OpKind::store && op.rank != kernel.rank)
            distances.insert((op.rank - kernel.rank + 8) % 8);
        }
      }
    }
    EXPECT_EQ(distances, rings == 1 ? std::set<int>({1}) : std::set<int>({1, 3, 5, 7}));
  }
}

TEST(GemmReduceScatter, CopyEnginesSendInPiecesBehindTheirKernels) {
  const Problem asked = scattered(256, 192, 128, DType::bf16, Blocks::rows, 4);
  Values knobs = sums::small_tiles(gemm_reduce_scatter());
  knobs.give("chunks", 2);
  knobs.give("posts", static_cast<std::int64_t>(Posts::host));
  const Schedule schedule = reduce_scatter("copy-engine", asked, knobs);
  EXPECT_EQ(schedule.transfers.size(), 4U * 3 * 2);
  for (const Op& op : schedule.ops) EXPECT_NE(op.kind, OpKind::copy);
}

// One GEMM kernel, one that posts a copy per peer and piece, one that adds up.
TEST(GemmReduceScatter, AKernelPostsTheCopiesOfPiecesThatOneGemmComputes) {
  const Problem asked = scattered(256, 192, 128, DType::bf16, Blocks::rows, 4);
  Values knobs = sums::small_tiles(gemm_reduce_scatter());
  knobs.give("chunks", 2);
  knobs.give("posts", static_cast<std::int64_t>(Posts::kernel));
  const Schedule schedule = reduce_scatter("copy-engine", asked, knobs);
  EXPECT_TRUE(schedule.transfers.empty());
  EXPECT_EQ(schedule.kernels.size(), 4U * 3);
  const auto posted = [](const Op& op) { return op.kind == OpKind::copy && op.by_engine; };
  EXPECT_EQ(std::count_if(schedule.ops.begin(), schedule.ops.end(), posted), 4 * 3 * 2);
  // Items of 32x64: a half of the own block of 64x192 has one row of three.
  knobs.give("comm_tile_m", 32);
  knobs.give("comm_tile_n", 64);
  for (const Kernel& kernel : reduce_scatter("copy-engine", asked, knobs).kernels) {
    if (kernel.name != "add") continue;
    std::size_t loads = 0;
    for (const Workgroup& workgroup : kernel.workgroups) loads += workgroup.op_count > 0 ? 1 : 0;
    EXPECT_EQ(loads, 2U * 3);
  }
}

// A kernel may take more registers than its schedule says; those that tell of copies must find room all the
// same.
TEST(GemmReduceScatter, WhoWaitsForCopiesLeavesAComputeUnitToThoseThatTellOfThem) {
  const Problem asked = scattered(256, 192, 128, DType::bf16, Blocks::rows, 4);
  const Gpu gpu = find_machine("mi300x-8").gpu;
  const auto cus = static_cast<std::size_t>(gpu.cu_count());
  const auto left = cus - static_cast<std::size_t>(gpu.xcds);  // one on every die
  for (const std::size_t asked_for : {std::size_t{0}, std::size_t{8}, cus}) {
    Values knobs = sums::small_tiles(gemm_reduce_scatter());
    knobs.give("comm_cus", static_cast<std::int64_t>(asked_for));
    knobs.give("posts", static_cast<std::int64_t>(Posts::host));
    for (const Kernel& kernel : reduce_scatter("copy-engine", asked, knobs).kernels) {
      if (kernel.name != "add") continue;
      EXPECT_EQ(kernel.workgroups.size(), asked_for == 8 ? 8 : left);
    }
  }
}

TEST(GemmReduceScatter, IsRefusedWithFewerRowsOrColumnsOrLessDepthThanGpus) {
  EXPECT_THROW(scattered(3, 64, 64, DType::fp16, Blocks::rows, 4), UserError);
  EXPECT_NO_THROW(scattered(3, 64, 64, DType::fp16, Blocks::columns, 4));
  EXPECT_THROW(scattered(64, 3, 64, DType::fp16, Blocks::columns, 4), UserError);
  EXPECT_THROW(scattered(64, 64, 3, DType::fp16, Blocks::rows, 4), UserError);
}

TEST(GemmReduceScatter, CountsTheFlopsOfTheWholeProduct) {
  EXPECT_EQ(work_of(scattered(10, 20, 30, DType::fp16, Blocks::rows, 4)).flops, 2.0 * 10 * 20 * 30);
}

}  // namespace
}  // namespace tritax
