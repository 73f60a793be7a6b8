// Interrupted runs: the files, the output and the exit code that they leave.
#include "cli/interrupt.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/output.hpp"
#include "model/core/error.hpp"
#include "tests/cli/run_tritax.hpp"

namespace tritax {
namespace {

using nlohmann::json;
using test::Outcome;
using test::read_file;
using test::run_tritax;
using test::ScratchDirectory;

// The whole search takes minutes, the default knobs that it begins with a second; under sanitizers on a busy
// computer ten.
Outcome cut_short_search(const std::string& signal, const std::string& json_file) {
  Outcome outcome;
  for (const int seconds : {2, 6, 20, 60}) {
    outcome = run_tritax(
        "advise -M 32768 -N 32768 -K 32768 --machine mi300x-8 --threads 1 --json " + json_file,
        "timeout --foreground --preserve-status --signal " + signal + " " + std::to_string(seconds));
    if (outcome.err.find("nothing was found yet") == std::string::npos) {
      break;
    }
  }
  return outcome;
}

TEST(Interrupt, CtrlCEarlyInALongSearchEndsWith130AndTheBestSoFar) {
  const ScratchDirectory scratch;
  const std::string file = scratch.path("advice.json");
  const Outcome outcome = cut_short_search("INT", file);
  EXPECT_EQ(outcome.exit_code, 130);
  EXPECT_NE(outcome.err.find("this is the best so far"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.out.find("pattern"), std::string::npos);
  EXPECT_EQ(scratch.file_count(), 1U);
  const json advice = json::parse(read_file(file));
  EXPECT_TRUE(advice.at("interrupted").get<bool>());
  EXPECT_FALSE(advice.at("candidates").empty());
  EXPECT_NE(outcome.out.find("of link time"), std::string::npos) << outcome.out;  // why it is ahead
  EXPECT_FALSE(advice.at("explanation").empty());
}

TEST(Interrupt, BeingTerminatedIsLikeCtrlCButEndsWith143) {
  const ScratchDirectory scratch;
  const std::string file = scratch.path("advice.json");
  const Outcome outcome = cut_short_search("TERM", file);
  EXPECT_EQ(outcome.exit_code, 128 + 15);
  EXPECT_NE(outcome.err.find("this is the best so far"), std::string::npos) << outcome.err;
  EXPECT_TRUE(json::parse(read_file(file)).at("interrupted").get<bool>());
}

TEST(Interrupt, ATableThatIsCutShortHasTheRunsThatWereDone) {
  const Outcome outcome = run_tritax(
      "simulate --pattern bulk-synchronous -M 256,65536 -N 65536 -K 256,65536 --machine mi300x-8 --threads 1 "
      "--json -",
      "timeout --foreground --preserve-status --signal INT 2");
  EXPECT_EQ(outcome.exit_code, 130);
  const json all = json::parse(outcome.out);
  EXPECT_TRUE(all.at("interrupted").get<bool>());
  EXPECT_GE(all.at("runs").size(), 1U);
  EXPECT_LT(all.at("runs").size(), 4U);
}

TEST(Interrupt, CtrlCInASimulationEndsWith130AndLeavesNoFile) {
  const ScratchDirectory scratch;
  const Outcome outcome = run_tritax(
      "explain --pattern fused-sequential -M 65536 -N 65536 -K 4096 --machine mi300x-8 "
      "--threads 1 --json " +
          scratch.path("why.json"),
      "timeout --foreground --preserve-status --signal INT 1");
  EXPECT_EQ(outcome.exit_code, 130);
  EXPECT_EQ(scratch.file_count(), 0U);
}

TEST(Interrupt, ASearchThatIsCutShortStillPrintsJson) {
  const Outcome outcome =
      run_tritax("advise -M 32768 -N 32768 -K 32768 --machine mi300x-8 --threads 1 --json -",
                 "timeout --foreground --preserve-status --signal INT 1");
  EXPECT_EQ(outcome.exit_code, 130);
  const json advice = json::parse(outcome.out);
  EXPECT_EQ(advice.at("schema"), "tritax.advise/1");
  EXPECT_TRUE(advice.at("interrupted").get<bool>());
  EXPECT_TRUE(advice.at("candidates").is_array());  // empty if the first one had not been simulated yet
}

TEST(Interrupt, AnOldCsvIsNotReplacedByOneThatLacksRows) {
  const ScratchDirectory scratch;
  const std::string csv = scratch.write("rows.csv", "old");
  const std::string rows = scratch.path("rows.json");
  const Outcome outcome = run_tritax("reproduce --threads 1 --csv " + csv + " --json " + rows,
                                     "timeout --foreground --preserve-status --signal INT 3");
  EXPECT_EQ(outcome.exit_code, 130);
  EXPECT_EQ(read_file(csv), "old");
  EXPECT_NE(outcome.err.find("rows.csv' is not written"), std::string::npos) << outcome.err;
  EXPECT_TRUE(json::parse(read_file(rows)).at("interrupted").get<bool>());
  EXPECT_EQ(scratch.file_count(), 2U);
}

TEST(InterruptDeathTest, AFailedAssertionEndsWith1AndLeavesNoFile) {
  const ScratchDirectory scratch;
  EXPECT_EXIT(
      {
        cli::install_interrupt_handler();
        const cli::OutputFile file(scratch.path("result.json"), "--json");
        TRITAX_ASSERT(scratch.file_count() == 0, "a test");
      },
      testing::ExitedWithCode(1), "internal error at .*a test");
  EXPECT_EQ(scratch.file_count(), 0U);
}

}  // namespace
}  // namespace tritax
