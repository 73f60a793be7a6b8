// A sieve keeps every option that it was trained on and few others, and gives the same answer as JSON, as a
// header and as itself.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "model/core/error.hpp"
#include "model/select/bloom_sieve.hpp"

namespace tritax {
namespace {

const std::vector<std::string> kPolicyNames{"data-parallel", "one tile", "two tiles"};
const std::vector<std::string> kNumberNames{"tiles", "iterations"};

SieveExample drawn_example() {
  const auto number = [] {
    return *rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << *rc::gen::inRange(1, 40));
  };
  return {{number(), number()}, *rc::gen::inRange<std::uint32_t>(0, 8)};
}

std::vector<SieveExample> many_examples(std::int64_t count) {
  std::vector<SieveExample> examples;
  for (std::int64_t i = 0; i < count; ++i) {
    examples.push_back(
        {{i % 97, 4 + i / 97}, std::uint32_t{1} << tritax_sieve::mixed(static_cast<std::uint64_t>(i)) % 2});
  }
  return examples;
}

RC_GTEST_PROP(BloomSieve, LosesNoPolicyThatItWasTrainedOn, ()) {
  std::vector<SieveExample> examples;
  for (int i = *rc::gen::inRange(0, 60); i > 0; --i) examples.push_back(drawn_example());
  const SieveDesign design{*rc::gen::inRange(0, 17), *rc::gen::element(0.5, 0.1, 0.001)};
  const BloomSieve sieve(kPolicyNames, kNumberNames, design, examples);
  for (const SieveExample& example : examples) {
    const std::uint32_t left = sieve.candidates(example.numbers);
    RC_ASSERT((left & example.suitable) == example.suitable);
    RC_ASSERT(left != 0u);
  }
}

RC_GTEST_PROP(BloomSieve, SaysTheSameReadFromItsJson, ()) {
  std::vector<SieveExample> examples;
  for (int i = *rc::gen::inRange(0, 60); i > 0; --i) examples.push_back(drawn_example());
  const BloomSieve sieve(kPolicyNames, kNumberNames, {*rc::gen::inRange(0, 17), 0.05}, examples);
  const BloomSieve read = BloomSieve::from_json(sieve.to_json(), "sieve.json");
  RC_ASSERT(read.to_json() == sieve.to_json());
  for (int i = 0; i < 20; ++i) {
    const std::vector<std::int64_t> numbers = drawn_example().numbers;
    RC_ASSERT(read.candidates(numbers) == sieve.candidates(numbers));
  }
}

// Bloom's formulas: so many bits and hashes for so many keys, and then that rate.
TEST(BloomSieve, TakesFewUnseenKeysForSeen) {
  const std::vector<SieveExample> examples = many_examples(1000);
  for (const double rate : {0.1, 0.01}) {
    const BloomSieve sieve(kPolicyNames, kNumberNames, {16, rate}, examples);
    int seen = 0;
    constexpr int kAsked = 40'000;
    for (std::int64_t i = 0; i < kAsked; ++i) {
      const std::vector<std::int64_t> numbers{i % 200, 1000 + i / 200};
      seen += sieve.knows(numbers);  // either of the two filters
    }
    const double expected = 1 - (1 - rate) * (1 - rate);
    EXPECT_NEAR(static_cast<double>(seen) / kAsked, expected, 0.35 * expected) << rate;
  }
  const BloomSieve sieve({"only"}, {"n"}, {0, 0.01}, [] {
    std::vector<SieveExample> keys;
    for (int i = 0; i < 8; ++i) keys.push_back({{std::int64_t{1} << i}, 1});
    return keys;
  }());
  EXPECT_EQ(sieve.bits(), 77u);  // of 8 keys: 8 x 9.585
}

TEST(BloomSieve, AsksCoarserKeysOfAnUnknownProblemAndThenKeepsEveryPolicy) {
  const std::vector<SieveExample> examples{{{64, 100}, 1}, {{64, 96}, 4}};
  const BloomSieve sieve(kPolicyNames, kNumberNames, {16, 1e-9}, examples);
  EXPECT_EQ(sieve.candidates(std::vector<std::int64_t>{64, 100}), 1u);
  const std::vector<std::int64_t> near{64, 101};  // with five digits as 100
  EXPECT_FALSE(sieve.knows(near));
  EXPECT_EQ(sieve.candidates(near), 1u);
  EXPECT_EQ(sieve.candidates(std::vector<std::int64_t>{100, 127}), 5u);  // with one as both
  EXPECT_EQ(sieve.candidates(std::vector<std::int64_t>{5000, 5000}), 7u);
}

TEST(BloomSieve, RoundsNumbersDownToTheirHighestDigits) {
  EXPECT_EQ(tritax_sieve::quantised(7, 2), 7);
  EXPECT_EQ(tritax_sieve::quantised(8, 2), 8);
  EXPECT_EQ(tritax_sieve::quantised(9, 2), 8);
  EXPECT_EQ(tritax_sieve::quantised(1023, 0), 512);
  EXPECT_EQ(tritax_sieve::quantised(0, 0), 0);
}

TEST(BloomSieve, RefusesJsonThatIsNone) {
  const auto refused = [](const std::string& text) {
    EXPECT_THROW(BloomSieve::from_json(text, "s.json"), UserError) << text;
  };
  const std::string good = BloomSieve(kPolicyNames, kNumberNames, {2, 0.01}, many_examples(3)).to_json();
  refused("");
  refused("{}");
  refused(good.substr(0, good.size() / 2));
  for (const auto& [from, to] : {std::pair{"tritax.sieve/1", "tritax.sieve/2"}, std::pair{"0x", "0y"},
                                 std::pair{"\"bits\":", "\"bits\":9"}, std::pair{"one tile", "one\\\"; evil"},
                                 std::pair{"\"hashes\":7", "\"hashes\":-7"}}) {
    std::string bad = good;
    const std::size_t at = bad.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    refused(bad.replace(at, std::string(from).size(), to));
  }
}

// What a kernel library compiles.
TEST(BloomSieve, TheHeaderCompilesAloneAndSaysTheSame) {
  const BloomSieve sieve(kPolicyNames, kNumberNames, {2, 0.01}, many_examples(300));
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / fmt::format("tritax-sieve-{}", ::getpid());
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "sieve.hpp") << sieve.to_header("tuned");
  std::string program = "#include \"sieve.hpp\"\n#include \"sieve.hpp\"\n";
  program += "int main() {\n  static_assert(tuned::kPolicies == 3, \"\");\n";
  for (std::int64_t i = 0; i < 40; ++i) {
    const std::vector<std::int64_t> numbers{i * 7 % 97, 3 + i};
    program += fmt::format("  if (tuned::candidates({{{}, {}}}) != {}u) return {};\n", numbers[0], numbers[1],
                           sieve.candidates(numbers), i + 1);
  }
  std::ofstream(folder / "main.cpp") << program << "  return 0;\n}\n";
  const std::string path = (folder / "main").string();
  const std::string command =
      fmt::format("'{}' -std=c++17 -Wall -Wextra -Wconversion -Werror -o '{}' '{}.cpp' && '{}'",
                  TRITAX_CXX_COMPILER, path, path, path);
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tritax
