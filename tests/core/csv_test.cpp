#include "model/core/csv.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "model/core/error.hpp"

namespace tritax {
namespace {

// The message of the UserError that reading causes; empty if there is none.
std::string csv_message(const std::string& csv, const std::string& needed = "id,value") {
  try {
    UniqueRows once("id,maybe");
    read_csv(csv, "f.csv", needed, "a test", [&once](const CsvRow& row) { once.add(row); });
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(Csv, TakesAByteOrderMarkInFrontOfRemarksOrHeader) {
  std::vector<std::string> ids;
  const auto remarks = read_csv("\xEF\xBB\xBF# here\nid,value\na,1\n", "f.csv", "id,value", "a test",
                                [&ids](const CsvRow& row) { ids.push_back(row.text("id")); });
  EXPECT_EQ(remarks, std::vector<std::string>{"here"});
  EXPECT_EQ(ids, std::vector<std::string>{"a"});
  EXPECT_EQ(csv_message("\xEF\xBB\xBFid,value\na,1\n"), "");
}

TEST(Csv, RefusesTheSecondRowOfTheSame) {
  EXPECT_EQ(csv_message("id,value\na,1\nb,1\n"), "");
  EXPECT_EQ(csv_message("id,value\na,1\nb,1\na,2\n"),
            "f.csv:4: this row repeats f.csv:2 (id = a); allowed: one row each");
  EXPECT_EQ(csv_message("id,maybe,value\na,1,1\na,2,1\n"), "");
}

TEST(Csv, RefusesQuotationMarks) {
  EXPECT_EQ(csv_message("id,value\n\"a,1\n"),
            "f.csv:2: a quotation mark; write fields without quotes, names have no commas");
  EXPECT_EQ(csv_message("\"id\",value\na,1\n"),
            "f.csv:1: a quotation mark; write fields without quotes, names have no commas");
  EXPECT_EQ(csv_message("# \"here\"\nid,value\na,1\n"), "");
}

TEST(Csv, RefusesControlCharacters) {
  const char* message = "control character 0x1b; leave it out";
  EXPECT_EQ(csv_message("id,value\na\x1b[2J,1\n"), std::string("f.csv:2: ") + message);
  EXPECT_EQ(csv_message("# \x1b[2J\nid,value\na,1\n"), std::string("f.csv:1: ") + message);
  EXPECT_EQ(csv_message("#\there\nid,value\r\na,1\r\n"), "");
}

TEST(Csv, OffersAColumnInAnotherCase) {
  EXPECT_NE(csv_message("k,M,value\n1,2,3\n", "m").find("column 'm' is missing (is 'M' it?)"),
            std::string::npos);
}

TEST(Csv, SaysWhichLineLacksWhatAndWhatItShouldHold) {
  EXPECT_EQ(csv_message("id,vale\na,1\n"),
            "f.csv:1: column 'value' is missing (is 'vale' it?) in 'id,vale'; allowed: a first line with the "
            "columns id, value and maybe others, as a test has it");
  EXPECT_EQ(
      csv_message("# remark\nid,value\n\n"),
      "f.csv:3: the file ends behind its column names, without a row of values; allowed: a line of column "
      "names (id, value) and at least one row of values below it, as a test has it");
}

TEST(Csv, RefusesFieldsThatNobodyWouldWrite) {
  EXPECT_EQ(csv_message("id,value\n" + std::string(1000, 'a') + ",1\n"), "");
  const std::string much(5'000'000, 'a');
  const std::string shown = "'" + much.substr(0, 200) + "…'; allowed: at most 1000";
  EXPECT_EQ(csv_message("id,value\n" + much + ",1\n"), "f.csv:2: a field of 5000000 bytes, " + shown);
  EXPECT_EQ(csv_message("id," + much + "\na,1\n"), "f.csv:1: a field of 5000000 bytes, " + shown);
}

}  // namespace
}  // namespace tritax
