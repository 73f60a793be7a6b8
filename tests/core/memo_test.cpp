#include "model/core/memo.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace tritax {
namespace {

TEST(Memo, MakesTheValueOfAKeyOnce) {
  Memo<std::string, std::size_t> lengths(2);
  int made = 0;
  const auto length_of = [&](const std::string& key) {
    return *lengths.get(key, [&] {
      ++made;
      return key.size();
    });
  };
  EXPECT_EQ(length_of("one"), 3U);
  EXPECT_EQ(length_of("three"), 5U);
  EXPECT_EQ(length_of("one"), 3U);
  EXPECT_EQ(made, 2);
}

TEST(Memo, DropsTheOldestOfMoreThanItMayKeep) {
  Memo<int, int> doubles(2);
  int made = 0;
  const auto get = [&](int key) {
    return doubles.get(key, [&] {
      ++made;
      return 2 * key;
    });
  };
  const auto first = get(1);
  get(2);
  get(3);
  EXPECT_EQ(*first, 2) << "who holds a value keeps it";
  get(2);
  get(3);
  EXPECT_EQ(made, 3);
  get(1);
  EXPECT_EQ(made, 4);
}

TEST(Memo, KeepsNothingOfACallThatThrows) {
  Memo<int, int> memo(1);
  EXPECT_THROW(memo.get(1, []() -> int { throw std::runtime_error("no file"); }), std::runtime_error);
  EXPECT_EQ(*memo.get(1, [] { return 7; }), 7);
}

}  // namespace
}  // namespace tritax
