// Schedules in fp64 keep its digits, and the comparison demands them.
#include <gtest/gtest.h>

#include "model/schedule/builder.hpp"
#include "sim/functional.hpp"

namespace tritax {
namespace {

constexpr Rect kWholeTile{0, 0, 4, 4};

// C = A·B in fp64 in two halves of K: the first waits in a buffer of `parts` until the second is added.
Schedule product_in_halves(DType parts) {
  ScheduleBuilder builder("halves", 1);
  const std::int16_t a = builder.buffer({"A", DType::fp64, 4, 64, 4, 64});
  const std::int16_t b = builder.buffer({"B", DType::fp64, 64, 4, 64, 4});
  const std::int16_t half = builder.buffer({"half", parts, 4, 4, 4, 4});
  const std::int16_t c = builder.buffer({"C", DType::fp64, 4, 4, 4, 4});
  builder.result(c);
  builder.input(builder.whole(a));
  builder.input(builder.whole(b));
  builder.expect_product(builder.whole(c), builder.whole(a, 0), builder.whole(b, 0));
  Kernel kernel;
  kernel.name = "halves";
  kernel.tile = {4, 4, 32, 1, Pipeline::serial};
  const std::int32_t id = builder.kernel(kernel);
  builder.workgroup(id);
  builder.matmul(a, b, kWholeTile, 0, 32);
  builder.store(half, kWholeTile, 0);
  builder.barrier();
  builder.matmul(a, b, kWholeTile, 32, 64);
  builder.reduce(half, kWholeTile, 0);
  builder.store(c, kWholeTile, 0);
  builder.launch(0, id);
  builder.host(0, HostOpKind::device_synchronize);
  return builder.finish();
}

// Sums of products of 53 digits: 24 of them would be off by 1e-8.
TEST(FunctionalExecutor, IsHeldToAllDigitsOfFp64UnlessSomeWriteRounds) {
  const Machine machine = find_machine("h200-4");
  const FunctionalResult wide = execute_functionally(product_in_halves(DType::fp64), machine, 5);
  EXPECT_TRUE(wide.stale_reads.empty());
  EXPECT_EQ(wide.right_within, 1e-12);
  EXPECT_LE(wide.max_relative_error, 1e-14);
  // What is compared is in fp64 here as well; what it is made of is not.
  const FunctionalResult rounded = execute_functionally(product_in_halves(DType::fp32), machine, 5);
  EXPECT_GT(rounded.max_relative_error, 1e-10);
  EXPECT_EQ(rounded.right_within, 1e-6);
  EXPECT_LE(rounded.max_relative_error, rounded.right_within);
}

// No addend loses a digit, whichever workgroup adds.
TEST(FunctionalExecutor, AddsAtomicallyInFp64) {
  ScheduleBuilder builder("sum", 1);
  const std::int16_t parts = builder.buffer({"parts", DType::fp64, 16, 4, 4, 4});
  const std::int16_t ones = builder.buffer({"select", DType::fp64, 4, 16, 4, 16});
  const std::int16_t sum = builder.buffer({"sum", DType::fp64, 4, 4, 4, 4});
  builder.result(sum);
  builder.input(builder.whole(parts));
  builder.input(builder.whole(ones));
  builder.input(builder.whole(sum), InputValues::zero);
  builder.expect_product(builder.whole(sum), builder.whole(ones, 0), builder.whole(parts, 0));
  Kernel kernel;
  kernel.name = "add";
  kernel.tile = {4, 4, 4, 1, Pipeline::serial};
  const std::int32_t id = builder.kernel(kernel);
  for (std::int32_t part = 0; part < 4; ++part) {
    builder.workgroup(id);
    builder.matmul(ones, parts, kWholeTile, 4 * part, 4 * part + 4);
    builder.atomic_add(sum, kWholeTile, 0);
  }
  builder.launch(0, id);
  builder.host(0, HostOpKind::device_synchronize);
  const FunctionalResult result = execute_functionally(builder.finish(), find_machine("h200-4"), 5);
  EXPECT_TRUE(result.stale_reads.empty());
  EXPECT_EQ(result.right_within, 1e-12);
  EXPECT_LE(result.max_relative_error, 1e-14);
}

}  // namespace
}  // namespace tritax
