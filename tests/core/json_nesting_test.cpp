#include "model/core/json_nesting.hpp"

#include <gtest/gtest.h>

#include <string>

namespace tritax {
namespace {

TEST(JsonNesting, FindsTheFirstBracketThatIsTooDeep) {
  EXPECT_EQ(find_json_deeper_than("[[1],[2]]", 2), std::string::npos);
  EXPECT_EQ(find_json_deeper_than("[[1],[{}]]", 2), 6u);
  EXPECT_EQ(find_json_deeper_than(std::string(100'000, '['), 16), 16u);
}

TEST(JsonNesting, BracketsInTextsAreNone) {
  EXPECT_EQ(find_json_deeper_than(R"(["[[[", "\"[[["])", 1), std::string::npos);
  EXPECT_EQ(find_json_deeper_than(R"(["\\", [[]]])", 2), 8u);
}

TEST(JsonNesting, TakesTextThatIsNoJson) {
  EXPECT_EQ(find_json_deeper_than("]]]]\"", 1), std::string::npos);
  EXPECT_EQ(find_json_deeper_than("\"\\", 1), std::string::npos);
}

}  // namespace
}  // namespace tritax
