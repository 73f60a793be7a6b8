#include "sim/study/compared_rows.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tritax {
namespace {

const std::string kProduct = R"(
scenario = { machine = "mi300x-8", workload = "gemm-all-scatter", m = 512, n = 512, k = 512, gpus = 2 }
)";

const std::string kRows = R"(
[defaults]
group = "g"
source = "somewhere"
unit = "us"
)" + kProduct;

const std::string kQuestion = R"(
[verdict_defaults]
family = "f"
source = "somewhere"
unit = "us"
)" + kProduct;

PublishedNumbers numbers(const std::string& toml) { return parse_published_numbers(toml, "file.toml"); }

std::vector<Comparison> of_rows(const std::string& entries) {
  const PublishedNumbers published = numbers(kRows + entries);
  return comparisons_of_rows(reproduce(published).rows, published.entries);
}

std::vector<Comparison> of_ways(const std::string& first, const std::string& second) {
  const PublishedNumbers published =
      numbers(kQuestion + "[[verdict]]\nid = \"q\"\ntimes = [100, 50]\nways = [{ pattern = \"" + first +
              "\" }, { pattern = \"" + second + "\" }]\n");
  return comparisons_of_questions(reproduce(published), published);
}

TEST(ComparedRows, ADifferenceIsJudgedByTheTimeItImplies) {
  const std::string pattern = "scenario = { pattern = \"bulk-synchronous\" }\n";
  const std::string entries = "[[entry]]\nid = \"time\"\nmetric = \"time\"\nvalue = 100\n" + pattern +
                              "[[entry]]\nid = \"more\"\nmetric = \"time-difference\"\nvalue = 1000\n" +
                              pattern + "reference = { pattern = \"fused-sequential\" }\n";
  const PublishedNumbers published = numbers(kRows + entries);
  const std::vector<ReproducedRow> rows = reproduce(published).rows;
  const std::vector<Comparison> compared = comparisons_of_rows(rows, published.entries);
  ASSERT_EQ(compared.size(), 2u);
  const double time_us = *rows[0].predicted, more_us = *rows[1].predicted;
  EXPECT_NEAR(compared[1].error, time_us / (time_us + 1000 - more_us) - 1, 1e-9);
  EXPECT_NEAR(*rows[1].error, more_us / 1000 - 1, 1e-9)
      << "the row itself says how far the difference is off";
}

TEST(ComparedRows, OtherLocksThanLoadStoreAreLeftOut) {
  const std::string entry = "[[entry]]\nid = \"time\"\nmetric = \"time\"\nvalue = 100\n";
  const auto locked = [&](const std::string& lock) {
    return of_rows(entry + "scenario = { pattern = \"producer-consumer\", knobs = { lock = \"" + lock +
                   "\" } }\n");
  };
  EXPECT_EQ(locked("load-store").size(), 1u);
  EXPECT_TRUE(locked("exchange").empty());
  EXPECT_TRUE(locked("compare-and-swap").empty());
}

TEST(ComparedRows, TheTwoWaysOfAQuestionAreTwoTimesAndTheirRatio) {
  const std::vector<Comparison> compared = of_ways("fused-sequential", "library");
  ASSERT_EQ(compared.size(), 3u);
  EXPECT_EQ(compared[0].of, Compared::own);
  EXPECT_EQ(compared[1].of, Compared::library);
  EXPECT_EQ(compared[2].of, Compared::own_over_library);
  EXPECT_NEAR((1 + compared[1].error) / (1 + compared[0].error), 1 + compared[2].error, 1e-9)
      << "predicted over published, of times and of their ratio";
}

TEST(ComparedRows, TwoPatternsOfOneKindHaveNoRatioToALibrary) {
  const std::vector<Comparison> compared = of_ways("fused-sequential", "bulk-synchronous");
  ASSERT_EQ(compared.size(), 2u);
  EXPECT_EQ(compared[0].of, Compared::own);
  EXPECT_EQ(compared[1].of, Compared::own);
}

}  // namespace
}  // namespace tritax
