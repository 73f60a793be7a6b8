#include "cli/table.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <sstream>
#include <string>

namespace tritax::cli {
namespace {

Table small_table() {
  Table table{{{"name", "name"}, {"time_us", "time", "us", 1}, {"count", "count"}}, {}};
  table.add({std::string("a"), 1234.56, std::int64_t{7}});
  table.add({std::string("longer"), 0.04, {}});
  return table;
}

TEST(Table, TextAlignsWordsLeftAndNumbersRightUnderHeadersWithUnits) {
  EXPECT_EQ(to_text(small_table()),
            "name    time (us)  count\n"
            "a          1234.6      7\n"
            "longer        0.0      -\n");
}

TEST(Table, TextShowsControlCharactersByTheirNumbers) {
  Table table;
  table.columns = {{"name", "name"}};
  table.add({std::string("a\x1b[2Jb\x7f")});
  EXPECT_EQ(to_text(table), "name\na\\x1b[2Jb\\x7f\n");
}

TEST(Table, CsvKeepsAllDigitsAndHasKeysAsHeader) {
  EXPECT_EQ(to_csv(small_table()), "name,time_us,count\na,1234.56,7\nlonger,0.04,\n");
}

TEST(Table, CsvQuotesCommasQuotesAndLineBreaks) {
  Table table{{{"text", "text"}}, {}};
  table.add({std::string("a, \"b\"\nc")});
  EXPECT_EQ(to_csv(table), "text\n\"a, \"\"b\"\"\nc\"\n");
}

TEST(Table, NumbersThatDoNotExistAreEmptyCells) {
  Table table{{{"x", "x"}, {"y", "y"}}, {}};
  table.add({std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()});
  EXPECT_EQ(to_csv(table), "x,y\n,\n");
  EXPECT_EQ(to_text(table), "x  y\n-  -\n");
}

TEST(Table, WidthCountsSignsNotBytes) {
  Table table{{{"shape", "shape"}, {"n", "n"}}, {}};
  table.add({std::string("8×8"), std::int64_t{1}});
  table.add({std::string("8x8x8"), std::int64_t{2}});
  EXPECT_EQ(to_text(table), "shape  n\n8×8    1\n8x8x8  2\n");
}

TEST(Table, ColumnsThatDoNotFitGoOnInAFurtherLine) {
  Table table{{{"pattern", "pattern"}, {"a_us", "first", "us"}, {"b_us", "second", "us"}}, {}};
  table.add({std::string("fused-sequential"), 1.0, 2.0});
  EXPECT_EQ(to_text(table, {false, 30}),
            "pattern           first (us)\n"
            "    second (us)\n"
            "fused-sequential         1.0\n"
            "            2.0\n");
  EXPECT_EQ(to_text(table, {false, 80}), to_text(table));
}

TEST(Table, LongTextsAreBrokenAtBlanksBesideTheOtherColumns) {
  Table table{{{"key", "key"}, {"source", "source"}}, {}};
  table.add({std::string("link"), std::string("a data sheet of the vendor, page nine")});
  EXPECT_EQ(to_text(table, {false, 32}),
            "key   source\n"
            "link  a data sheet of the\n"
            "      vendor, page nine\n");
}

TEST(Table, NoLineIsWiderThanTheTerminal) {
  Table table = small_table();
  table.columns.push_back({"knobs", "knobs"});
  for (auto& row : table.rows)
    row.emplace_back(std::string("256x256x64, 8 waves, group-M 6, staggered peers, stream"));
  for (std::size_t width = 24; width < 100; ++width) {
    std::istringstream lines(to_text(table, {false, width}));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), width);
  }
}

}  // namespace
}  // namespace tritax::cli
