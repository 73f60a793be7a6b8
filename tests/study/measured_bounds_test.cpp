// The model against the stored measurements on H200 and H100, so that no later change loses its accuracy
// silently; `scripts/make-accuracy --check` holds the sets of docs/accuracy.toml to their bounds. The
// machines were calibrated on microbenchmarks; what L2 keeps was read off DRAM reads of plain products
// (tests/calibrate/products_test.cpp).
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "sim/study/validate.hpp"

namespace tritax {
namespace {

std::vector<ValidatedRow> validated(const std::vector<MeasuredFile>& files, const std::string& machine) {
  return validate(match_scenarios(files, shipped_measured_scenarios(), false, machine));
}

TEST(StoredMeasurements, ArePredictedWithinTheseBounds) {
  const auto rows = validated(shipped_measurements(), "");
  EXPECT_EQ(rows.size(), 360u);
  const ValidationSummary summary = summarise(rows, MeasuredClock::wall);
  EXPECT_LE(summary.errors.median_abs_error, 0.045);
  EXPECT_LE(summary.errors.p90_abs_error, 0.11);
  EXPECT_GE(summary.best_pattern_picked.value(), 0.85);
  EXPECT_LE(summary.mean_regret.value(), 0.01);
  EXPECT_LE(summary.max_regret.value(), 0.06);
  EXPECT_GE(summary.band_coverage.value(), 0.85);
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

std::string measured_path(const std::string& file) {
  return std::string(TRITAX_SOURCE_DIR) + "/scenarios/measured/" + file;
}

ValidationSummary summary_of(const std::string& file, const std::string& machine, std::size_t runs,
                             MeasuredClock clock = MeasuredClock::wall) {
  const auto rows = validated({read_measured(measured_path(file))}, machine);
  EXPECT_EQ(rows.size(), runs) << file;
  return summarise(rows, clock);
}

// Ragged, shallow, tall and deep shapes, other dtypes, tiles and splits: first sessions of sets that were
// measured again. The regret is that of near ties of fused-sequential and producer-consumer, whose second
// kernel pays for cold code.
TEST(StoredMeasurements, OfEarlierSessionsArePredictedWithinTheseBounds) {
  struct Set {
    const char* file;
    const char* machine;
    double median, p90, regret, coverage;
  };
  for (const Set& set : {Set{"h200-2-more.csv", "h200-4", 0.045, 0.105, 0.006, 0.80},
                         {"h100-2-more.csv", "h100-4", 0.055, 0.13, 0.04, 0.85}}) {
    const ValidationSummary summary = summary_of(set.file, set.machine, 180);
    EXPECT_LE(summary.errors.median_abs_error, set.median) << set.file;
    EXPECT_LE(summary.errors.p90_abs_error, set.p90) << set.file;
    EXPECT_LE(summary.mean_regret.value(), set.regret) << set.file;
    EXPECT_GE(summary.band_coverage.value(), set.coverage) << set.file;
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
  for (const Set& set : {
           Set{"h200-1-products.csv", "h200-4", 40, MeasuredClock::wall, 0.065, 0.15},
           {"h200-1-products-warm.csv", "h200-4", 40, MeasuredClock::wall, 0.075, 0.20},
           {"h200-1-products-2.csv", "h200-4", 40, MeasuredClock::device, 0.06, 0.175},
           {"h200-1-products-warm-2.csv", "h200-4", 40, MeasuredClock::device, 0.045, 0.21},
           {"h200-1-products-warm-2.csv", "h200-4", 40, MeasuredClock::wall, 0.04, 0.115},
           {"h200-1-one-wave-2.csv", "h200-4", 48, MeasuredClock::wall, 0.06, 0.115},
           {"h100-1-products.csv", "h100-4", 40, MeasuredClock::wall, 0.06, 0.19},
           {"h100-1-products-warm.csv", "h100-4", 40, MeasuredClock::wall, 0.07, 0.19},
       }) {
    const ValidationSummary summary = summary_of(set.file, set.machine, set.runs, set.clock);
    EXPECT_LE(summary.errors.median_abs_error, set.median) << set.file;
    EXPECT_LE(summary.errors.p90_abs_error, set.p90) << set.file;
  }
}

}  // namespace
}  // namespace tritax
