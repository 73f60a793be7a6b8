#include "model/cost/grid_model.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "model/core/error.hpp"

namespace tritax {
namespace {

// The three of arXiv:2301.03598 Fig. 8: 256×3584×8192, 1024³ and 128×128×16384 in tiles of 128×128×32 on the
// 108 units of an A100, and the best grids there.
struct Optimum {
  std::int64_t tiles, iterations, grid, least_share, most_share;
};
constexpr std::array<Optimum, 3> kOptima{
    {{56, 256, 108, 132, 133}, {64, 32, 64, 32, 32}, {1, 512, 8, 64, 64}}};
constexpr std::int64_t kUnits = 108;

bool has_the_optima(double b, double d) {
  return std::all_of(kOptima.begin(), kOptima.end(), [&](const Optimum& of) {
    return best_grid({0, b, 1, d}, of.tiles, of.iterations, kUnits) == of.grid;
  });
}

TEST(GridModel, HasThePublishedOptimaOfA100) {
  for (const Optimum& of : kOptima) {
    const std::int64_t grid = best_grid({0, 9, 1, 8}, of.tiles, of.iterations, kUnits);
    EXPECT_EQ(grid, of.grid);
    const std::int64_t share = GridModel::iterations_of(of.tiles, of.iterations, grid);
    EXPECT_GE(share, of.least_share);
    EXPECT_LE(share, of.most_share);
  }
}

// What the three optima leave open, in units of an iteration: 7 <= d <= 10, 3 <= b <= 116, 13 <= b + d <=
// 123.
TEST(GridModel, LeavesTheConstantsTheRangesThatThePublishedOptimaAdmit) {
  struct Range {
    double low = std::numeric_limits<double>::infinity();
    double high = 0;
    void add(double value) {
      low = std::min(low, value);
      high = std::max(high, value);
    }
  };
  Range b_range;
  Range d_range;
  Range both;
  for (double b = 0; b < 130; b += 1) {
    for (double d = 0.5; d < 14; d += 0.5) {
      if (!has_the_optima(b, d)) continue;
      b_range.add(b);
      d_range.add(d);
      both.add(b + d);
    }
  }
  EXPECT_GE(d_range.low, 7);
  EXPECT_LE(d_range.high, 10);
  EXPECT_GE(b_range.low, 3);
  EXPECT_LE(b_range.high, 116);
  EXPECT_GE(both.low, 13);
  EXPECT_LE(both.high, 123);
  EXPECT_NEAR(d_range.low, 7, 0.5);
  EXPECT_NEAR(d_range.high, 10, 0.5);
  EXPECT_NEAR(b_range.low, 3, 1);
  EXPECT_NEAR(b_range.high, 116, 1);
  EXPECT_NEAR(both.low, 13, 1);
  EXPECT_NEAR(both.high, 123, 1);
}

// Constants published for MI300X give A100's shapes other grids: they do not carry over.
TEST(GridModel, HasOtherOptimaWithTheConstantsOfMi300x) {
  const GridModel mi300x{7.337e3, 3.01e3, 2.2935e3, 10.22e3};
  std::array<std::int64_t, 3> grids{};
  std::transform(kOptima.begin(), kOptima.end(), grids.begin(),
                 [&](const Optimum& of) { return best_grid(mi300x, of.tiles, of.iterations, kUnits); });
  EXPECT_EQ(grids, (std::array<std::int64_t, 3>{108, 108, 11}));
}

std::vector<GridRun> runs_of(const GridModel& model) {
  std::vector<GridRun> runs;
  for (const Optimum& of : kOptima) {
    for (std::int64_t grid = 1; grid <= kUnits; grid += 9)
      runs.push_back({of.tiles, of.iterations, grid, model.time_ns(of.tiles, of.iterations, grid)});
  }
  return runs;
}

RC_GTEST_PROP(GridModel, IsFoundFromItsOwnRuns, ()) {
  const auto drawn = [](int high) { return static_cast<double>(*rc::gen::inRange(1, high)) / 7; };
  const GridModel model{drawn(1 << 14), drawn(1 << 10), drawn(1 << 10), drawn(1 << 12)};
  const GridFit fit = fit_grid_model(runs_of(model));
  const auto close = [](double x, double y) { return std::abs(x - y) <= 1e-6 * y; };
  RC_ASSERT(close(fit.model.a, model.a) && close(fit.model.b, model.b));
  RC_ASSERT(close(fit.model.c, model.c) && close(fit.model.d, model.d));
  RC_ASSERT(fit.worst_error < 1e-9);
}

TEST(GridModel, SaysHowFarRunsAreFromItsLaw) {
  std::vector<GridRun> runs = runs_of({5000, 3000, 400, 3000});
  for (std::size_t i = 0; i < runs.size(); ++i) runs[i].time_ns *= i % 2 == 0 ? 1.02 : 0.98;
  const GridFit fit = fit_grid_model(runs);
  EXPECT_NEAR(fit.median_error, 0.02, 0.01);
  EXPECT_LT(fit.worst_error, 0.06);
  EXPECT_NEAR(fit.model.c, 400, 20);
}

TEST(GridModel, RefusesRunsThatDoNotDecideIt) {
  EXPECT_THROW(fit_grid_model({}), UserError);
  // Nobody has a peer.
  const std::array<GridRun, 5> whole{
      {{8, 16, 8, 100}, {8, 16, 4, 200}, {8, 16, 2, 400}, {8, 16, 1, 800}, {4, 16, 1, 400}}};
  EXPECT_THROW(fit_grid_model(whole), UserError);
  std::vector<GridRun> runs = runs_of({1, 1, 1, 1});
  runs[3].time_ns = 0;
  EXPECT_THROW(fit_grid_model(runs), UserError);
}

}  // namespace
}  // namespace tritax
