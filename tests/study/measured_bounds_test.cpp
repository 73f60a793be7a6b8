// The model against the stored measurements on H200 and H100, so that no later change loses its accuracy
// silently. The machines were calibrated on microbenchmarks; what L2 keeps was read off DRAM reads of plain
// products (tests/calibrate/products_test.cpp).
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/study/validate.hpp"

namespace tritax {
namespace {

std::vector<ValidatedRow> validated(const std::vector<MeasuredFile>& files, const std::string& machine) {
  return validate(match_scenarios(files, shipped_measured_scenarios(), false, machine));
}

void expect_within_bounds(const ValidationSummary& summary, double max_regret = 0.06) {
  EXPECT_LE(summary.errors.median_abs_error, 0.045);
  EXPECT_LE(summary.errors.p90_abs_error, 0.11);
  EXPECT_GE(summary.best_pattern_picked.value(), 0.85);
  EXPECT_LE(summary.mean_regret.value(), 0.01);
  EXPECT_LE(summary.max_regret.value(), max_regret);
  EXPECT_GE(summary.band_coverage.value(), 0.85);
}

TEST(StoredMeasurements, ArePredictedWithinTheseBounds) {
  const auto rows = validated(shipped_measurements(), "");
  EXPECT_EQ(rows.size(), 360u);
  const ValidationSummary summary = summarise(rows, MeasuredClock::wall);
  expect_within_bounds(summary);
  // The band is meant for 90 %; what microbenchmarks miss by more than patterns widens it. Wider would say
  // nothing.
  EXPECT_LE(summary.band_coverage.value(), 0.98);
  for (const std::string_view pattern :
       {"bulk-synchronous", "producer-consumer", "fused-sequential", "workgroup-specialised"}) {
    const ErrorSummary errors = summarise_errors(
        rows, MeasuredClock::wall, [pattern](const ValidatedRow& row) { return row.pattern == pattern; });
    EXPECT_LE(errors.median_abs_error, 0.10) << pattern;
  }
}

// A session that nothing was fitted to.
TEST(StoredMeasurements, OfALaterSessionArePredictedAsWell) {
  const std::string file = std::string(TRITAX_SOURCE_DIR) + "/scenarios/measured/h200-2-shapes-unseen.csv";
  const auto rows = validated({read_measured(file)}, "h200-4");
  EXPECT_EQ(rows.size(), 180u);
  expect_within_bounds(summarise(rows, MeasuredClock::wall));
}

ValidationSummary summary_of(const std::string& file, const std::string& machine, std::size_t runs,
                             MeasuredClock clock = MeasuredClock::wall) {
  const auto rows =
      validated({read_measured(std::string(TRITAX_SOURCE_DIR) + "/scenarios/measured/" + file)}, machine);
  EXPECT_EQ(rows.size(), runs) << file;
  return summarise(rows, clock);
}

// Ragged, shallow, tall and deep shapes, other dtypes, tiles and splits. The regret is that of near ties of
// fused-sequential and producer-consumer, whose second kernel pays for cold code.
TEST(StoredMeasurements, OfOtherShapesArePredictedWithinTheseBounds) {
  for (const auto& [file, coverage, regret] :
       {std::tuple{"h200-2-more.csv", 0.80, 0.006}, std::tuple{"h200-2-more-2.csv", 0.90, 0.006},
        std::tuple{"h200-4-more.csv", 0.75, 0.005}}) {
    const ValidationSummary summary = summary_of(file, "h200-4", 180);
    EXPECT_LE(summary.errors.median_abs_error, 0.045) << file;
    EXPECT_LE(summary.errors.p90_abs_error, 0.105) << file;
    EXPECT_LE(summary.mean_regret.value(), regret) << file;
    EXPECT_GE(summary.band_coverage.value(), coverage) << file;
  }
}

// Shapes and knobs that nobody chose.
TEST(StoredMeasurements, OfRandomShapesArePredictedWithinTheseBounds) {
  expect_within_bounds(summary_of("h200-random.csv", "", 256));
}

// Another GPU, known from its data sheet, its microbenchmarks and what L2 keeps on H200.
TEST(StoredMeasurements, OnAnotherGpuArePredictedWithinTheseBounds) {
  expect_within_bounds(summary_of("h100-4-blind.csv", "h100-4", 140));
  for (const char* file : {"h100-2-more.csv", "h100-2-more-2.csv", "h100-4-more.csv"}) {
    const ValidationSummary summary = summary_of(file, "h100-4", 180);
    EXPECT_LE(summary.errors.median_abs_error, 0.055) << file;
    EXPECT_LE(summary.errors.p90_abs_error, 0.13) << file;
    EXPECT_LE(summary.mean_regret.value(), 0.04) << file;
    EXPECT_GE(summary.band_coverage.value(), 0.85) << file;
  }
}

// More GPUs than anything was sought with, and knobs that nobody chose, on both kinds of GPU. A near
// tie of fused-sequential and producer-consumer in `grid` costs 2.9 % of one shape.
TEST(StoredMeasurements, OfEightGpusAndOfASecondDrawArePredictedWithinTheseBounds) {
  struct Set {
    const char* file;
    const char* machine;
    std::size_t runs;
    double median, p90, regret;
  };
  for (const Set& set : {Set{"h200-8-blind.csv", "h200-8", 140, 0.035, 0.09, 0.015},
                         {"h200-8-random-2.csv", "h200-8", 112, 0.045, 0.10, 0.025},
                         {"h200-random-2.csv", "h200-4", 224, 0.03, 0.08, 0.01},
                         {"h200-2-random-3.csv", "h200-4", 128, 0.03, 0.09, 0.01},
                         {"h200-2-random-4.csv", "h200-4", 128, 0.045, 0.09, 0.01},
                         {"h200-2-random-5.csv", "h200-4", 128, 0.045, 0.09, 0.01},
                         {"h200-2-random-6.csv", "h200-4", 128, 0.035, 0.09, 0.01},
                         {"h200-2-random-7.csv", "h200-4", 128, 0.04, 0.10, 0.01},
                         {"h200-2-grid.csv", "h200-4", 352, 0.03, 0.075, 0.027},
                         {"h200-2-grid-2.csv", "h200-4", 352, 0.03, 0.07, 0.033},
                         {"h200-2-narrow.csv", "h200-4", 224, 0.035, 0.09, 0.03},
                         {"h200-2-narrow-2.csv", "h200-4", 250, 0.04, 0.09, 0.02},
                         {"h200-4-random-11.csv", "h200-4", 168, 0.04, 0.11, 0.015},
                         {"h200-2-random-12.csv", "h200-4", 192, 0.035, 0.075, 0.01},
                         {"h200-2-random-13.csv", "h200-4", 168, 0.04, 0.115, 0.02},
                         {"h100-2-narrow.csv", "h100-4", 224, 0.035, 0.08, 0.045},
                         {"h100-2-narrow-2.csv", "h100-4", 250, 0.04, 0.10, 0.05},
                         {"h100-2-random-7.csv", "h100-4", 128, 0.045, 0.11, 0.015},
                         {"h100-2-random-8.csv", "h100-4", 168, 0.045, 0.10, 0.01},
                         {"h100-2-random-9.csv", "h100-4", 192, 0.05, 0.14, 0.01},
                         {"h100-2-random-10.csv", "h100-4", 144, 0.05, 0.14, 0.01},
                         {"h100-2-llm.csv", "h100-4", 312, 0.04, 0.10, 0.01},
                         {"h100-random-2.csv", "h100-4", 224, 0.045, 0.13, 0.015}}) {
    const ValidationSummary summary = summary_of(set.file, set.machine, set.runs);
    EXPECT_LE(summary.errors.median_abs_error, set.median) << set.file;
    EXPECT_LE(summary.errors.p90_abs_error, set.p90) << set.file;
    EXPECT_LE(summary.mean_regret.value(), set.regret) << set.file;
    EXPECT_GE(summary.band_coverage.value(), 0.80) << set.file;
  }
}

// Short kernels, and hosts that launch slower than those of the calibration: mostly too fast.
TEST(StoredMeasurements, OfTheLastDrawsOnH100ArePredictedWithinTheseBounds) {
  for (const char* file : {"h100-2-random-4.csv", "h100-2-random-5.csv"}) {
    const ValidationSummary summary = summary_of(file, "h100-4", 128);
    EXPECT_LE(summary.errors.median_abs_error, 0.05) << file;
    EXPECT_LE(summary.errors.p90_abs_error, 0.12) << file;
    EXPECT_LE(summary.mean_regret.value(), 0.01) << file;
    EXPECT_GE(summary.best_pattern_picked.value(), 0.85) << file;
  }
}

// Around some of these the hosts took 34 to 57 us, where others took 16 to 22.
TEST(StoredMeasurements, OfTheSixthDrawOnH100ArePredictedWithinTheseBounds) {
  const ValidationSummary summary = summary_of("h100-2-random-6.csv", "h100-4", 128);
  EXPECT_LE(summary.errors.median_abs_error, 0.075);
  EXPECT_LE(summary.errors.p90_abs_error, 0.18);
  EXPECT_LE(summary.mean_regret.value(), 0.025);
  EXPECT_GE(summary.best_pattern_picked.value(), 0.85);
}

// A workload that no machine was calibrated for and no mechanism was made for, blind. Pulled blocks and
// decode sizes are the worst.
TEST(StoredMeasurements, OfAllGatherAndGemmArePredictedWithinTheseBounds) {
  const ValidationSummary summary = summary_of("h100-2-all-gather-gemm.csv", "h100-4", 96);
  EXPECT_LE(summary.errors.median_abs_error, 0.06);
  EXPECT_LE(summary.errors.p90_abs_error, 0.15);
  EXPECT_LE(summary.mean_regret.value(), 0.01);
  EXPECT_GE(summary.pairs_in_order.value(), 0.85);
}

// Deep K on few workgroups is too fast in the model, and adding up a little (docs/accuracy.md).
TEST(StoredMeasurements, OfReducingPatternsArePredictedWithinTheseBounds) {
  const ValidationSummary scatter = summary_of("h100-2-gemm-reduce-scatter.csv", "h100-4", 79);
  EXPECT_LE(scatter.errors.median_abs_error, 0.11);
  EXPECT_LE(scatter.errors.p90_abs_error, 0.25);
  EXPECT_LE(scatter.mean_regret.value(), 0.04);
  EXPECT_GE(scatter.pairs_in_order.value(), 0.80);
  const ValidationSummary everywhere = summary_of("h100-2-gemm-all-reduce.csv", "h100-4", 95);
  EXPECT_LE(everywhere.errors.median_abs_error, 0.10);
  EXPECT_LE(everywhere.errors.p90_abs_error, 0.23);
  EXPECT_LE(everywhere.mean_regret.value(), 0.02);
  EXPECT_GE(everywhere.pairs_in_order.value(), 0.84);
}

// Workloads that nothing was made for, blind; the smallest are the worst.
TEST(StoredMeasurements, OfExchangesArePredictedWithinTheseBounds) {
  const ValidationSummary heads = summary_of("h100-2-gemm-all-to-all.csv", "h100-4", 38);
  EXPECT_LE(heads.errors.median_abs_error, 0.05);
  EXPECT_LE(heads.errors.p90_abs_error, 0.18);
  EXPECT_GE(heads.best_pattern_picked.value(), 0.85);
  const ValidationSummary beside = summary_of("h100-2-gemm-beside-all-gather.csv", "h100-4", 24);
  EXPECT_LE(beside.errors.median_abs_error, 0.035);
  EXPECT_LE(beside.errors.p90_abs_error, 0.13);
  EXPECT_GE(beside.best_pattern_picked.value(), 0.8);
}

// Four GPUs, and own collectives: what a chain of loads and stores takes is not known (docs/accuracy.md).
TEST(StoredMeasurements, OfFourGpusArePredictedWithinTheseBounds) {
  struct Set {
    const char* file;
    std::size_t runs;
    double median, p90;
  };
  for (const Set& set : {Set{"h100-4-all-gather-gemm.csv", 48, 0.10, 0.21},
                         {"h100-4-gemm-reduce-scatter.csv", 47, 0.16, 0.27},
                         {"h100-4-gemm-all-reduce.csv", 57, 0.15, 0.26},
                         {"h100-4-gemm-all-to-all.csv", 23, 0.06, 0.23},
                         {"h100-4-gemm-beside-all-gather.csv", 16, 0.035, 0.12},
                         {"h100-4-all-gather.csv", 28, 0.21, 0.26},
                         {"h100-4-reduce-scatter.csv", 84, 0.22, 0.29},
                         {"h100-4-all-reduce.csv", 124, 0.22, 0.30},
                         {"h100-4-all-to-all.csv", 70, 0.19, 0.28},
                         {"h100-1-gemm-stream-k.csv", 120, 0.10, 0.22},
                         {"h100-2-flash-decode.csv", 37, 0.26, 0.35},
                         {"h100-1-attention.csv", 34, 0.72, 0.75}}) {
    const ValidationSummary summary = summary_of(set.file, "h100-4", set.runs);
    EXPECT_LE(summary.errors.median_abs_error, set.median) << set.file;
    EXPECT_LE(summary.errors.p90_abs_error, set.p90) << set.file;
  }
}

// Kernels of attention here are on mma.sync, the law's on wgmma: what is held is that they go no further
// apart.
TEST(StoredMeasurements, OfExpertsRingsAndPagesArePredictedWithinTheseBounds) {
  struct Set {
    const char* file;
    std::size_t runs;
    double median, p90, regret;
  };
  for (const Set& set : {Set{"h200-2-moe.csv", 16, 0.14, 0.25, 0.005},
                         {"h200-2-ring-attention.csv", 13, 0.64, 0.67, 0.01},
                         {"h200-2-ulysses.csv", 15, 0.61, 0.63, 0.01},
                         {"h200-1-paged-attention.csv", 39, 0.50, 3.4, 0.15}}) {
    const ValidationSummary summary = summary_of(set.file, "h200-4", set.runs);
    EXPECT_LE(summary.errors.median_abs_error, set.median) << set.file;
    EXPECT_LE(summary.errors.p90_abs_error, set.p90) << set.file;
    EXPECT_LE(summary.mean_regret.value(), set.regret) << set.file;
  }
}

// Rate and packet of the engines are assumed. Sums along K are loaded more slowly than the model has it; they
// are half of the runs.
TEST(StoredMeasurements, OfAllGatherByCopyEnginesArePredictedWithinTheseBounds) {
  const ValidationSummary summary = summary_of("h100-2-all-gather-gemm-copy-engine.csv", "h100-4", 18);
  EXPECT_LE(summary.errors.median_abs_error, 0.08);
  EXPECT_LE(summary.errors.p90_abs_error, 0.40);
}

// Copies by 6 to 40 workgroups.
TEST(StoredMeasurements, OfFewCopyingWorkgroupsArePredictedWithinTheseBounds) {
  for (const char* file : {"h200-2-few-copies.csv", "h200-2-few-copies-2.csv"}) {
    const ValidationSummary summary = summary_of(file, "h200-4", 64);
    EXPECT_LE(summary.errors.median_abs_error, 0.035) << file;
    EXPECT_LE(summary.errors.p90_abs_error, 0.1) << file;
    EXPECT_LE(summary.mean_regret.value(), 0.05) << file;
    EXPECT_GE(summary.band_coverage.value(), 0.85) << file;
  }
}

// No communication: what kernels take, and what they take more after the caches were overwritten. Between
// tiles of fp8 the kernels of the first files lost 2 us that the model does not know of; those of `-2` do
// not. The host of those launched 5 us faster after a flush than those that `h200-4` knows, so there the
// kernels' clock counts. Where nothing is flushed between runs (`warm`, `one-wave`), hosts take 2 to 5 us
// more than after a flush, which is what `h200-4` knows.
TEST(StoredMeasurements, OfProductsOnOneGpuArePredictedWithinTheseBounds) {
  struct Set {
    const char* file;
    const char* machine;
    std::size_t runs;
    MeasuredClock clock;
    double median, p90;
  };
  for (const Set& set : {Set{"h200-1-products.csv", "h200-4", 40, MeasuredClock::wall, 0.065, 0.15},
                         {"h200-1-products-warm.csv", "h200-4", 40, MeasuredClock::wall, 0.075, 0.20},
                         {"h200-1-products-2.csv", "h200-4", 40, MeasuredClock::device, 0.06, 0.175},
                         {"h200-1-products-warm-2.csv", "h200-4", 40, MeasuredClock::device, 0.045, 0.21},
                         {"h200-1-products-warm-2.csv", "h200-4", 40, MeasuredClock::wall, 0.04, 0.115},
                         {"h200-1-knee.csv", "h200-4", 80, MeasuredClock::device, 0.045, 0.085},
                         {"h200-1-knee-warm.csv", "h200-4", 80, MeasuredClock::device, 0.045, 0.08},
                         {"h100-1-knee.csv", "h100-4", 80, MeasuredClock::device, 0.045, 0.105},
                         {"h100-1-knee-warm.csv", "h100-4", 80, MeasuredClock::device, 0.04, 0.10},
                         {"h200-1-one-wave-2.csv", "h200-4", 48, MeasuredClock::device, 0.07, 0.19},
                         {"h200-1-one-wave-2.csv", "h200-4", 48, MeasuredClock::wall, 0.06, 0.115},
                         {"h100-1-products.csv", "h100-4", 40, MeasuredClock::wall, 0.06, 0.19},
                         {"h100-1-products-warm.csv", "h100-4", 40, MeasuredClock::wall, 0.07, 0.19},
                         {"h200-1-products-3.csv", "h200-4", 40, MeasuredClock::wall, 0.04, 0.10},
                         {"h200-1-products-warm-3.csv", "h200-4", 40, MeasuredClock::wall, 0.055, 0.135},
                         {"h100-1-products-2.csv", "h100-4", 40, MeasuredClock::wall, 0.055, 0.11},
                         {"h100-1-products-warm-2.csv", "h100-4", 40, MeasuredClock::wall, 0.08, 0.14},
                         {"h100-1-one-wave.csv", "h100-4", 48, MeasuredClock::device, 0.06, 0.165}}) {
    const ValidationSummary summary = summary_of(set.file, set.machine, set.runs, set.clock);
    EXPECT_LE(summary.errors.median_abs_error, set.median) << set.file;
    EXPECT_LE(summary.errors.p90_abs_error, set.p90) << set.file;
  }
}

}  // namespace
}  // namespace tritax
