// GEMM + all-reduce: every pattern leaves every rank all of the summed product, whatever the shape, and the
// checker finds nothing; what a pattern is said to do, it does.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "model/core/error.hpp"
#include "model/parts/partial_sums.hpp"
#include "model/workloads/gemm_all_reduce/workload.hpp"
#include "tests/workloads/partial_sums.hpp"

namespace tritax {
namespace {

namespace all_sums = partial_sums_test;

Problem reduced(std::int64_t m, std::int64_t n, std::int64_t k, DType dtype, int gpus) {
  Problem problem = problem_of(gemm_all_reduce());
  problem.values.give("m", m);
  problem.values.give("n", n);
  problem.values.give("k", k);
  problem.values.give("dtype", static_cast<std::int64_t>(dtype));
  problem.values.give("gpus", gpus);
  complete_problem(problem, "test");
  return problem;
}

Schedule all_reduce(std::string_view pattern, const Problem& asked, const Values& knobs) {
  return all_sums::built(find_pattern(gemm_all_reduce(), pattern, "test"), asked, find_machine("mi300x-8"),
                         knobs);
}

RC_GTEST_PROP(GemmAllReduce, EveryPatternIsSoundAndRightOnRaggedShapes, ()) {
  const int gpus = between(1, 8);
  const auto dtype = static_cast<DType>(between(0, kCommonDTypeCount - 1));
  const Problem asked =
      reduced(gpus + between(0, 90), gpus + between(0, 90), gpus + between(0, 90), dtype, gpus);
  Machine machine = find_machine("mi300x-8");
  machine.gpu.xcds = between(1, 4);
  machine.gpu.cus_per_xcd = between(2, 7);
  machine.library.channels = between(1, 9);
  const Values knobs = all_sums::some_knobs(gemm_all_reduce(), machine);
  for (const Pattern& pattern : gemm_all_reduce().patterns) {
    const std::string wrong = all_sums::what_is_wrong(pattern, asked, machine, knobs);
    if (!wrong.empty()) RC_LOG() << wrong;
    RC_ASSERT(wrong.empty());
  }
}

// Adders that take whole compute units wait on every die for the kernels of one workgroup that tell of
// copies.
TEST(GemmAllReduce, CopiesAreToldOfThoughAddersWaitOnEveryDie) {
  Machine machine = find_machine("mi300x-8");
  machine.gpu.xcds = 2;
  machine.gpu.cus_per_xcd = 3;
  Values knobs = all_sums::small_tiles(gemm_all_reduce());
  knobs.give("comm_tile_m", 16);
  knobs.give("comm_tile_n", 32);
  knobs.give("posts", static_cast<std::int64_t>(Posts::host));
  const Pattern& pattern = find_pattern(gemm_all_reduce(), "copy-engine", "test");
  EXPECT_EQ(all_sums::what_is_wrong(pattern, reduced(96, 128, 90, DType::bf16, 2), machine, knobs), "");
}

class AllReduceDType : public testing::TestWithParam<DType> {};

TEST_P(AllReduceDType, IsRightWithEveryPatternOnOneToEightRanks) {
  Machine machine = find_machine("mi300x-8");
  machine.gpu.xcds = 2;  // small, so that workgroups take turns
  machine.gpu.cus_per_xcd = 4;
  for (const int gpus : {1, 2, 3, 8}) {
    for (const std::int64_t m : {70, 5}) {  // of 5 rows no 8 ranks have one each
      const Problem asked = reduced(m, 50, 90, GetParam(), gpus);
      for (const bool host_barriers : {false, true}) {
        Values knobs = all_sums::small_tiles(gemm_all_reduce());
        knobs.give("host_barriers", host_barriers);
        for (const Pattern& pattern : gemm_all_reduce().patterns) {
          // Push or pull, and who posts copies.
          for (const std::int64_t way : {0, 1}) {
            if (way == 1 && !pattern.uses("transport") && !pattern.uses("posts")) continue;
            knobs.give("transport", way);
            knobs.give("posts", way);
            EXPECT_EQ(all_sums::what_is_wrong(pattern, asked, machine, knobs), "") << gpus << " ranks";
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(DTypes, AllReduceDType,
                         testing::Values(DType::fp32, DType::fp16, DType::bf16, DType::fp8));

// In two shots every block crosses once to its owner and once to each other rank: 2·M·N·(W-1)/W elements. In
// one, and with atomics, every rank sends all of its partial sum to each other.
TEST(GemmAllReduce, SendsWhatItsShotsNeed) {
  const Problem asked = reduced(256, 192, 128, DType::bf16, 4);
  for (const Blocks owners : {Blocks::rows, Blocks::columns}) {
    for (const Pattern& pattern : gemm_all_reduce().patterns) {
      for (const Transport transport : {Transport::push, Transport::pull}) {
        SCOPED_TRACE(pattern.name);
        Values knobs = all_sums::small_tiles(gemm_all_reduce());
        knobs.give("transport", static_cast<std::int64_t>(transport));
        knobs.give("owners", static_cast<std::int64_t>(owners));
        const auto bytes = all_sums::sent_bytes(all_reduce(pattern.name, asked, knobs));
        ASSERT_EQ(bytes.size(), 4U);
        const bool once = pattern.name == "one-shot" || pattern.name == "fused-atomics";
        for (const auto& [rank, sent] : bytes)
          EXPECT_EQ(sent, 256 * 192 * 2 * (once ? 3.0 : 2 * 3.0 / 4)) << rank;
      }
    }
  }
}

// Partial sums of bf16 in fp8 are half as many bytes; the sum that goes to all is as large as C's elements.
TEST(GemmAllReduce, SendsPartialSumsAndSumsInTheDtypesOfTheKnobs) {
  const Problem asked = reduced(256, 192, 128, DType::bf16, 4);
  for (const Pattern& pattern : gemm_all_reduce().patterns) {
    if (!pattern.uses("wire_dtype")) continue;
    SCOPED_TRACE(pattern.name);
    Values knobs = all_sums::small_tiles(gemm_all_reduce());
    knobs.give("wire_dtype", 1 + static_cast<std::int64_t>(DType::fp8));
    const double first = 256 * 192 * (pattern.name == "one-shot" ? 3.0 : 3.0 / 4);
    const double second = pattern.name == "one-shot" ? 0 : 256 * 192 * 3.0 / 4;
    for (const auto& [rank, sent] : all_sums::sent_bytes(all_reduce(pattern.name, asked, knobs)))
      EXPECT_EQ(sent, first + 2 * second) << rank;
    knobs.give("result_dtype", 1 + static_cast<std::int64_t>(DType::fp32));
    for (const auto& [rank, sent] : all_sums::sent_bytes(all_reduce(pattern.name, asked, knobs)))
      EXPECT_EQ(sent, first + 4 * second) << rank;
  }
}

TEST(GemmAllReduce, OwnersOfFewerRowsThanGpusAreRefusedByTheirKnob) {
  const Problem asked = reduced(3, 64, 64, DType::fp16, 4);
  Values knobs = all_sums::small_tiles(gemm_all_reduce());
  EXPECT_NO_THROW(all_reduce("two-shot", asked, knobs));
  knobs.give("owners", static_cast<std::int64_t>(Blocks::rows));
  try {
    all_reduce("two-shot", asked, knobs);
    FAIL();
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("owners"), std::string::npos) << error.what();
  }
  EXPECT_NO_THROW(all_reduce("one-shot", asked, knobs));
  EXPECT_THROW(reduced(3, 3, 64, DType::fp16, 4), UserError);
  EXPECT_THROW(reduced(64, 64, 3, DType::fp16, 4), UserError);
}

TEST(GemmAllReduce, CountsTheFlopsOfTheWholeProduct) {
  EXPECT_EQ(work_of(reduced(10, 20, 30, DType::fp16, 4)).flops, 2.0 * 10 * 20 * 30);
}

}  // namespace
}  // namespace tritax
