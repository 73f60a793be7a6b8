// `tritax tune`: the corpus by closed form, the files that it writes, and what it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "model/select/bloom_sieve.hpp"
#include "tests/cli/run_tritax.hpp"

namespace tritax {
namespace {

using nlohmann::ordered_json;
using ::testing::HasSubstr;

TEST(TuneCommand, WritesTheSieveThatItsFiguresAreOf) {
  const test::ScratchDirectory folder;
  const std::string sieve = folder.path("sieve.json");
  const std::string header = folder.path("sieve.hpp");
  const auto outcome = test::run_tritax("tune --corpus stream-k --count 2000 --seed 7 --sieve " + sieve +
                                        " --header " + header + " --json -");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const ordered_json answer = ordered_json::parse(outcome.out);
  EXPECT_EQ(answer["machine"], "a100-8-1005mhz");
  EXPECT_EQ(answer["gemms"], 2000);
  const ordered_json& figures = answer["sieve"];
  EXPECT_EQ(figures["trained"].get<int>() + figures["held_out"].get<int>(), 2000);
  EXPECT_GT(figures["eliminated"].get<double>(), 0.5);
  EXPECT_NEAR(figures["eliminated"].get<double>() + figures["false_positives"].get<double>(), 1, 1e-9);
  const BloomSieve read = BloomSieve::from_json(test::read_file(sieve), sieve);
  EXPECT_EQ(read.policies().size(), 7u);
  EXPECT_EQ(read.bits(), figures["bits"].get<std::uint64_t>());
  EXPECT_EQ(test::read_file(header), read.to_header("tritax_tuned"));
  // Trying all options finds the best of each; trying fewer is never better.
  double exhaustive = 0;
  for (const ordered_json& row : answer["selectors"]) {
    if (row["selector"] == "exhaustive") exhaustive = row["mean_ratio"].get<double>();
    EXPECT_GE(row["mean_ratio"].get<double>(), 1) << row;
  }
  EXPECT_EQ(exhaustive, 1);
}

TEST(TuneCommand, ComparesWithSimulationEverySchedule) {
  const auto outcome = test::run_tritax("tune --corpus stream-k --count 40 --simulate 5 --json -");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const ordered_json rows = ordered_json::parse(outcome.out)["against_simulation"];
  ASSERT_EQ(rows.size(), 5u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(rows[i]["gemms"], 5) << rows[i];
  EXPECT_EQ(rows[4]["gemms"], 20);
}

TEST(TuneCommand, SimulatesTheCorpusInFp64) {
  const std::string arguments = "tune --corpus stream-k --count 20 --simulate 2 --json - --dtype ";
  for (const int wide : {0, 1}) {
    const auto outcome = test::run_tritax(arguments + (wide == 1 ? "fp64" : "fp16"));
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const ordered_json answer = ordered_json::parse(outcome.out);
    EXPECT_EQ(answer["dtype"], wide == 1 ? "fp64" : "fp16");
    const ordered_json& rows = answer["against_simulation"];
    ASSERT_EQ(rows.size(), 5u);
    for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(rows[i]["gemms"], 2) << rows[i];
    for (const ordered_json& row : rows) EXPECT_GT(row["median_ratio"].get<double>(), 0.5) << row;
  }
}

// The corpus is answered in closed form, from rates: no rate, no answer.
TEST(TuneCommand, RefusesFp64WhereTheMachineHasNoRateForIt) {
  const test::ScratchDirectory folder;
  std::string machine = test::run_tritax("machines show a100-8 --toml").out;
  const std::size_t begin = machine.find("[gpu.matrix.fp64]");
  ASSERT_NE(begin, std::string::npos);
  const std::size_t end = machine.find("\n[", begin);
  machine.erase(begin, end == std::string::npos ? end : end + 1 - begin);
  const std::string arguments =
      "tune --corpus stream-k --count 20 --machine " + folder.write("narrow.toml", machine) + " --dtype ";
  EXPECT_EQ(test::run_tritax(arguments + "fp16").exit_code, 0);
  const auto outcome = test::run_tritax(arguments + "fp64");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("--dtype: A100"));
  EXPECT_THAT(outcome.err, HasSubstr("has no rate for fp64; give fp16"));
}

TEST(TuneCommand, ChoosesAmongThePatternsOfAFile) {
  const auto outcome = test::run_tritax("tune llm --machine mi300x-8 --json -");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const ordered_json answer = ordered_json::parse(outcome.out);
  EXPECT_EQ(answer["sieve"]["trained"].get<int>() + answer["sieve"]["held_out"].get<int>(),
            answer["problems"].get<int>());
  EXPECT_EQ(answer["selectors"][0]["selector"], "lowest bound");
}

TEST(TuneCommand, SaysWhatDoesNotGoTogether) {
  for (const auto& [arguments, message] : std::vector<std::pair<std::string, std::string>>{
           {"", "--corpus: give either"},
           {"llm --corpus stream-k", "--corpus: give either"},
           {"--corpus all", "shipped: stream-k"},
           {"llm --count 100", "--count: only a corpus has that"},
           {"--corpus stream-k --tolerance 1", "--tolerance: '1' is not allowed"},
           {"--corpus stream-k --false-positives 0", "--false-positives: '0' is not allowed"}}) {
    const auto outcome = test::run_tritax("tune " + arguments);
    EXPECT_EQ(outcome.exit_code, 2) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr(message)) << arguments;
  }
}

}  // namespace
}  // namespace tritax
