// Buffers that a line codec holds: in JSON, and what the checker refuses.

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "model/schedule/builder.hpp"
#include "model/schedule/check.hpp"
#include "model/schedule/json.hpp"

namespace tritax {
namespace {

struct Sample {
  DType dtype = DType::fp16;
  Rect stored{0, 0, 4, 64};
  bool adds = false;
};

Schedule coded(const Sample& sample) {
  ScheduleBuilder builder("coded", 1);
  const std::int16_t own = builder.buffer({"own", sample.dtype, 4, 80, 4, 80});
  const std::int16_t held = builder.buffer({"held", sample.dtype, 4, 80, 4, 80, Codec::int6});
  builder.input(builder.whole(own));
  Kernel codes;
  codes.name = "codes";
  const std::int32_t kernel = builder.kernel(std::move(codes));
  builder.workgroup(kernel);
  builder.load(own, sample.stored, 0);
  if (sample.adds) {
    builder.atomic_add(held, sample.stored, 0);
  } else {
    builder.store(held, sample.stored, 0);
  }
  builder.launch(0, kernel);
  builder.host(0, HostOpKind::device_synchronize);
  return builder.finish();
}

std::string first_finding(const Schedule& schedule) {
  const std::vector<Finding> findings = check_schedule(schedule);
  return findings.empty() ? "" : findings.front().message;
}

TEST(CodedBuffer, IsTheSameFromJson) {
  const std::string text = schedule_to_json(coded({}));
  EXPECT_NE(text.find(R"("codec": "int6")"), std::string::npos);
  const Schedule read = schedule_from_json(text, "test");
  EXPECT_EQ(read.buffers[1].codec, Codec::int6);
  EXPECT_EQ(read.buffers[0].codec, Codec::same);
  EXPECT_EQ(schedule_to_json(read), text);
}

TEST(CodedBuffer, IsStoredInWholeGroups) {
  EXPECT_EQ(first_finding(coded({})), "");
  EXPECT_EQ(first_finding(coded({.stored = {0, 64, 4, 16}})), "");  // to the end of the row
  EXPECT_NE(first_finding(coded({.stored = {0, 0, 4, 48}})).find("whole groups"), std::string::npos);
  EXPECT_NE(first_finding(coded({.stored = {0, 16, 4, 64}})).find("whole groups"), std::string::npos);
}

TEST(CodedBuffer, TakesNoAtomicAdditionsAndHoldsNoFp8) {
  EXPECT_NE(first_finding(coded({.adds = true})).find("only load, reduce and store"), std::string::npos);
  EXPECT_NE(first_finding(coded({.dtype = DType::fp8})).find("codecs hold"), std::string::npos);
}

}  // namespace
}  // namespace tritax
