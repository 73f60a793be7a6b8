#include "model/workloads/streaming_kernel/workload.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

#include "tests/workloads/any_workload.hpp"

namespace tritax {
namespace {

constexpr std::int64_t kAddNorm = 0;

Problem problem_of_size(std::int64_t rows, std::int64_t cols, std::int64_t operation = kAddNorm,
                        DType dtype = DType::bf16) {
  return problem_with(streaming_kernel(), {{"rows", rows},
                                           {"cols", cols},
                                           {"operation", operation},
                                           {"dtype", static_cast<std::int64_t>(dtype)}});
}

RC_GTEST_PROP(StreamingKernelLaw, AnySizeAndKnobsGiveTheSums, ()) {
  const auto between = [](std::int64_t low, std::int64_t high) { return *rc::gen::inRange(low, high + 1); };
  const Machine machine = find_machine(*rc::gen::element<std::string>("mi300x-8", "h200-4"));
  const Problem problem =
      problem_of_size(between(1, 60), between(1, 300), between(0, 1), static_cast<DType>(between(0, 2)));
  const Given given{{"strip", between(1, 9)}, {"heads", between(0, 1)}, {"launch", between(0, 1)}};
  for (const Pattern& pattern : streaming_kernel().patterns) {
    Given all = given;
    if (pattern.uses("shift")) all["shift"] = between(0, 9);
    const Values knobs = knobs_with(problem, machine, all);
    RC_ASSERT(what_is_wrong(pattern, problem, machine, knobs, 2) == std::string());
  }
}

// Two matrices in and two out, of 268 MB each: with all that is in flight, what memory gives.
TEST(StreamingKernel, OfLargeMatricesIsLimitedByMemory) {
  const Machine machine = find_machine("mi300x-8");
  const Problem problem = problem_of_size(65536, 2048);
  const double fused_ns = time_with("fused", problem, machine);
  const double bytes = work_of(problem).bytes_per_gpu;
  EXPECT_EQ(bytes, 4 * 65536.0 * 2048 * 2);
  EXPECT_LT(bytes / fused_ns, machine.gpu.hbm_gb_per_s * 1.1);
  EXPECT_GT(bytes / fused_ns, 0.6 * machine.gpu.hbm_gb_per_s);
  // Seven matrices move where each step is a kernel.
  const double separate_ns = time_with("separate", problem, machine);
  EXPECT_GT(separate_ns, 1.3 * fused_ns);
  EXPECT_LT(separate_ns, 2.1 * fused_ns);
}

// 2 MB a matrix: a die's L2 has what the die wrote, until a strip is read on another die.
TEST(StreamingKernel, ReadsFromTheL2OfTheDieThatWrote) {
  const Machine machine = find_machine("mi300x-8");
  const Problem problem = problem_of_size(4096, 256);
  const auto time = [&](std::int64_t shift) {
    return time_with("separate", problem, machine, {{"shift", shift}});
  };
  EXPECT_NEAR(time(8), time(0), 0.03 * time(0));
  EXPECT_GE(time(1), time(0));
}

TEST(StreamingKernel, RefusesWhatCannotBe) {
  const Machine machine = find_machine("mi300x-8");
  const auto refusal = [&](std::int64_t rows, std::int64_t cols, std::int64_t strip) -> std::string {
    return refusal_by([&] {
      schedule_with("fused", problem_of_size(rows, cols), machine, {{"strip", strip}});
    });
  };
  EXPECT_EQ(refusal(4096, 65536, 1024).substr(0, 43), "strip: 1024 rows of 65536 columns need 2621");
  EXPECT_EQ(refusal(1 << 20, 1 << 20, 1).substr(0, 6), "strip:");
  EXPECT_NE(refusal(1 << 20, 32768, 2).find("GB on every GPU"), std::string::npos);
  EXPECT_EQ(refusal(64, 64, 4), "accepted");
}

}  // namespace
}  // namespace tritax
