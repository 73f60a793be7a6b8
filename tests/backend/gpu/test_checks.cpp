// Checked runs: each on data of its own, the first wrong one ends them, and what is no number is wrong.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "backend_hip/report.hpp"
#include "gpu_schedules.hpp"

namespace tritax::gpu {
namespace {

constexpr Problem kSmall{128, 128, 256, DType::bf16};

RunOptions checked(std::uint64_t seed, int checks) {
  RunOptions options;
  options.check = options.quiet = true;
  options.checks = checks;
  options.seed = seed;
  options.warmup = 0;
  options.repeats = 1;
  options.executor.flush_bytes = 0;
  return options;
}

// C += A·B: right where C is 0 before the run, as it is on fresh data.
Schedule adding() {
  ScheduleBuilder builder("adds to C", 1);
  const std::int16_t a = builder.buffer({"A", DType::bf16, kSmall.m, kSmall.k, 128, 64});
  const std::int16_t b = builder.buffer({"B", DType::bf16, kSmall.k, kSmall.n, 64, 128});
  const std::int16_t c = builder.buffer({"C", DType::fp32, kSmall.m, kSmall.n, 128, 128});
  builder.result(c);
  builder.expect_column_blocks(a, b, c);
  const std::int32_t kernel = matmul_kernel(builder, "gemm", {128, 128}, DType::bf16);
  builder.workgroup(kernel);
  builder.matmul(a, b, {0, 0, 128, 128}, 0, kSmall.k);
  builder.atomic_add(c, {0, 0, 128, 128}, 0);
  builder.launch(0, kernel);
  return builder.finish();
}

Schedule storing() {
  ScheduleBuilder builder("stores C", 1);
  const Operands buffers = operands(builder, kSmall, {128, 128});
  const std::int32_t kernel = matmul_kernel(builder, "gemm", {128, 128}, DType::bf16);
  builder.workgroup(kernel);
  builder.matmul(buffers.a, buffers.b, {0, 0, 128, 128}, 0, kSmall.k);
  builder.store(buffers.c, {0, 0, 128, 128}, 0);
  builder.launch(0, kernel);
  return builder.finish();
}

TEST(CheckedRuns, FindFreshDataEveryTime) {
  TRITAX_NEEDS_GPUS(1);
  const Schedule schedule = adding();
  const Measurement measured = measure(schedule, checked(81, 3));
  EXPECT_TRUE(measured.right);
  EXPECT_EQ(measured.checks, 3);
  Executor executor(schedule, checked(81, 1).executor);
  executor.fill(81);
  executor.run();
  EXPECT_TRUE(executor.check().passed);
  executor.run();  // on what the first run has left
  EXPECT_FALSE(executor.check().passed);
}

// What rounding leaves is another number with other data.
TEST(CheckedRuns, HaveSeedsOfTheirOwn) {
  TRITAX_NEEDS_GPUS(1);
  const Schedule schedule = storing();
  const auto error_of = [&](std::uint64_t seed, int checks) {
    return measure(schedule, checked(seed, checks)).relative_error;
  };
  bool second_was_larger = false;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    const double first = error_of(seed, 1);
    const double second = error_of(seed_of_check(seed, 1), 1);
    // Sums over the elements differ in their last bits, for their order is that of atomics.
    EXPECT_GT(std::abs(first - second), 1e-6 * first);
    EXPECT_NEAR(error_of(seed, 2), std::max(first, second), 1e-9 * first);
    second_was_larger = second_was_larger || second > first;
  }
  EXPECT_TRUE(second_was_larger);  // else 8 seeds cannot tell a second run from a first one again
}

// Two tiles of C, one of which nobody stores: before a run there is NaN.
TEST(CheckedRuns, CountWhatIsNoNumberAsWrongAndStopThere) {
  TRITAX_NEEDS_GPUS(1);
  const Problem wide{128, 256, 256, DType::bf16};
  ScheduleBuilder builder("half of C", 1);
  const Operands buffers = operands(builder, wide, {128, 128});
  const std::int32_t kernel = matmul_kernel(builder, "gemm", {128, 128}, DType::bf16);
  builder.workgroup(kernel);
  builder.matmul(buffers.a, buffers.b, {0, 0, 128, 128}, 0, wide.k);
  builder.store(buffers.c, {0, 0, 128, 128}, 0);
  builder.launch(0, kernel);
  const Measurement measured = measure(builder.finish(), checked(82, 3));
  EXPECT_FALSE(measured.right);
  EXPECT_EQ(measured.checks, 1);
  EXPECT_FALSE(std::isfinite(measured.relative_error));
}

}  // namespace
}  // namespace tritax::gpu
