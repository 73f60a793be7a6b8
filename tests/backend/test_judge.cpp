// What counts as right: small errors that are numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "backend_hip/judge.hpp"
#include "backend_hip/report.hpp"
#include "model/schedule/builder.hpp"

namespace tritax::gpu {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Errors of a whole result, relative to its norm, and of its worst element.
BufferComparison compared(double relative, double largest, DType dtype = DType::fp16) {
  BufferComparison one{.dtype = dtype, .elements = 100, .sums = {}};
  one.sums.error_squared = relative * relative * 50;
  one.sums.reference_squared = 50;
  std::memcpy(&one.sums.largest_error_bits, &largest, sizeof(largest));
  return one;
}

TEST(Judge, PassesWhatRoundingExplainsInThatDtype) {
  EXPECT_TRUE(judge({{compared(2e-4, 2e-3)}}).passed);
  EXPECT_NEAR(judge({{compared(2e-4, 2e-3)}}).relative_error[0], 2e-4, 1e-12);
  EXPECT_FALSE(judge({{compared(2e-3, 2e-3)}}).passed);  // all of it a little
  EXPECT_FALSE(judge({{compared(2e-4, 2e-2)}}).passed);  // one element
  EXPECT_TRUE(judge({{compared(2e-3, 2e-2, DType::bf16)}}).passed);
  EXPECT_FALSE(judge({{compared(2e-4, 2e-3, DType::fp64)}}).passed);
}

TEST(Judge, CountsAnElementThatIsNoNumberAsWrongWhateverTheOthersAre) {
  BufferComparison one = compared(0, 0);
  EXPECT_TRUE(judge({{one}}).passed);
  one.sums.unordered = 1;
  const CheckResult check = judge({{one}, {compared(1e-4, 1e-3)}});
  EXPECT_FALSE(check.passed);
  EXPECT_EQ(check.relative_error[0], kInfinity);
  EXPECT_NEAR(check.relative_error[1], 1e-4, 1e-12);
  EXPECT_EQ(check.largest_error, kInfinity);
}

// Whichever buffer or rank it is of, in front of errors that are numbers or behind them.
TEST(Judge, CountsSumsThatAreNoNumbersAsWrong) {
  const BufferComparison fine = compared(1e-4, 1e-3);
  BufferComparison error = fine, reference = fine;
  error.sums.error_squared = kNan;
  reference.sums.reference_squared = kNan;
  for (const BufferComparison& one : {error, reference, compared(1e-4, kNan)}) {
    for (const auto& found : std::vector<std::vector<std::vector<BufferComparison>>>{
             {{one}}, {{fine, one}}, {{one, fine}}, {{fine}, {one}}, {{one}, {fine}}}) {
      const CheckResult check = judge(found);
      EXPECT_FALSE(check.passed);
      EXPECT_TRUE(std::isnan(worst_of(check.relative_error)) || std::isnan(check.largest_error));
    }
  }
}

TEST(Judge, TakesZerosWhereZerosAreExpectedAndNothingElse) {
  BufferComparison zeros{.dtype = DType::fp16, .elements = 4, .sums = {}};
  EXPECT_TRUE(judge({{zeros}}).passed);
  zeros.sums.error_squared = 1e-12;
  EXPECT_FALSE(judge({{zeros}}).passed);
}

// In turn: a sum stored in bf16, which a second kernel copies to fp32; and beside it a sum that goes to fp32
// at once, in a kernel that stores another buffer in bf16.
TEST(Judge, KnowsThroughWhichDtypesAValueHasPassed) {
  ScheduleBuilder builder("rounded", 1);
  const auto add = [&](const char* name, DType dtype) { return builder.buffer({name, dtype, 8, 8, 8, 8}); };
  const std::int16_t x = add("x", DType::bf16), sum = add("sum", DType::bf16);
  const std::int16_t wide = add("wide", DType::fp32), direct = add("direct", DType::fp32);
  builder.input(builder.whole(x));
  const auto kernel = [&](std::int16_t from, std::initializer_list<std::int16_t> to) {
    builder.workgroup(builder.kernel({}));
    builder.load(from, {0, 0, 8, 8}, 0);
    for (const std::int16_t buffer : to) builder.store(buffer, {0, 0, 8, 8}, 0);
  };
  kernel(x, {sum, direct});
  kernel(sum, {wide});
  const Schedule schedule = builder.finish();
  EXPECT_EQ(coarsest_dtype_on_the_way(schedule, sum), DType::bf16);
  EXPECT_EQ(coarsest_dtype_on_the_way(schedule, wide), DType::bf16);
  EXPECT_EQ(coarsest_dtype_on_the_way(schedule, direct), DType::fp32);
}

TEST(Judge, KeepsAnErrorThatIsNoNumber) {
  EXPECT_EQ(worst_of({}), 0);
  EXPECT_EQ(worst_of({1e-3, 2e-3, 1e-4}), 2e-3);
  EXPECT_TRUE(std::isnan(worst_of({kNan, 1e-3})));
  EXPECT_TRUE(std::isnan(worst_of({1e-3, kNan, kInfinity})));
  EXPECT_EQ(worst_of({1e-3, kInfinity}), kInfinity);
}

// Scenarios of a file have consecutive seeds: no run may meet the data of another.
TEST(Judge, EveryCheckedRunHasASeedOfItsOwn) {
  static_assert(seed_of_check(7, 0) == 7);
  std::vector<std::uint64_t> seeds;
  for (std::uint64_t scenario = 0; scenario < 300; ++scenario) {
    for (int check = 0; check < 100; ++check) seeds.push_back(seed_of_check(1 + scenario, check));
  }
  std::sort(seeds.begin(), seeds.end());
  EXPECT_EQ(std::adjacent_find(seeds.begin(), seeds.end()), seeds.end());
}

}  // namespace
}  // namespace tritax::gpu
