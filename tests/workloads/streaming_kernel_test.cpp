#include "model/workloads/streaming_kernel/workload.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

#include "model/schedule/op_traits.hpp"
#include "model/workloads/streaming_kernel/vector_work.hpp"
#include "tests/workloads/any_workload.hpp"

namespace tritax {
namespace {

constexpr std::int64_t kAddNorm = 0;

Problem problem_of_size(std::int64_t rows, std::int64_t cols, std::int64_t operation = kAddNorm,
                        DType dtype = DType::bf16, const Given& more = {}) {
  Given fields{
      {"rows", rows}, {"cols", cols}, {"operation", operation}, {"dtype", static_cast<std::int64_t>(dtype)}};
  fields.insert(more.begin(), more.end());
  return problem_with(streaming_kernel(), fields);
}

RC_GTEST_PROP(StreamingKernelLaw, AnySizeAndKnobsGiveTheSums, ()) {
  const auto between = [](std::int64_t low, std::int64_t high) { return *rc::gen::inRange(low, high + 1); };
  const Machine machine = find_machine(*rc::gen::element<std::string>("mi300x-8", "h200-4"));
  const std::int64_t operation = between(0, 1);
  Given more;
  if (operation == kAddNorm) {
    more = {{"dropout", between(0, 1)}, {"norm_dtype", between(0, 1)}};
    if (more["dropout"] != 0) more["training"] = between(0, 1);
  }
  const Problem problem =
      problem_of_size(between(1, 60), between(1, 300), operation, static_cast<DType>(between(0, 2)), more);
  const Given given{{"strip", between(1, 9)}, {"heads", between(0, 1)}, {"launch", between(0, 1)}};
  for (const Pattern& pattern : streaming_kernel().patterns) {
    Given all = given;
    if (pattern.uses("shift")) all["shift"] = between(0, 9);
    for (const char* knob : {"random", "arithmetic"}) {
      if (pattern.uses(knob)) all[knob] = between(0, 1);
    }
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

// 134 million elements: on H200 a kernel that keeps one of four random numbers is limited by drawing them,
// one that keeps all four by memory. On one H200 a Triton kernel took 1.91 times as long (32768 x 8192 and
// 65536 x 1024 elements of bf16, scenarios/measured/h200-1-streaming.csv).
TEST(StreamingKernel, DrawsRandomNumbersInTheTimeOfItsInstructions) {
  const Machine machine = find_machine("h200-8");
  const Problem problem = problem_of_size(32768, 4096, kAddNorm, DType::bf16, {{"dropout", 1}});
  const auto time = [&](RandomNumbers numbers) {
    return time_with("fused", problem, machine, {{"random", static_cast<std::int64_t>(numbers)}});
  };
  const double clk =
      fused_clk(machine.gpu, StreamingOperation::add_norm, {true, RandomNumbers::one, RowArithmetic::fp32});
  const double least_ns = 32768.0 * 4096 * clk / (machine.gpu.cu_count() * machine.gpu.boost_clock_ghz);
  EXPECT_GT(time(RandomNumbers::one), least_ns);
  EXPECT_LT(time(RandomNumbers::one), 1.1 * least_ns);
  EXPECT_NEAR(time(RandomNumbers::one) / time(RandomNumbers::four), 1.91, 0.2);
}

// A step of PyTorch with fp32 weights: dropout moves 5 bytes an element, the sum 6, the cast 6, the norm 8.
TEST(StreamingKernel, TakesTheStepsOfPyTorch) {
  const Machine machine = find_machine("h200-8");
  const Given wide{{"dropout", 1}, {"training", 1}, {"norm_dtype", 1}};
  const Problem problem = problem_of_size(1024, 1024, kAddNorm, DType::bf16, wide);
  const Schedule schedule = schedule_with("separate", problem, machine);
  std::vector<std::string> names;
  for (const Kernel& kernel : schedule.kernels) names.push_back(kernel.name);
  EXPECT_EQ(names, (std::vector<std::string>{"dropout", "add", "cast", "norm"}));
  double bytes = 0;
  for (const Op& op : schedule.ops) {
    if (moves_data(op.kind)) bytes += tile_bytes(schedule, op);
  }
  EXPECT_EQ(bytes, 25.0 * 1024 * 1024);
  EXPECT_EQ(work_of(problem).bytes_per_gpu, 11.0 * 1024 * 1024);
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
  const auto refused = [](std::int64_t operation, const Given& more) {
    return refusal_by([&] { problem_of_size(64, 64, operation, DType::bf16, more); });
  };
  EXPECT_EQ(refused(1, {{"dropout", 1}}).substr(0, 40), "test: rotary has no dropout and no norm;");
  EXPECT_EQ(refused(1, {{"norm_dtype", 1}}).substr(0, 40), "test: rotary has no dropout and no norm;");
  EXPECT_EQ(refused(kAddNorm, {{"training", 1}}).substr(0, 44),
            "test: there is no mask to keep without dropo");
}

}  // namespace
}  // namespace tritax
