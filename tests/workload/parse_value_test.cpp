#include "model/workload/parse_value.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "model/core/error.hpp"
#include "model/workload/file_values.hpp"

namespace tritax {
namespace {

constexpr std::array<std::string_view, 2> kParsedColours{"green", "grey"};

const Spec kParsedCount{.name = "count", .help = "how many", .low = 1, .high = 64};
const Spec kParsedColour{
    .name = "colour", .help = "which colour", .kind = ValueKind::name, .high = 1, .names = kParsedColours};
const Spec kParsedFile{.name = "matrix", .help = "a file", .kind = ValueKind::file, .high = 1 << 20};
const Spec kParsedSwitch{.name = "switch", .help = "whether", .kind = ValueKind::boolean};
const Spec kParsedSize{
    .name = "size", .help = "how large", .kind = ValueKind::bytes, .low = 0, .high = 1 << 20};
const Spec kParsedShape{
    .name = "shape", .help = "what shape", .low = 16, .high = 512, .parts = {"m", "n"}, .step = 16};

std::string refusal_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(ParseValue, GivesTheNumbersOfAllColumns) {
  using testing::ElementsAre;
  EXPECT_THAT(parse_value("64", "count", kParsedCount), ElementsAre(64));
  EXPECT_THAT(parse_value("grey", "colour", kParsedColour), ElementsAre(1));
  EXPECT_THAT(parse_value("on", "switch", kParsedSwitch), ElementsAre(1));
  EXPECT_THAT(parse_value("64KiB", "size", kParsedSize), ElementsAre(65536));
  EXPECT_THAT(parse_value("256x64", "shape", kParsedShape), ElementsAre(256, 64));
}

TEST(ParseValue, SaysPlaceValueAndWhatIsAllowed) {
  EXPECT_EQ(refusal_of([] { parse_value("65", "mine: count", kParsedCount); }),
            "mine: count: 65 is out of range; give 1 to 64");
  EXPECT_EQ(refusal_of([] { parse_value("6.5", "count", kParsedCount); }),
            "count: '6.5' is not a whole number");
  EXPECT_EQ(refusal_of([] { parse_value("gren", "colour", kParsedColour); }),
            "colour: unknown name 'gren' (did you mean 'green'?); known are green, grey");
  EXPECT_EQ(refusal_of([] { parse_value("yes", "switch", kParsedSwitch); }),
            "switch: unknown name 'yes'; known are off, on");
  EXPECT_EQ(refusal_of([] { parse_value("2MiB", "size", kParsedSize); }),
            "size: 2MiB is out of range; give 0 to 1048576 bytes");
  EXPECT_EQ(refusal_of([] { parse_value("256x60", "shape", kParsedShape); }),
            "shape 256x60: 60 is not allowed; give multiples of 16 up to 512");
  EXPECT_EQ(refusal_of([] { parse_value("256", "shape", kParsedShape); }),
            "shape: '256' has 1 number; give 2, for example 256x256");
}

TEST(ParseValue, KnowsAFileByThePathThatWasWritten) {
  const std::int64_t number = parse_value("a.mtx", "--matrix", kParsedFile).front();
  EXPECT_GE(number, 1);
  EXPECT_EQ(parse_value("a.mtx", "--matrix", kParsedFile).front(), number);
  EXPECT_NE(parse_value("./a.mtx", "--matrix", kParsedFile).front(), number);
  EXPECT_EQ(file_of(number), "a.mtx");
  EXPECT_EQ(file_of(0), "");
  EXPECT_THROW(parse_value("", "--matrix", kParsedFile), UserError);
}

}  // namespace
}  // namespace tritax
