// Line codecs: what a reader finds is off by no more than the law of the codec, and the bound of a schedule
// is the sum of what its codecs do.

#include "sim/functional_codec.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "model/core/error.hpp"
#include "model/schedule/builder.hpp"

namespace tritax {
namespace {

constexpr std::array kCodecs{Codec::fp8, Codec::int8, Codec::int6, Codec::int4};

Eigen::MatrixXd row_of(std::initializer_list<double> values) {
  Eigen::MatrixXd row(1, static_cast<Eigen::Index>(values.size()));
  std::copy(values.begin(), values.end(), row.data());
  return row;
}

RC_GTEST_PROP(Codec, ErrsByNoMoreThanItsLawInEveryGroup, ()) {
  const auto codec = *rc::gen::elementOf(std::vector<Codec>(kCodecs.begin(), kCodecs.end()));
  const int cols = *rc::gen::inRange(1, 100);
  const double size = std::ldexp(1.0, *rc::gen::inRange(-6, 10));  // scales are normal numbers of fp16
  Eigen::MatrixXd values(3, cols);
  for (double& value : values.reshaped()) value = size * (*rc::gen::inRange(-1000, 1001) / 1000.0);
  const Eigen::MatrixXd held = after_codec(codec, values);
  for (int row = 0; row < 3; ++row) {
    for (int begin = 0; begin < cols; begin += kCodecGroup) {
      const int width = std::min(kCodecGroup, cols - begin);
      const double largest = values.row(row).segment(begin, width).cwiseAbs().maxCoeff();
      const double error = (held - values).row(row).segment(begin, width).cwiseAbs().maxCoeff();
      RC_ASSERT(error <= error_of(codec) * largest + 1e-5);  // 1e-5: scales below the normal numbers
    }
  }
}

// The largest element gives -2^(b-1); the other end of the range is one step shorter.
TEST(Codec, KeepsMultiplesOfItsStepAndCutsOffOneEnd) {
  const Eigen::MatrixXd kept = row_of({8, -7, 3, 0, -1});
  EXPECT_EQ(after_codec(Codec::int4, kept), kept);
  EXPECT_EQ(after_codec(Codec::int4, row_of({8, -8})), row_of({8, -7}));
  EXPECT_EQ(after_codec(Codec::int4, row_of({-8, 1.4, 2.6})), row_of({-8, 1, 3}));
  EXPECT_EQ(after_codec(Codec::int8, row_of({128, 0.4, 0})), row_of({128, 0, 0}));
}

TEST(Codec, OfFp8HasThreeBitsBehindTheFirst) {
  const Eigen::MatrixXd kept = row_of({240, -120, 1.125, 0.0078125, 0});
  EXPECT_EQ(after_codec(Codec::fp8, kept), kept);
  EXPECT_EQ(after_codec(Codec::fp8, row_of({240, 17, 1.0625})), row_of({240, 16, 1}));  // ties to even
}

TEST(Codec, GivesEveryGroupItsScaleAndKeepsZeros) {
  Eigen::MatrixXd values = Eigen::MatrixXd::Zero(1, 2 * kCodecGroup);
  values(0, 0) = 1024;
  values(0, kCodecGroup) = 1;
  EXPECT_EQ(after_codec(Codec::int4, values), values);
  EXPECT_EQ(after_codec(Codec::int8, Eigen::MatrixXd::Zero(2, 40)), Eigen::MatrixXd::Zero(2, 40));
}

TEST(Codec, TakesItsBitsAndTwoBytesPerGroup) {
  EXPECT_EQ(coded_bytes(Codec::int4, 64), 32 + 4);
  EXPECT_EQ(coded_bytes(Codec::int6, 32), 24 + 2);
  EXPECT_EQ(coded_bytes(Codec::fp8, 33), 33 + 4);
}

enum class Then { added_up, stored_back, added_atomically };

Schedule through(Codec codec, Then then) {
  ScheduleBuilder builder("through a codec", 1);
  const std::int16_t own = builder.buffer({"own", DType::fp16, 4, 32, 4, 32});
  const std::int16_t held = builder.buffer({"held", DType::fp16, 4, 32, 4, 32, codec});
  const std::int16_t sum = builder.buffer({"sum", DType::fp16, 4, 32, 4, 32});
  builder.input(builder.whole(own));
  Kernel codes;
  codes.name = "codes";
  const std::int32_t kernel = builder.kernel(std::move(codes));
  builder.workgroup(kernel);
  const Rect all{0, 0, 4, 32};
  builder.load(own, all, 0);
  builder.reduce(own, all, 0);
  builder.store(held, all, 0);
  builder.load(own, all, 0);
  builder.reduce(held, all, 0);
  if (then == Then::added_up) builder.store(sum, all, 0);
  if (then == Then::stored_back) builder.store(own, all, 0);
  if (then == Then::added_atomically) builder.atomic_add(sum, all, 0);
  builder.launch(0, kernel);
  return builder.finish();
}

// Twice a number below 1 is coded; three of them are the sum.
TEST(CodecErrors, AreTheCodecsShareOfWhatItHolds) {
  for (const Codec codec : kCodecs) {
    const std::vector<double> errors = codec_errors(through(codec, Then::added_up));
    ASSERT_EQ(errors.size(), 3U);
    EXPECT_EQ(errors[0], 0);
    EXPECT_DOUBLE_EQ(errors[1], 2 * error_of(codec));
    EXPECT_DOUBLE_EQ(errors[2], 2 * error_of(codec));
  }
  EXPECT_TRUE(codec_errors(through(Codec::same, Then::added_up)).empty());
}

std::string refusal_of(const Schedule& schedule) {
  try {
    codec_errors(schedule);
  } catch (const UserError& error) {
    return error.what();
  }
  return {};
}

TEST(CodecErrors, HaveNoBoundWhereValuesReturn) {
  EXPECT_NE(refusal_of(through(Codec::int8, Then::stored_back)).find("return to a buffer"),
            std::string::npos);
}

TEST(CodecErrors, AreUnknownBehindOtherOperations) {
  EXPECT_NE(refusal_of(through(Codec::int8, Then::added_atomically)).find("only through load, reduce"),
            std::string::npos);
  EXPECT_EQ(refusal_of(through(Codec::same, Then::added_atomically)), "");
}

}  // namespace
}  // namespace tritax
