#include "sim/study/reproduce.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <string>
#include <vector>

#include "model/core/error.hpp"
#include "tests/sim/replaced.hpp"
#include "tests/workloads/gemm_all_scatter.hpp"

namespace tritax {
namespace {

// One GPU stores 1 MiB to its neighbour.
const std::string kStore = R"(
[[entry]]
id = "store"
group = "g"
scenario = { machine = "mi300x-8", workload = "remote-access", operation = "store", peers = "one", bytes = "1 MiB" }
metric = "bandwidth"
unit = "GB/s"
value = 40
source = "somewhere"
)";

const std::string kPattern = R"(
[[entry]]
id = "pattern"
group = "h"
scenario = { machine = "mi300x-8", workload = "gemm-all-scatter", m = 1024, n = 1024, k = 512, gpus = 2, pattern = "fused-sequential" }
metric = "time"
unit = "us"
value = 500
source = "somewhere"
)";

ReproducedRow row_of(const std::string& text) {
  const auto rows = reproduce(parse_published(text, "file.toml"));
  EXPECT_EQ(rows.size(), 1u);
  return rows.at(0);
}

void expect_refused(const std::string& text, const std::vector<std::string>& words) {
  try {
    parse_published(text, "file.toml");
    ADD_FAILURE() << "accepted: " << text;
  } catch (const UserError& error) {
    for (const std::string& word : words) {
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos)
          << error.what() << "\nlacks " << word;
    }
  }
}

TEST(Reproduce, ReportsTheSignedRelativeErrorInTheUnitOfTheSource) {
  const ReproducedRow in_gb = row_of(kStore);
  ASSERT_TRUE(in_gb.predicted && in_gb.error);
  EXPECT_DOUBLE_EQ(*in_gb.error, (*in_gb.predicted - 40) / 40);
  const ReproducedRow in_gib = row_of(replaced(kStore, "GB/s", "GiB/s"));
  EXPECT_NEAR(*in_gib.predicted * 1.073741824, *in_gb.predicted, 1e-9 * *in_gb.predicted);
}

TEST(Reproduce, PredictsNoMoreThanOneLinkCarries) {
  const ReproducedRow row = row_of(replaced(kStore, "1 MiB", "64 MiB"));
  const Machine machine = find_machine("mi300x-8");
  const double link = machine.fabric.link_raw_gb_per_s * machine.fabric.store_efficiency;
  EXPECT_LE(*row.predicted, link * (1 + 1e-9));
  EXPECT_GT(*row.predicted, 0.9 * link);
}

// One GEMM whose A and B fit an L2, on one die: every operand byte comes from memory once, every result goes
// there once, and all else hits.
TEST(Reproduce, NamesHitRatesAndBytesOfMemories) {
  const std::string gemm = R"(
[[entry]]
id = "gemm"
group = "g"
scenario = { machine = "h200-8", workload = "gemm-all-scatter", m = 1024, n = 1024, k = 512, gpus = 1, pattern = "bulk-synchronous", knobs = { tile = [128, 128, 64] } }
metric = "l2-hit"
unit = "%"
value = 50
source = "somewhere"
)";
  const double operands = 1024.0 * 512 * 2 * 2;
  const double asked = 64.0 * (128 + 128) * 512 * 2;  // by 8 x 8 tiles
  EXPECT_NEAR(*row_of(gemm).predicted, 100 * (1 - operands / asked), 1e-9);
  const ReproducedRow bytes = row_of(replaced(replaced(gemm, "l2-hit", "hbm-bytes"), "\"%\"", "\"MB\""));
  EXPECT_GE(*bytes.predicted, operands / 1e6);
  EXPECT_LE(*bytes.predicted, (operands + 1024.0 * 1024 * 2) / 1e6 + 1e-9);
  const std::string llc = replaced(gemm, "l2-hit", "llc-hit");
  EXPECT_GE(*row_of(replaced(llc, "h200-8", "mi300x-8")).predicted, 0);
  EXPECT_THROW(row_of(llc), UserError);
  expect_refused(replaced(gemm, "\"%\"", "\"x\""), {"unit", "%"});
}

TEST(Reproduce, ComparesARangeWithItsMiddleAndABoundOnlyWhenBroken) {
  const ReproducedRow range = row_of(replaced(kStore, "value = 40", "value_low = 10\nvalue_high = 90"));
  EXPECT_EQ(range.published, 50);
  EXPECT_FALSE(range.bound);
  EXPECT_TRUE(range.within_published_range);
  EXPECT_NE(*range.error, 0);
  const ReproducedRow kept = row_of(replaced(kStore, "value = 40", "value_high = 90"));
  EXPECT_TRUE(kept.bound);
  EXPECT_EQ(*kept.error, 0);
  const ReproducedRow broken = row_of(replaced(kStore, "value = 40", "value_low = 90"));
  EXPECT_FALSE(broken.within_published_range);
  EXPECT_LT(*broken.error, 0);
}

TEST(Reproduce, MarksTheRowsThatServedToSetAParameter) {
  const Machine machine = find_machine("mi300x-8");
  std::string served;
  for (const Parameter& parameter : machine.parameters) {
    if (served.empty()) served = parameter.serves.substr(0, parameter.serves.find(' '));
  }
  ASSERT_FALSE(served.empty());
  EXPECT_TRUE(row_of(replaced(kStore, "\"store\"", "\"" + served + "\"")).calibration);
  EXPECT_FALSE(row_of(kStore).calibration);
  // Any of the machines of a row may have been made with it.
  const std::string others = kStore +
                             "variants = [ { machine = \"mi325x-8\" }, { machine = \"mi300x-8\" } ]\n"
                             "aggregate = \"mean\"\n";
  EXPECT_TRUE(row_of(replaced(others, "\"store\"", "\"" + served + "\"")).calibration);
  // A part of an id is another id.
  EXPECT_FALSE(row_of(replaced(kStore, "\"store\"", "\"" + served.substr(1) + "\"")).calibration);
}

TEST(Reproduce, MarksTheRowsForWhichKnobsWereChosen) {
  const ReproducedRow row = row_of(kPattern + "chosen = \"tile group_m\"\n");
  EXPECT_TRUE(row.calibration);
  EXPECT_EQ(row.chosen, "tile group_m");
  EXPECT_TRUE(row.error.has_value());
  EXPECT_FALSE(row_of(kPattern).calibration);
  expect_refused(kPattern + "chosen = \"tile peers\"\n",
                 {"file.toml:2", "chosen", "gemm-all-scatter", "'peers'"});
}

TEST(Reproduce, KeepsTheOrderAndGivesTheSameBitsOnEveryThreadCount) {
  std::string text = kPattern;
  for (const int kib : {64, 128, 256, 512}) {
    text += replaced(replaced(kStore, "\"store\"", "\"store-" + std::to_string(kib) + "\""), "1 MiB",
                     std::to_string(kib) + " KiB");
  }
  const auto entries = parse_published(text, "file.toml");
  ReproduceOptions one;
  one.threads = 1;
  ReproduceOptions many;
  many.threads = 4;
  const auto a = reproduce(entries, one);
  const auto b = reproduce(entries, many);
  ASSERT_EQ(a.size(), entries.size());
  ASSERT_EQ(b.size(), entries.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].id, entries[i].id);
    EXPECT_EQ(a[i].id, b[i].id);
    EXPECT_EQ(*a[i].predicted, *b[i].predicted);
  }
}

TEST(Reproduce, SimulatesEqualScenariosOnce) {
  const std::string text = kStore + replaced(kStore, "\"store\"", "\"again\"") +
                           replaced(replaced(kStore, "\"store\"", "\"other\""), "1 MiB", "2 MiB");
  std::atomic<std::size_t> simulations = 0;
  std::size_t announced = 0;
  ReproduceOptions options;
  options.progress = [&](std::size_t, std::size_t all) {
    ++simulations;
    announced = all;
  };
  const auto rows = reproduce(parse_published(text, "file.toml"), options);
  EXPECT_EQ(simulations, 2u);
  EXPECT_EQ(announced, 2u);
  EXPECT_EQ(*rows[0].predicted, *rows[1].predicted);
}

TEST(Reproduce, LeavesOutTheRowsThatWereCancelled) {
  ReproduceOptions options;
  options.cancelled = [] { return true; };
  EXPECT_TRUE(reproduce(parse_published(kStore, "file.toml"), options).empty());
}

TEST(Reproduce, SaysWhyARowHasNoPredictionAndGoesOn) {
  const std::string impossible =
      replaced(replaced(kPattern, "gpus = 2", "gpus = 2, knobs = { tile = [512, 512, 64] }"), "\"pattern\"",
               "\"big\"");
  const auto rows = reproduce(parse_published(impossible + kStore, "file.toml"));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_FALSE(rows[0].predicted || rows[0].error);
  EXPECT_FALSE(rows[0].failure.empty());
  EXPECT_TRUE(rows[1].predicted);
}

TEST(Reproduce, DerivesSpeedupAndDifferenceFromTwoRuns) {
  const auto with = [](const std::string& metric, const std::string& unit, const std::string& more) {
    return replaced(replaced(kPattern, "metric = \"time\"", "metric = \"" + metric + "\"\n" + more), "\"us\"",
                    "\"" + unit + "\"");
  };
  const double fused = *row_of(kPattern).predicted;
  const double library = *row_of(replaced(kPattern, "fused-sequential", "library")).predicted;
  const std::string reference = "reference = { pattern = \"library\" }";
  EXPECT_DOUBLE_EQ(*row_of(with("speedup", "x", reference)).predicted, library / fused);
  EXPECT_NEAR(*row_of(with("time-difference", "us", reference)).predicted, fused - library, 1e-9 * library);
  EXPECT_DOUBLE_EQ(*row_of(with("throughput", "GFLOP/s", "")).predicted,
                   2.0 * 1024 * 1024 * 512 / (fused * 1e3));
}

TEST(Reproduce, TakesTheFastestPatternForTheBestSpeedup) {
  std::string text =
      replaced(replaced(kPattern, "metric = \"time\"", "metric = \"best-speedup\""), "\"us\"", "\"x\"");
  text = replaced(text, ", pattern = \"fused-sequential\"", "");
  double fastest = INFINITY;
  double library = 0;
  for (const Pattern& pattern : gemm_all_scatter().patterns) {
    const double time = *row_of(replaced(kPattern, "fused-sequential", std::string(pattern.name))).predicted;
    (pattern.name == "library" ? library : fastest) =
        pattern.name == "library" ? time : std::min(fastest, time);
  }
  EXPECT_DOUBLE_EQ(*row_of(text).predicted, library / fastest);

  const std::string bare = "knobs = { host_barriers = false }";
  const std::string bare_library = replaced(replaced(kPattern, "fused-sequential", "library"),
                                            "pattern = \"library\"", "pattern = \"library\", " + bare);
  EXPECT_DOUBLE_EQ(*row_of(text + "reference = { " + bare + " }\n").predicted,
                   *row_of(bare_library).predicted / fastest);
}

TEST(Reproduce, AggregatesVariants) {
  const auto variants = [](const std::string& how) {
    return kStore + "variants = [ { bytes = \"64 KiB\" }, { bytes = \"1 MiB\" } ]\naggregate = \"" + how +
           "\"\n";
  };
  const double small = *row_of(replaced(kStore, "1 MiB", "64 KiB")).predicted;
  const double large = *row_of(kStore).predicted;
  EXPECT_LT(small, large);
  EXPECT_DOUBLE_EQ(*row_of(variants("min")).predicted, small);
  EXPECT_DOUBLE_EQ(*row_of(variants("max")).predicted, large);
  EXPECT_DOUBLE_EQ(*row_of(variants("mean")).predicted, (small + large) / 2);
}

TEST(Reproduce, PutsMoreOnTheClockTheMoreOfTheHostItSees) {
  const auto on = [](const std::string& clock) {
    const std::string measured = replaced(kPattern, "\"fused-sequential\" }",
                                          "\"fused-sequential\", knobs = { host_barriers = true } }");
    return *row_of(measured + "clock = \"" + clock + "\"\n").predicted;
  };
  const Machine machine = find_machine("mi300x-8");
  EXPECT_LT(on("kernel"), on("idle-stream"));
  EXPECT_LT(on("idle-stream"), on("host"));  // two host barriers
  EXPECT_GE(on("host") - on("kernel"), 2e-3 * machine.host.barrier_ns);
}

TEST(Reproduce, CountsTheCallOfWhoeverCallsAGemmOnAnIdleStream) {
  const auto called = [](const std::string& by) {
    return *row_of(R"(
[[entry]]
id = "gemm"
group = "g"
scenario = { machine = "mi325x-8", workload = "library-gemm", m = 1024, n = 1024, k = 1024)" +
                   by + R"( }
metric = "time"
clock = "idle-stream"
unit = "us"
value = 30
source = "somewhere"
)")
                .predicted;
  };
  const LibraryCosts& costs = find_machine("mi325x-8").library;
  const double loop = called(", framework = false");
  EXPECT_NEAR(called("") - loop, costs.gemm_call_ns / 1000, 1e-9);
  EXPECT_NEAR(called(", binding = true") - loop, costs.binding_call_ns / 1000, 1e-9);
}

TEST(Reproduce, SummarisesPredictionsWithoutCalibrationAndFailures) {
  ReproducedRow in_group;
  in_group.group = std::string(1, 'g');
  std::vector<ReproducedRow> rows(5, in_group);
  const double errors[] = {0.1, -0.3, 0.2, 5, 0};
  for (std::size_t i = 0; i < 4; ++i) {
    rows[i].predicted = 1;
    rows[i].error = errors[i];
  }
  rows[3].calibration = true;
  const auto groups = summarise(rows);
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].predictions, 3u);
  EXPECT_EQ(groups[0].calibration, 1u);
  EXPECT_EQ(groups[0].failed, 1u);
  EXPECT_DOUBLE_EQ(groups[0].median_error, 0.2);
  EXPECT_DOUBLE_EQ(groups[0].worst_error, 0.3);
}

TEST(ReadPublished, RefusesWhatMakesNoSenseWithThePlace) {
  expect_refused(kStore + "valu = 3\n", {"file.toml:10", "'valu'", "did you mean 'value'"});
  expect_refused(replaced(kStore, "value = 40\n", ""), {"file.toml:2", "'value'"});
  expect_refused(replaced(kStore, "value = 40", "value = -3"), {"-3"});
  expect_refused(replaced(kStore, "value = 40", "value = nan"), {"finite"});
  expect_refused(replaced(kStore, "value = 40", "value_low = 3\nvalue_high = 2"), {"value_low"});
  expect_refused(replaced(kStore, "value = 40", "value = 40\nvalue_low = 41"), {"40", "outside value_low"});
  expect_refused(replaced(kStore, "source = \"somewhere\"", "source = \"\""),
                 {"file.toml:2", "source is empty"});
  expect_refused(replaced(kStore, "GB/s", "ms"), {"file.toml:7", "unit", "GiB/s"});
  expect_refused(replaced(kStore, "\"bandwidth\"", "\"bandwith\""), {"did you mean \"bandwidth\""});
  expect_refused(replaced(replaced(kStore, "\"bandwidth\"", "\"throughput\""), "GB/s", "TFLOP/s"),
                 {"computes nothing"});
  expect_refused(kStore + "reference = { peers = \"self\" }\n", {"reference"});
  expect_refused(replaced(kPattern, "\"time\"", "\"speedup\""), {"unit"});
  expect_refused(replaced(replaced(kPattern, "\"time\"", "\"speedup\""), "\"us\"", "\"x\""), {"'reference'"});
  expect_refused(replaced(kPattern, ", pattern = \"fused-sequential\"", ""), {"'pattern'"});
  expect_refused(replaced(kPattern, "\"fused-sequential\"", "[\"library\", \"fused-sequential\"]"),
                 {"one pattern"});
  expect_refused(kStore + "variants = []\n", {"variants"});
  expect_refused("[defaults]\ngroup = \"g\"\n", {"[[entry]]"});
  EXPECT_THROW(reproduce(parse_published(kStore + kStore, "file.toml")), UserError);
  EXPECT_THROW(reproduce(parse_published(replaced(kStore, "mi300x-8", "mi300"), "file.toml")), UserError);
}

}  // namespace
}  // namespace tritax
