// Errors by kind of operation: a simulation that is "measured" has none, and known changes come out as
// they are.
#include "sim/study/validate_ops.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "model/core/error.hpp"
#include "sim/simulate.hpp"
#include "sim/timeline.hpp"

namespace tritax {
namespace {

std::vector<Scenario> two_scenarios() {
  return parse_scenarios(R"(
[defaults]
machine = "h200-4"
workload = "gemm-all-scatter"
dtype = "bf16"
gpus = 4
m = 512
n = 1024
k = 256
knobs = { tile = [128, 128, 64] }

[[scenario]]
id = "fused/fused-sequential"
pattern = "fused-sequential"

[[scenario]]
id = "pc/producer-consumer"
pattern = "producer-consumer"
)",
                         "file.toml");
}

// What a GPU that behaves like the simulator would have stored.
MeasuredOpsFile as_simulated(Scenario scenario, int gpus, std::optional<double> flush_bytes = {}) {
  if (scenario.problem.values.has("gpus")) scenario.problem.values.give("gpus", gpus);
  const Machine machine = find_machine(scenario.machine);
  const Schedule schedule = build_scenario(scenario, machine);
  TimelineRecorder recorder(schedule);
  SimulationOptions options;
  options.written_before_bytes = flush_bytes.value_or(0);
  options.warm = flush_bytes == 0.0;
  options.observer = &recorder;
  simulate(schedule, machine, options);
  MeasuredOpsFile file;
  file.origin = "ops.csv";
  for (const OpTimes& times : op_times(recorder.take(), schedule)) {
    file.rows.push_back({scenario.id, scenario.pattern, gpus, times, 100, 104, flush_bytes, "ops.csv:2"});
  }
  return file;
}

TEST(ValidateOps, FindsNoResidualWhereTheMeasurementIsTheSimulation) {
  const std::vector<Scenario> scenarios = two_scenarios();
  for (const Scenario& scenario : scenarios) {
    const MeasuredOpsFile file = as_simulated(scenario, 2);
    const std::vector<OpResidual> rows = validate_ops({file}, scenarios, "");
    ASSERT_EQ(rows.size(), file.rows.size());
    for (const OpResidual& row : rows) {
      EXPECT_EQ(row.predicted.count, row.measured.times.count);
      EXPECT_DOUBLE_EQ(row.error().value_or(0), 0);
    }
    EXPECT_DOUBLE_EQ(stamping_cost(rows), 104.0 / 100 - 1);
    const std::vector<OpKindResidual> kinds = summarise_ops(rows);
    ASSERT_FALSE(kinds.empty());
    EXPECT_EQ(kinds.front().kind, OpKind::matmul);
    EXPECT_EQ(kinds.front().count, 4 * 8);  // 4 x 4 tiles of 512 x 512 columns a rank, on two ranks
  }
}

TEST(ValidateOps, SimulatesWhatTheRunsFoundInTheCaches) {
  const std::vector<Scenario> scenarios = two_scenarios();
  const auto first_error = [&](std::optional<double> ran, std::optional<double> said) {
    MeasuredOpsFile file = as_simulated(scenarios[0], 2, ran);
    for (MeasuredOps& row : file.rows) row.flush_bytes = said;
    return validate_ops({file}, scenarios, "").at(0).error().value_or(0);
  };
  EXPECT_EQ(first_error(0.0, 0.0), 0);
  EXPECT_EQ(first_error(256e6, 256e6), 0);
  EXPECT_GT(first_error(0.0, 256e6), 0);  // warm operands come sooner
  const auto both =
      validate_ops({as_simulated(scenarios[0], 2, 0.0), as_simulated(scenarios[0], 2, 256e6)}, scenarios, "");
  for (const OpResidual& row : both) EXPECT_DOUBLE_EQ(row.error().value_or(0), 0);
}

TEST(ValidateOps, AttributesAChangeToItsKindAndSide) {
  const std::vector<Scenario> scenarios = two_scenarios();
  MeasuredOpsFile file = as_simulated(scenarios[0], 4);
  for (MeasuredOps& row : file.rows) {
    if (row.times.group.kind != OpKind::store || !row.times.group.remote) continue;
    row.times.median_us *= 2;
    row.times.sum_us *= 2;
  }
  bool found = false;
  for (const OpKindResidual& kind : summarise_ops(validate_ops({file}, scenarios, ""))) {
    const bool changed = kind.kind == OpKind::store && kind.remote;
    found = found || changed;
    if (!kind.median_error) continue;
    EXPECT_NEAR(*kind.median_error, changed ? -0.5 : 0, 1e-9);
    EXPECT_NEAR(*kind.sum_error, changed ? -0.5 : 0, 1e-9);
    EXPECT_NEAR(*kind.median_abs_error, changed ? 0.5 : 0, 1e-9);
  }
  EXPECT_TRUE(found);
}

std::vector<Scenario> on_one_gpu() {
  return parse_scenarios(
      "[[scenario]]\nid = \"one\"\nmachine = \"h200-4\"\nworkload = \"gemm\"\ndtype = \"bf16\"\n"
      "pattern = \"data-parallel\"\nm = 512\nn = 512\nk = 256\nknobs = { tile = [128, 128, 64] }\n",
      "one.toml");
}

// A workload without such a field runs on one GPU.
TEST(ValidateOps, KnowsRunsOfWorkloadsOfOneGpu) {
  const std::vector<Scenario> scenarios = on_one_gpu();
  MeasuredOpsFile file = as_simulated(scenarios[0], 1);
  ASSERT_FALSE(file.rows.empty());
  for (const OpResidual& row : validate_ops({file}, scenarios, ""))
    EXPECT_DOUBLE_EQ(row.error().value_or(0), 0);
  for (MeasuredOps& row : file.rows) row.gpus = 2;
  try {
    validate_ops({file}, scenarios, "");
    ADD_FAILURE() << "a GEMM on one GPU has run on two";
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(), "ops.csv:2: gpus = 2, but gemm of scenario 'one' (one.toml:1) runs on 1");
  }
}

// … and others on no fewer than share them.
TEST(ValidateOps, RefusesFewerGpusThanAWorkloadIsSharedBy) {
  const std::vector<Scenario> scenarios = parse_scenarios(
      "[[scenario]]\nid = \"two\"\nmachine = \"h200-4\"\nworkload = \"gemm-reduce-scatter\"\n"
      "dtype = \"bf16\"\npattern = \"fused-slots\"\ngpus = 2\nm = 512\nn = 512\nk = 256\n",
      "two.toml");
  MeasuredOpsFile file = as_simulated(scenarios[0], 2);
  file.rows.resize(1);
  file.rows[0].gpus = 1;
  EXPECT_THROW(validate_ops({file}, scenarios, ""), UserError);
}

TEST(ValidateOps, RefusesRowsThatFitNoScenarioOrNoSchedule) {
  const std::vector<Scenario> scenarios = two_scenarios();
  const MeasuredOpsFile good = as_simulated(scenarios[0], 4);
  const auto refused = [&](auto change, const std::string& words) {
    MeasuredOpsFile file = good;
    change(file.rows[0]);
    try {
      validate_ops({file}, scenarios, "");
      ADD_FAILURE() << words;
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("ops.csv:2"), std::string::npos) << error.what();
    }
  };
  refused([](MeasuredOps& row) { row.id = "fuse/fused-sequential"; },
          "did you mean 'fused/fused-sequential'");
  refused([](MeasuredOps& row) { row.pattern = "bulk-synchronous"; }, "contradicts");
  refused([](MeasuredOps& row) { row.gpus = 64; }, "cannot be simulated");
  refused([](MeasuredOps& row) { row.times.group.size = "1x2x3"; }, "has no matmul 1x2x3 in kernel");
  EXPECT_THROW(validate_ops({good}, {scenarios[0], scenarios[0]}, ""), UserError) << "one id twice";
}

TEST(ValidateOps, LeavesOutWhatWasCancelled) {
  ValidateOptions options;
  options.cancelled = [] { return true; };
  EXPECT_TRUE(validate_ops({as_simulated(two_scenarios()[0], 2)}, two_scenarios(), "", options).empty());
}

}  // namespace
}  // namespace tritax
