#include "model/core/printable.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

#include "model/core/error.hpp"
#include "model/core/read_file.hpp"

namespace tritax {
namespace {

TEST(Printable, EscapesControlCharactersAndLeavesTheRest) {
  EXPECT_EQ(without_controls("a\x1b[2J\x7f é"), "a\\x1b[2J\\x7f é");
  EXPECT_EQ(without_controls(std::string("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(without_controls("a\n\tb", "\n"), "a\n\\x09b");
}

TEST(Printable, CutsBetweenCharacters) {
  EXPECT_EQ(cut("four", 4), "four");
  EXPECT_EQ(cut("fives", 4), "five…");
  EXPECT_EQ(cut("aé", 2), "a…");  // é has two bytes
}

TEST(Printable, AMessageKeepsItsWordsAndCutsWhatItRepeats) {
  const std::string usual = "f.csv:3: column 'gpus': 'many' is not allowed; allowed: a number from 1 to 64";
  EXPECT_EQ(presentable(usual), usual);
  const std::string much(100'000, 'x');
  const std::string shown = much.substr(0, 200) + "…";
  EXPECT_EQ(presentable("f.csv: '" + much + "' is not allowed"), "f.csv: '" + shown + "' is not allowed");
  EXPECT_EQ(presentable("--id: " + much + " is unknown"), "--id: " + shown + " is unknown");
  std::string words;
  for (int i = 0; i < 10'000; ++i) words += "no way ";
  EXPECT_EQ(presentable("a \"" + words + "\" is unknown; allowed: b"),
            "a \"" + words.substr(0, 200) + "…\" is unknown; allowed: b");
}

TEST(Printable, AMessageHasTheLinesOfItsListOnly) {
  EXPECT_EQ(presentable("not sound:\n  one\n  two"), "not sound:\n  one\n  two");
  EXPECT_EQ(presentable("-M: '5\n' is no number"), "-M: '5\\x0a' is no number");
  EXPECT_EQ(presentable_line("one\n  two"), "one\\x0a  two");
  EXPECT_STREQ(UserError("'a\x1b' is unknown").what(), "'a\\x1b' is unknown");
}

RC_GTEST_PROP(Printable, WhateverAMessageRepeatsItIsShortAndSteersNoTerminal, (const std::string& part)) {
  std::string text;
  for (int i = 0; i < 2000; ++i) text += part + ' ';
  const std::string shown = presentable_line("f: " + text);
  RC_ASSERT(shown.size() < 20'000u);
  RC_ASSERT(find_control(shown) == std::string::npos);
}

TEST(Printable, AMessageThatIsPutBehindAPlaceStaysAsItIs) {
  const std::string message = presentable("'" + std::string(300, 'a') + "\x1b':\n  b\x07");
  EXPECT_EQ(presentable("file:1: " + message), "file:1: " + message);
}

}  // namespace
}  // namespace tritax
