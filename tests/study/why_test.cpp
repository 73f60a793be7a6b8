// The sentences about the winner of a search, from runs with given numbers.
#include "sim/study/why.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "model/workloads/attention_forward/workload.hpp"
#include "model/workloads/flash_decode/workload.hpp"
#include "model/workloads/registry.hpp"
#include "tests/workloads/gemm_all_scatter.hpp"

namespace tritax {
namespace {

Candidate candidate(const char* pattern, double time_ns, const Rounds& rounds) {
  Candidate made;
  made.pattern = &find_pattern(gemm_all_scatter(), pattern, "test");
  made.knobs = Values(gemm_all_scatter().knobs);
  made.time_ns = time_ns;
  made.taxes.account.compute_ns = time_ns;
  made.rounds = rounds;
  made.bound.compute_ns = 1000;
  made.bound.wire_ns = 500;
  return made;
}

Rounds rounds(std::int64_t tiles, std::int64_t parts, std::int32_t workers, std::int64_t count) {
  Rounds made;
  made.tiles = tiles;
  made.parts = parts;
  made.tile_m = 32;
  made.tile_n = 64;
  made.workers = workers;
  made.rounds = count;
  return made;
}

// All sentences in one text.
std::string why(const std::vector<Candidate>& candidates) {
  std::string text;
  for (const std::string& sentence :
       explain_winner(candidates, problem_of(GemmAllScatter{64, 64, 64, DType::fp16, 2}))) {
    text += sentence + '\n';
  }
  return text;
}

void expect_says(const std::string& text, const std::string& words) {
  EXPECT_NE(text.find(words), std::string::npos) << "'" << words << "' is not in: " << text;
}

TEST(Why, AWinnerThatSplitsKHasThatAsItsReasonAndNoMoreTilesThanItsResult) {
  const std::string text = why({candidate("library", 1000, rounds(2, 16, 304, 1)),
                                candidate("fused-sequential", 2000, rounds(4, 1, 304, 1))});
  expect_says(text, "library splits K");
  expect_says(text, "2 tiles of 32x64");
  expect_says(text, "16 parts of K");
  expect_says(text, "fused-sequential has 4 tiles of 32x64 with all of K");
  EXPECT_EQ(text.find("32 tiles"), std::string::npos) << text;
}

TEST(Why, ARivalThatSplitsKHasItsTilesAndPartsNamed) {
  const std::string text = why({candidate("fused-sequential", 1000, rounds(300, 1, 304, 1)),
                                candidate("library", 2000, rounds(8, 2, 200, 1))});
  expect_says(text, "8 tiles of 32x64 in 2 parts of K");
}

TEST(Why, TheTaxIsTheLargestOfTheCriticalPathAsInTheTable) {
  Candidate winner = candidate("library", 2000e3, rounds(300, 1, 304, 1));
  winner.taxes.account.launch_ns = 749.2e3;
  winner.taxes.account.bulk_synchronous_ns = 294.8e3;
  winner.taxes.launch_ns = 100e3;
  winner.taxes.bulk_synchronous_ns = 987.4e3;  // the other account
  expect_says(why({winner}), "critical path is the launch tax, 749.2 us (37 %)");
}

TEST(Why, TheHarnessIsNamedBesideTheTaxesAndIsNoneOfThem) {
  Candidate winner = candidate("fused-sequential", 2000e3, rounds(300, 1, 304, 1));
  winner.taxes.account.launch_ns = 100e3;
  winner.taxes.account.harness_ns = 294.8e3;
  const std::string text = why({winner});
  expect_says(text, "critical path is the launch tax, 100.0 us (5 %)");
  expect_says(text, "host barriers around the measured region, which are no tax, take 294.8 us");
}

TEST(Why, ComputeUnitsThatHaveNothingToSendAreStillKeptForSending) {
  Rounds few = rounds(100, 1, 68, 2);
  few.senders = 56;
  Candidate rival = candidate("producer-consumer", 2000, few);
  rival.knobs.assume("gemm_cus", 68);
  rival.knobs.assume("comm_cus", 64);
  expect_says(why({candidate("fused-sequential", 1000, rounds(100, 1, 132, 1)), rival}),
              "take 2 on the 68 left beside 64 that only send");
}

TEST(Why, OneTileTakesOneRound) {
  expect_says(why({candidate("fused-sequential", 1000, rounds(1, 1, 304, 1))}),
              "The 1 tile of 32x64 that fused-sequential gives every GPU takes 1 round");
}

TEST(Why, LinkTimeOfManyTimesTheGemmIsNoPercentage) {
  Candidate winner = candidate("fused-sequential", 1000, rounds(1, 1, 304, 1));
  expect_says(why({winner}), "(50 % of the GEMM)");
  winner.bound.wire_ns = 104890;
  expect_says(why({winner}), "(105 times the GEMM)");
}

TEST(Why, AttentionIsNotCalledAGemm) {
  for (const Workload* workload : {&attention(), &flash_decode()}) {
    Candidate winner = candidate("fused-sequential", 1000, rounds(4, 1, 304, 1));
    Candidate other = candidate("library", 2000, rounds(4, 1, 304, 1));
    winner.pattern = &workload->patterns[0];
    other.pattern = &workload->patterns[1];
    Problem problem = problem_of(*workload);
    std::string text;
    for (const std::string& sentence : explain_winner(std::vector<Candidate>{winner, other}, problem)) {
      text += sentence + '\n';
    }
    expect_says(text, "attention needs at least 1.0 us");
    expect_says(text, "1.0 us of matrix and vector work less");
    EXPECT_EQ(text.find("GEMM"), std::string::npos) << text;
  }
}

// Of every workload with a baseline: it comes first, or is too near to part.
TEST(Why, TheVerdictLeavesItToTheBaselineUnlessSomethingIsSurelyFaster) {
  int checked = 0;
  for (const Workload* workload : workloads()) {
    const Problem problem = problem_of(*workload);
    const auto own = std::find_if(
        workload->patterns.begin(), workload->patterns.end(),
        [&](const Pattern& pattern) { return !pattern.vendor && pattern.name != workload->baseline; });
    if (workload->baseline.empty() || own == workload->patterns.end()) continue;
    const auto verdict = [&](double own_ns, double contention_ns, double band, bool compared = true) {
      Candidate library;
      library.pattern = &find_pattern(*workload, workload->baseline, "test");
      library.time_ns = library.taxes.account.compute_ns = 100e3;
      Candidate other;
      other.pattern = &*own;
      other.time_ns = own_ns;
      other.taxes.account.compute_ns = own_ns - contention_ns;
      other.taxes.account.contention_ns = contention_ns;
      std::vector<Candidate> candidates{library, other};
      if (own_ns < 100e3) std::swap(candidates[0], candidates[1]);
      return verdict_on_baseline(candidates, problem, band, compared);
    };
    expect_says(
        verdict(120e3, 20e3, 0.05),
        fmt::format("Leave it to {}: it takes 100.0 us, {}, the best of the other patterns, 120.0 us; the "
                    "critical path of the latter has 20.0 us of contention more.",
                    workload->baseline, own->name));
    expect_says(verdict(98e3, 0, 0.05), "closer than predictions are (5.0 %)");
    EXPECT_EQ(
        verdict(80e3, 0, 0.05),
        fmt::format("Building it pays: {} takes 80.0 us, {} 100.0 us, 1.25 times as long, further apart than "
                    "predictions are off (5.0 %).",
                    own->name, workload->baseline));
    expect_says(verdict(98e3, 0, 0), "Building it may pay");
    expect_says(verdict(98e3, 0, 0), "how far such predictions are off is not known");
    expect_says(verdict(80e3, 0, 0.05, false), "may pay");
    expect_says(verdict(80e3, 0, 0.05, false), "nothing like it was ever compared with a measurement.");
    expect_says(verdict(101e3, 0, 0), "Leave it to");
    ++checked;
  }
  EXPECT_GE(checked, 10);
}

TEST(Why, ThereIsNoVerdictWithoutABaseline) {
  EXPECT_EQ(verdict_on_baseline(std::vector<Candidate>{candidate("fused-sequential", 1000, {})},
                                problem_of(gemm_all_scatter()), 0.1, true),
            "");
}

}  // namespace
}  // namespace tritax
