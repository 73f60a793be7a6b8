// The sentences about the winner of a search, from runs with given numbers.
#include "sim/study/why.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/workloads/attention_forward/workload.hpp"
#include "model/workloads/flash_decode/workload.hpp"
#include "model/workloads/registry.hpp"
#include "sim/study/assessment.hpp"
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
  expect_says(text, "fused-sequential computes 4 tiles of 32x64 unsplit");
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
  expect_says(text, "host barriers around the measured region take 294.8 us and are not a tax");
}

TEST(Why, ComputeUnitsThatHaveNothingToSendAreStillKeptForSending) {
  Rounds few = rounds(100, 1, 68, 2);
  few.senders = 56;
  Candidate rival = candidate("producer-consumer", 2000, few);
  rival.knobs.assume("gemm_cus", 68);
  rival.knobs.assume("comm_cus", 64);
  expect_says(why({candidate("fused-sequential", 1000, rounds(100, 1, 132, 1)), rival}),
              "take 2 on 68 units beside 64 that only send");
}

TEST(Why, OneTileTakesOneRound) {
  expect_says(why({candidate("fused-sequential", 1000, rounds(1, 1, 304, 1))}),
              "The 1 tile of 32x64 per GPU in fused-sequential takes 1 round");
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
    expect_says(text, "saves 1.0 us of matrix and vector work");
    EXPECT_EQ(text.find("GEMM"), std::string::npos) << text;
  }
}

// Best first, each with nothing but computation.
std::vector<Candidate> timed(const Workload& workload,
                             const std::vector<std::pair<std::string_view, double>>& times_ns) {
  std::vector<Candidate> candidates;
  for (const auto& [pattern, time_ns] : times_ns) {
    Candidate& one = candidates.emplace_back();
    one.pattern = &find_pattern(workload, pattern, "test");
    one.time_ns = one.taxes.account.compute_ns = time_ns;
  }
  std::sort(candidates.begin(), candidates.end(),
            [](const Candidate& a, const Candidate& b) { return a.time_ns < b.time_ns; });
  return candidates;
}

std::string verdict(const std::vector<Candidate>& candidates, const Workload& workload, double band,
                    bool compared = true) {
  Assessment assessment;
  assessment.band = band;
  assessment.doubts.assign(candidates.size(), nullptr);
  if (!compared) assessment.trust.cautions.emplace_back("Nothing like it.");
  return verdict_of(problem_of(workload), candidates, assessment).sentence;
}

// Of every workload with a baseline: it comes first, or is too near to part. What is no vendor's library
// would have to be built as well.
TEST(Why, TheVerdictLeavesItToTheBaselineUnlessSomethingIsSurelyFaster) {
  int of_vendors = 0, of_others = 0;
  for (const Workload* workload : workloads()) {
    const auto own = std::find_if(
        workload->patterns.begin(), workload->patterns.end(),
        [&](const Pattern& pattern) { return !pattern.vendor && pattern.name != workload->baseline; });
    if (workload->baseline.empty() || own == workload->patterns.end()) continue;
    const bool vendor = baseline_of(*workload)->vendor;
    ++(vendor ? of_vendors : of_others);
    const auto says = [&](double own_ns, double contention_ns, double band, bool compared = true) {
      std::vector<Candidate> candidates =
          timed(*workload, {{workload->baseline, 100e3}, {own->name, own_ns}});
      for (Candidate& one : candidates) {
        if (one.pattern != &*own) continue;
        one.taxes.account.compute_ns -= contention_ns;
        one.taxes.account.contention_ns = contention_ns;
      }
      return verdict(candidates, *workload, band, compared);
    };
    const std::string leave =
        vendor ? fmt::format("Leave it to {}: ", workload->baseline) : std::string("It does not pay: ");
    EXPECT_EQ(
        says(120e3, 20e3, 0.05),
        fmt::format("{0}{1} takes 100.0 us, {2}, the best of the other patterns, 120.0 us; {2} adds 20.0 us "
                    "of contention on its critical path.",
                    leave, workload->baseline, own->name));
    EXPECT_TRUE(says(98e3, 0, 0.05).starts_with("It is a tie: "));
    EXPECT_EQ(says(98e3, 0, 0.05).ends_with(fmt::format("Leave it to {}.", workload->baseline)), vendor);
    EXPECT_EQ(says(80e3, 0, 0.05), fmt::format("It pays: {} takes 80.0 us, {} 100.0 us (1.25 times); the "
                                               "prediction band of the ratio is 5 %.",
                                               own->name, workload->baseline));
    EXPECT_TRUE(says(98e3, 0, 0).starts_with("It may pay: "));
    expect_says(says(98e3, 0, 0), "The prediction band is unknown.");
    EXPECT_TRUE(says(80e3, 0, 0.05, false).starts_with("It may pay: "));
    expect_says(says(80e3, 0, 0.05, false), "Nothing comparable was measured.");
    EXPECT_TRUE(says(101e3, 0, 0).starts_with(leave));
  }
  EXPECT_GE(of_vendors, 10);
  EXPECT_GE(of_others, 3);
}

// Two patterns of this workload stand for libraries.
TEST(Why, TheVerdictIsOnTheFastestOfTheLibraries) {
  const Workload& workload = find_workload("gemm-beside-collective", "test");
  const auto says = [&](double library_ns, double streams_ns, double own_ns, double slower_own_ns) {
    return verdict(timed(workload, {{"library", library_ns},
                                    {"library-streams", streams_ns},
                                    {"streams", own_ns},
                                    {"copy-engine", slower_own_ns}}),
                   workload, 0.05);
  };
  // Faster than the baseline, but not than what the same libraries take on two streams.
  EXPECT_TRUE(says(100e3, 60e3, 80e3, 90e3)
                  .starts_with("Leave it to library-streams: library-streams takes 60.0 us, "
                               "streams, the best of the other patterns, 80.0 us"));
  EXPECT_TRUE(
      says(60e3, 100e3, 80e3, 70e3).starts_with("Leave it to library: library takes 60.0 us, copy-engine, "));
  EXPECT_TRUE(says(100e3, 60e3, 40e3, 30e3)
                  .starts_with("It pays: copy-engine takes 30.0 us, library-streams 60.0 us (2.00 times); "));
  EXPECT_EQ(verdict(timed(workload, {{"library", 1e3}, {"library-streams", 2e3}}), workload, 0.05), "");
}

// Of the two that it compares, whichever place they have: nothing pays for certain beside a doubted time.
TEST(Why, TheVerdictIsUnknownWhereTheTimeOfTheLibraryIs) {
  const Workload& workload = find_workload("gemm-beside-collective", "test");
  const Doubt doubt;
  const auto doubted = [&](double library_ns, std::string_view name) {
    const std::vector<Candidate> candidates =
        timed(workload,
              {{"library-streams", library_ns}, {"streams", 60e3}, {"copy-engine", 70e3}, {"library", 80e3}});
    Assessment assessment;
    assessment.band = 0.05;
    for (const Candidate& one : candidates) {
      assessment.doubts.push_back(one.pattern->name == name ? &doubt : nullptr);
    }
    return verdict_of(problem_of(workload), candidates, assessment);
  };
  for (const double library_ns : {50e3, 75e3}) {
    EXPECT_EQ(doubted(library_ns, "library-streams").verdict, Verdict::unknown);
    expect_says(doubted(library_ns, "library-streams").sentence, "The time of library-streams is uncertain");
  }
  EXPECT_EQ(doubted(75e3, "streams").verdict, Verdict::may_pay);
  EXPECT_EQ(doubted(50e3, "streams").verdict, Verdict::leave_it);
  EXPECT_EQ(doubted(75e3, "copy-engine").verdict, Verdict::pays);
  EXPECT_EQ(doubted(50e3, "library").verdict, Verdict::leave_it);
}

TEST(Why, ThereIsNoVerdictWithoutABaseline) {
  EXPECT_EQ(verdict({candidate("fused-sequential", 1000, {})}, gemm_all_scatter(), 0.1), "");
  EXPECT_EQ(verdict({candidate("library", 1000, {})}, gemm_all_scatter(), 0.1), "");
  EXPECT_EQ(verdict({}, gemm_all_scatter(), 0.1), "");
}

}  // namespace
}  // namespace tritax
