// Fits of grid models: known constants are found again, simulated runs give constants, and what does not
// decide them is refused.
#include "sim/study/fit_grid_models.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "model/core/error.hpp"
#include "model/machine/machine.hpp"
#include "sim/study/grid_choice.hpp"

namespace tritax {
namespace {

using testing::HasSubstr;

constexpr const char* kShapes = R"(
[defaults]
machine = "h100-4"
workload = "gemm"
dtype = "bf16"
pattern = "stream-k"
knobs = { tile = [128, 128, 32] }
[[scenario]]
id = "wide"
m = 256
n = 1024
k = 1024
[[scenario]]
id = "deep"
m = 128
n = 128
k = 4096
)";

std::vector<MeasuredScenario> runs_of(const GridModel& model) {
  std::vector<MeasuredScenario> rows;
  for (Scenario scenario : parse_scenarios(kShapes, "shapes.toml")) {
    for (const std::int64_t grid : {1, 3, 8, 16, 24, 60, 132}) {
      scenario.knobs.give("grid", grid);
      MeasuredScenario row;
      row.scenario = scenario;
      const bool wide = scenario.id == "wide";
      row.row.times[static_cast<std::size_t>(MeasuredClock::device)].median_ns =
          model.time_ns(wide ? 16 : 1, wide ? 32 : 128, std::min<std::int64_t>(grid, wide ? 512 : 128));
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

TEST(FitGridModels, FindsTheConstantsThatRunsWereMadeWith) {
  const Machine machine = find_machine("h100-4");
  const GridModel made{5123, 3100, 407, 3217};
  std::vector<MeasuredScenario> rows = runs_of(made);
  rows.push_back(rows.front());
  rows.back().scenario.pattern = "data-parallel";
  const GridSamples samples = measured_grid_samples(rows, machine);
  EXPECT_EQ(samples.samples.size(), rows.size() - 1);
  EXPECT_EQ(samples.left_out, 1U);
  const FittedGridModels fitted = fit_grid_models(samples.samples, machine);
  EXPECT_EQ(fitted.models.workload, "gemm");
  EXPECT_EQ(fitted.models.machine, "h100-4");
  ASSERT_EQ(fitted.models.models.size(), 1U);
  const FittedGridModel& model = fitted.models.models.front();
  EXPECT_EQ(model.option, "stream-k tile=128x128x32");
  EXPECT_EQ(model.dtype, DType::bf16);
  EXPECT_NEAR(model.fit.model.a, made.a, 1e-6 * made.a);
  EXPECT_NEAR(model.fit.model.b, made.b, 1e-6 * made.b);
  EXPECT_NEAR(model.fit.model.c, made.c, 1e-6 * made.c);
  EXPECT_NEAR(model.fit.model.d, made.d, 1e-6 * made.d);
  EXPECT_LT(model.fit.worst_error, 1e-9);
}

TEST(FitGridModels, SimulatesScenariosOnSeveralGrids) {
  const Machine machine = find_machine("h100-4");
  const GridSamples samples = simulated_grid_samples(parse_scenarios(kShapes, "shapes.toml"), machine, {});
  EXPECT_EQ(samples.samples.size(), 20U);  // 1, 2, 4 … 128, 99 and 132 of each
  const FittedGridModels fitted = fit_grid_models(samples.samples, machine);
  ASSERT_EQ(fitted.models.models.size(), 1U);
  const GridFit& fit = fitted.models.models.front().fit;
  EXPECT_GT(fit.model.c, 0);
  EXPECT_GT(fit.model.d, 0);
  EXPECT_LT(fit.median_error, 0.15);
}

// One problem with two tiles is two rows, each with the grids of its own tile, in whatever order they come.
TEST(GridTable, TriesTheGridsOfARowWithItsKnobs) {
  const Machine machine = find_machine("h100-4");
  GridModels models;
  models.workload = "gemm";
  models.machine = machine.name;
  std::vector<Scenario> both;
  const Scenario first = parse_scenarios(kShapes, "shapes.toml").front();
  for (const std::int64_t side : {128, 64}) {
    FittedGridModel& model = models.models.emplace_back();
    model.option = "stream-k tile=" + std::to_string(side) + "x" + std::to_string(side) + "x32";
    model.dtype = DType::bf16;
    model.runs = 1;
    model.fit.model = {5000, 3000, 4.0 * static_cast<double>(side), 3000};
    Scenario& scenario = both.emplace_back(first);
    scenario.knobs.give("tile_m", side);
    scenario.knobs.give("tile_n", side);
  }
  const auto times_of = [&](const std::vector<Scenario>& scenarios) {
    return grid_table(scenarios, machine, models, "grid.json").table.time_ns;
  };
  const auto alone = std::array{times_of({both[0]}).at(0), times_of({both[1]}).at(0)};
  ASSERT_NE(alone[0], alone[1]);
  const auto in_order = times_of(both);
  ASSERT_EQ(in_order.size(), 2U);
  EXPECT_EQ(in_order[0], alone[0]);
  EXPECT_EQ(in_order[1], alone[1]);
  const auto turned = times_of({both[1], both[0]});
  EXPECT_EQ(turned[0], alone[1]);
  EXPECT_EQ(turned[1], alone[0]);
}

TEST(FitGridModels, RefusesRunsThatDecideNothing) {
  const Machine machine = find_machine("h100-4");
  const std::vector<MeasuredScenario> rows = runs_of({1, 1, 1, 1});
  const std::vector<GridSample> few =
      measured_grid_samples({rows.begin(), rows.begin() + 2}, machine).samples;
  EXPECT_THROW(fit_grid_models(few, machine), UserError);
  try {
    fit_grid_models({}, machine);
    FAIL() << "is fitted";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no run shares all iterations evenly"));
  }
  std::vector<GridSample> mixed = measured_grid_samples(rows, machine).samples;
  mixed.back().workload = "spmv";
  EXPECT_THROW(fit_grid_models(mixed, machine), UserError);
}

}  // namespace
}  // namespace tritax
