#include "model/workload/values.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace tritax {
namespace {

constexpr std::array<std::string_view, 3> kColours{"red", "green", "blue"};

const std::array<Spec, 5> kTable{{
    {.name = "rows", .help = "a size", .high = 100, .required = true, .option = "-R"},
    {.name = "colour", .help = "a name", .kind = ValueKind::name, .usual = {2}, .names = kColours},
    {.name = "comm_tile", .help = "a shape", .high = 64, .usual = {16, 32}, .parts = {"m", "n"}, .step = 16},
    {.name = "loud", .help = "a boolean", .kind = ValueKind::boolean},
    {.name = "cube", .help = "a shape", .high = 64, .usual = {1, 2, 3}, .parts = {"x", "y", "z"}},
}};

TEST(Spec, HasAColumnForEachPartOfAShape) {
  EXPECT_EQ(kTable[0].columns(), 1u);
  EXPECT_EQ(kTable[0].column(0), "rows");
  EXPECT_EQ(kTable[2].columns(), 2u);
  EXPECT_EQ(kTable[2].column(1), "comm_tile_n");
  EXPECT_EQ(kTable[4].columns(), 3u);
  EXPECT_EQ(kTable[4].column(2), "cube_z");
}

TEST(Spec, HasAnOptionWithDashesUnlessItNamesOne) {
  EXPECT_EQ(kTable[0].option_name(), "-R");
  EXPECT_EQ(kTable[2].option_name(), "--comm-tile");
}

TEST(FindSpec, IsNullForWhatTheTableDoesNotHave) {
  EXPECT_EQ(find_spec(kTable, "comm_tile"), &kTable[2]);
  EXPECT_EQ(find_spec(kTable, "comm_tile_m"), nullptr);
  EXPECT_EQ(find_spec(kTable, ""), nullptr);
}

TEST(Values, BeginAtTheUsualOnesAndNobodyGaveThem) {
  const Values values(kTable);
  const std::vector<std::int64_t> expected{0, 2, 16, 32, 0, 1, 2, 3};
  ASSERT_EQ(values.columns(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(values.at(i), expected[i]) << i;
    EXPECT_FALSE(values.given_at(i)) << i;
  }
}

TEST(Values, FindColumnsByTheirWholeNames) {
  const Values values(kTable);
  for (const char* column :
       {"rows", "colour", "comm_tile_m", "comm_tile_n", "loud", "cube_x", "cube_y", "cube_z"}) {
    EXPECT_TRUE(values.has(column)) << column;
  }
  for (const char* column :
       {"", "row", "rows_", "comm_tile", "comm_tile_", "comm_tile_k", "comm_tilem", "cube_xy"}) {
    EXPECT_FALSE(values.has(column)) << column;
  }
  EXPECT_EQ(values["comm_tile_n"], 32);
  EXPECT_EQ(values["cube_z"], 3);
  EXPECT_EQ(values.first_column(2), 2u);
  EXPECT_EQ(values.first_column(4), 5u);
}

TEST(Values, TellWhatSomebodyGaveFromWhatIsAssumed) {
  Values values(kTable);
  values.assume("rows", 7);
  EXPECT_EQ(values["rows"], 7);
  EXPECT_FALSE(values.given("rows"));
  EXPECT_EQ(values.if_given("rows"), std::nullopt);
  values.give("rows", 7);
  EXPECT_TRUE(values.given("rows"));
  EXPECT_EQ(values.if_given("rows"), 7);
  values.give("comm_tile_m", 48);
  EXPECT_TRUE(values.given("comm_tile_m"));
  EXPECT_FALSE(values.given("comm_tile_n"));
}

TEST(Values, ThatAreNotThereHaveAFallBackAndWereNotGiven) {
  const Values values(kTable);
  EXPECT_EQ(values.get_or("gpus", 5), 5);
  EXPECT_EQ(values.get_or("colour", 5), 2);
  EXPECT_FALSE(values.given("gpus"));
  EXPECT_EQ(values.if_given("gpus"), std::nullopt);
}

TEST(Values, WithOthersTakeWhatThoseWereGivenAndNoMore) {
  Values base(kTable);
  base.give("rows", 3);
  base.assume("colour", 0);
  Values other(kTable);
  other.give("comm_tile_n", 64);
  other.give("loud", 0);
  other.assume("rows", 99);
  const Values both = base.with(other);
  EXPECT_EQ(both["rows"], 3);
  EXPECT_EQ(both["colour"], 0);
  EXPECT_EQ(both["comm_tile_m"], 16);
  EXPECT_EQ(both["comm_tile_n"], 64);
  EXPECT_TRUE(both.given("rows"));
  EXPECT_TRUE(both.given("comm_tile_n"));
  EXPECT_TRUE(both.given("loud")) << "given its usual value";
  EXPECT_FALSE(both.given("colour"));
  EXPECT_EQ(base.with(Values{}), base);
}

TEST(Values, AreEqualWhoeverGaveThem) {
  Values given(kTable);
  Values assumed(kTable);
  given.give("rows", 4);
  assumed.assume("rows", 4);
  EXPECT_EQ(given, assumed);
  assumed.assume("cube_z", 4);
  EXPECT_FALSE(given == assumed);
}

TEST(TextOf, IsWhatAFileWouldHold) {
  Values values(kTable);
  values.give("rows", 64);
  values.give("loud", 1);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < kTable.size(); ++i) texts.push_back(text_of(values, i));
  EXPECT_EQ(texts, (std::vector<std::string>{"64", "blue", "16x32", "true", "1x2x3"}));
}

TEST(KeyOf, NamesEveryValueInOrder) {
  Values values(kTable);
  values.give("rows", 64);
  EXPECT_EQ(key_of(values), "rows 64 colour blue comm_tile 16x32 loud false cube 1x2x3");
  EXPECT_EQ(key_of(Values{}), "");
}

Values some_values() {
  Values values(kTable);
  for (std::size_t i = 0; i < values.columns(); ++i) {
    const int high = i == 1 ? 3 : i == 4 ? 2 : 12;
    if (*rc::gen::arbitrary<bool>()) values.give_at(i, *rc::gen::inRange(0, high));
  }
  return values;
}

RC_GTEST_PROP(KeyOf, IsEqualWhereValuesAreAndOnlyThere, ()) {
  const Values a = some_values();
  const Values b = some_values();
  RC_ASSERT((key_of(a) == key_of(b)) == (a == b));
  RC_ASSERT(key_of(a) == key_of(Values(a)));
}

RC_GTEST_PROP(Values, WithOthersAreTheirsWhereTheyWereGivenAndElseTheOwn, ()) {
  const Values a = some_values();
  const Values b = some_values();
  const Values both = a.with(b);
  for (std::size_t i = 0; i < both.columns(); ++i) {
    RC_ASSERT(both.at(i) == (b.given_at(i) ? b.at(i) : a.at(i)));
    RC_ASSERT(both.given_at(i) == (a.given_at(i) || b.given_at(i)));
  }
  RC_ASSERT(both.with(b) == both);
}

TEST(ParseBytes, TakesNumbersWithBinaryUnits) {
  EXPECT_EQ(parse_bytes("4096"), 4096);
  EXPECT_EQ(parse_bytes("0"), 0);
  EXPECT_EQ(parse_bytes("7 B"), 7);
  EXPECT_EQ(parse_bytes("2 KiB"), 2048);
  EXPECT_EQ(parse_bytes("64 MiB"), std::int64_t{64} << 20);
  EXPECT_EQ(parse_bytes("64MiB"), std::int64_t{64} << 20);
  EXPECT_EQ(parse_bytes("3 GiB"), std::int64_t{3} << 30);
}

TEST(ParseBytes, HasNothingForWhatIsNoSize) {
  for (const char* text :
       {"", "MiB", "64 MB", "64 mib", "-1", "+1", "1.5 MiB", "1 KiB ", " 1", "0x10", "1 2"}) {
    EXPECT_EQ(parse_bytes(text), std::nullopt) << text;
  }
}

TEST(ParseBytes, HasNothingForWhatOverflows) {
  EXPECT_EQ(parse_bytes("4294967296 GiB"), std::int64_t{1} << 62);
  EXPECT_EQ(parse_bytes("4294967297 GiB"), std::nullopt);
  EXPECT_EQ(parse_bytes("99999999999 GiB"), std::nullopt);
  EXPECT_EQ(parse_bytes("9999999999999999999999"), std::nullopt);
}

}  // namespace
}  // namespace tritax
