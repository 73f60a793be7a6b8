#include "sim/study/validate.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "model/core/error.hpp"
#include "model/machine/write_machine.hpp"
#include "tests/sim/replaced.hpp"
#include "tests/workloads/gemm_all_scatter.hpp"

namespace tritax {
namespace {

const std::string kRemark = "# 2026-11-21, NVIDIA H200 x 4, driver 580\n";
const std::string kHeader =
    "id,pattern,gpus,m,n,k,dtype,tile_m,tile_n,tile_k,gemm_cus,comm_cus,group_m,peer_order,lock,launch,"
    "runs,flush_bytes,wall_us,wall_p10_us,wall_p90_us,device_us,device_p10_us,device_p90_us,"
    "relative_error\n";
const std::string kRow =
    "small/fused-sequential,fused-sequential,2,512,1024,256,bf16,128,128,64,0,0,8,rotated,load-store,stream,"
    "20,256000000,30.5,29,32,20.25,20,21,1.66e-03\n";
const std::string kScenario = R"(
[[scenario]]
id = "small/fused-sequential"
machine = "h200-4"
workload = "gemm-all-scatter"
m = 512
n = 1024
k = 256
dtype = "bf16"
gpus = 4
pattern = "fused-sequential"
knobs = { tile = [64, 64, 64], host_barriers = false }
)";

template <typename Action>
void expect_refused(const Action& action, const std::vector<std::string>& words) {
  try {
    action();
    ADD_FAILURE() << "accepted; expected a message with " << words.front();
  } catch (const UserError& error) {
    for (const std::string& word : words) {
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos)
          << error.what() << "\nlacks " << word;
    }
  }
}

void expect_csv_refused(const std::string& csv, const std::vector<std::string>& words) {
  expect_refused([&] { parse_measured(csv, "file.csv"); }, words);
}

std::vector<MeasuredScenario> matched(const std::string& row, const std::string& scenarios,
                                      bool require_scenario = false, const std::string& machine = "") {
  return match_scenarios({parse_measured(kHeader + row, "file.csv")}, parse_scenarios(scenarios, "file.toml"),
                         require_scenario, machine);
}

// Four schedules of two matrices; the column of a file that was not given is empty.
TEST(Validate, ChoosesAmongTheSchedulesOfASparseMatrix) {
  const std::string columns =
      "id,workload,pattern,gpus,rows,row_length,structure,matrix,cols,exponent,width,matrix_seed,dtype,"
      "workgroup_threads,items,lanes,chunk,short_row,long_row,runs,warmup_runs,flush_bytes,pace_gb_per_s,"
      "wall_us,wall_p10_us,wall_p90_us,device_us,device_p10_us,device_p90_us,relative_error\n";
  const std::string rest = ",,1000,210,64,7,fp32,128,8,32,128,8,1024,20,3,256000000,0,";
  const auto row = [&](const std::string& pattern, const std::string& structure, const std::string& times) {
    return structure + "/" + pattern + ",spmv," + pattern + ",1,1000,16," + structure + rest + times +
           ",2e-07\n";
  };
  const MeasuredFile file = parse_measured(columns + row("thread-mapped", "power-law", "40,39,41,30,29,31") +
                                               row("merge-path", "power-law", "20,19,21,10,9,11") +
                                               row("thread-mapped", "banded", "14,13,15,5,4,6") +
                                               row("merge-path", "banded", "18,17,19,9,8,10"),
                                           "f.csv");
  const std::vector<ValidatedRow> rows = validate(match_scenarios({file}, {}, false, "h200-4"));
  ASSERT_EQ(rows.size(), 4u);
  const std::vector<Choice> choices = choices_of(rows, MeasuredClock::device);
  ASSERT_EQ(choices.size(), 2u);
  EXPECT_EQ(choices[0].best->pattern, "merge-path");
  EXPECT_EQ(choices[0].picked->pattern, "merge-path");
  EXPECT_EQ(choices[1].best->pattern, "thread-mapped");
}

TEST(MeasuredFile, IsReadWithItsRemarksKnobsAndTimes) {
  const MeasuredFile file = parse_measured(kRemark + kHeader + kRow, "file.csv");
  EXPECT_EQ(file.remarks, std::vector<std::string>{"2026-11-21, NVIDIA H200 x 4, driver 580"});
  ASSERT_EQ(file.rows.size(), 1u);
  const MeasuredRow& row = file.rows[0];
  EXPECT_EQ(row.id, "small/fused-sequential");
  EXPECT_EQ(row.pattern, "fused-sequential");
  EXPECT_EQ(row.where, "file.csv:3");
  EXPECT_EQ(row.problem.gpus(), 2);
  EXPECT_EQ(row.problem["n"], 1024);
  EXPECT_EQ(static_cast<DType>(row.problem["dtype"]), DType::bf16);
  EXPECT_EQ(row.knobs["tile_m"], 128);
  EXPECT_EQ(gemm_knobs_of(row.knobs).peer_order, PeerOrder::rotated);
  EXPECT_EQ(row.time(MeasuredClock::wall).median_ns, 30500);
  EXPECT_EQ(row.time(MeasuredClock::device).median_ns, 20250);
  EXPECT_EQ(row.time(MeasuredClock::device).p90_ns, 21000);
}

TEST(MeasuredFile, MayHaveItsColumnsInAnyOrderMoreOfThemAndWindowsLineEnds) {
  std::string header = replaced(kHeader, "id,pattern", "pattern,id");
  header = replaced(header, "relative_error\n", "room_temperature\r\n");
  const std::string row =
      replaced(kRow, "small/fused-sequential,fused-sequential", "fused-sequential,small/fused-sequential");
  const MeasuredFile file = parse_measured(header + replaced(row, "\n", "\r\n"), "file.csv");
  EXPECT_EQ(file.rows.at(0).id, "small/fused-sequential");
}

TEST(MeasuredFile, WithoutRowsIsRefused) {
  for (const std::string& csv : {std::string(), kRemark, kRemark + kHeader}) {
    expect_csv_refused(csv, {"file.csv:", "the file ends", "at least one row"});
  }
}

TEST(MeasuredFile, WithoutANeededColumnIsRefusedAndTheNearestNameOffered) {
  expect_csv_refused(kRemark + replaced(kHeader, "wall_us", "wal_us") + kRow,
                     {"file.csv:2", "'wall_us' is missing", "'wal_us'"});
  expect_csv_refused(replaced(kHeader, "flush_bytes", "gpus") + kRow, {"file.csv:1", "'gpus' appears twice"});
}

TEST(MeasuredFile, ThatWasCutShortIsRefused) {
  expect_csv_refused(kRemark + kHeader + kRow + kRow.substr(0, 40), {"file.csv:4", "fields", "25 columns"});
}

TEST(MeasuredFile, WithABadValueIsRefusedWithLineColumnAndValue) {
  const auto refused = [](const std::string& from, const std::string& to,
                          const std::vector<std::string>& words) {
    std::vector<std::string> all{"file.csv:2"};
    all.insert(all.end(), words.begin(), words.end());
    expect_csv_refused(kHeader + replaced(kRow, from, to), all);
  };
  refused("small/fused-sequential,", ",", {"'id'"});
  refused(",fused-sequential,", ",fused,", {"'pattern'", "'fused'", "producer-consumer"});
  refused(",2,512", ",two,512", {"'gpus'", "'two'"});
  refused(",512,", ",0,", {"'m'", "'0'", "from 1"});
  refused(",512,", ",512.5,", {"'m'", "'512.5'"});
  refused(",bf16,", ",bf61,", {"'dtype'", "'bf61'", "fp16"});
  refused(",128,128,64,", ",128,128,-64,", {"'tile_k'", "'-64'"});
  refused(",load-store,", ",mutex,", {"'lock'", "'mutex'"});
  refused(",20,256000000", ",0,256000000", {"'runs'", "'0'"});
  refused(",30.5,", ",nan,", {"'wall_us'", "'nan'"});
  refused(",30.5,", ",-30.5,", {"'wall_us'", "'-30.5'"});
  refused(",30.5,", ",30.5us,", {"'wall_us'", "'30.5us'"});
  refused(",30.5,", ",33.5,", {"'wall_us'", "'33.5'", "wall_p90_us = 32"});
  refused(",20.25,", ",19.25,", {"'device_us'", "'19.25'", "device_p10_us = 20"});
}

TEST(MeasuredFile, ThatCannotBeReadIsRefused) {
  for (const std::string path : {"no-such-file.csv", "/"}) {
    expect_refused([&] { read_measured(path); }, {path});
  }
}

TEST(MatchScenarios, TakesWhatRanFromTheRowAndTheRestFromTheScenario) {
  const auto rows = matched(kRow, kScenario);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].scenario.problem.gpus(), 2);
  EXPECT_EQ(rows[0].scenario.knobs["tile_m"], 128);
  EXPECT_EQ(rows[0].scenario.knobs["host_barriers"], 0);
  EXPECT_EQ(rows[0].scenario.machine, "h200-4");
  EXPECT_EQ(matched(kRow, kScenario, false, "mi300x-8").at(0).scenario.machine, "mi300x-8");
}

TEST(MatchScenarios, BuildsAScenarioForARowThatHasNoneUnlessScenariosWereAskedFor) {
  const std::string other = replaced(kScenario, "small/", "other/");
  const auto rows = matched(kRow, other);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].scenario.pattern, "fused-sequential");
  EXPECT_EQ(rows[0].scenario.knobs["host_barriers"], 1);
  EXPECT_TRUE(matched(kRow, other, true).empty());
}

TEST(MatchScenarios, RefusesARowThatContradictsTheScenarioOfItsId) {
  expect_refused([] { matched(replaced(kRow, ",256,bf16", ",128,bf16"), kScenario); },
                 {"file.csv:2", "k = 128", "file.toml:", "256"});
  expect_refused([] { matched(replaced(kRow, "bf16", "fp16"), kScenario); }, {"dtype = fp16", "bf16"});
  expect_refused([] { matched(replaced(kRow, ",fused-sequential,", ",bulk-synchronous,"), kScenario); },
                 {"pattern = bulk-synchronous", "fused-sequential"});
}

TEST(Validate, PredictsBothClocksOfARow) {
  const auto rows = validate(matched(kRow, kScenario));
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_GT(rows[0].predicted_on(MeasuredClock::device), 0);
  // The host's clock also sees launch and synchronisation.
  const HostCosts host = find_machine("h200-4").host;
  EXPECT_GE(rows[0].predicted_on(MeasuredClock::wall),
            rows[0].predicted_on(MeasuredClock::device) + host.launch_latency_ns + host.synchronize_ns);
}

TEST(Validate, PredictsRunsThatFollowLongLoadAtTheSustainedClock) {
  const auto predicted_ns = [](const std::string& runs) {
    const std::string row =
        replaced(replaced(kRow, ",2,512,1024,256,", ",2,8192,8192,8192,"), ",20,", "," + runs + ",");
    const auto rows = match_scenarios({parse_measured(kHeader + row, "file.csv")}, {}, false, "");
    return validate(rows).at(0).predicted_on(MeasuredClock::wall);
  };
  // Smaller products rest enough between two runs to keep their clock. Some 0.8 ms each, so that the power
  // limit's 50 ms have passed before the middle one of 1000, not of 60.
  EXPECT_EQ(predicted_ns("20"), predicted_ns("60"));
  EXPECT_GT(predicted_ns("1000"), 1.03 * predicted_ns("60"));
}

TEST(Validate, CountsTheWarmUpThatTheTableSays) {
  const auto predicted_ns = [](const std::string& column, const std::string& value) {
    const std::string header = replaced(kHeader, "flush_bytes", column + "flush_bytes");
    const std::string row =
        replaced(replaced(kRow, ",2,512,1024,256,", ",2,8192,8192,8192,"), ",20,256", ",20," + value + "256");
    const auto rows = match_scenarios({parse_measured(header + row, "file.csv")}, {}, false, "");
    return validate(rows).at(0).predicted_on(MeasuredClock::wall);
  };
  const double unsaid_ns = predicted_ns("", "");
  EXPECT_EQ(predicted_ns("warmup_runs,", "3,"), unsaid_ns);
  EXPECT_GT(predicted_ns("warmup_runs,", "500,"), 1.03 * unsaid_ns);  // the power limit has set in
  const std::string header = replaced(kHeader, "flush_bytes", "warmup_runs,flush_bytes");
  expect_csv_refused(header + replaced(kRow, ",20,256", ",20,-1,256"), {"file.csv:2", "warmup_runs", "'-1'"});
}

// Without chance, for neighbours that wait for memory draw the same random share, others do not.
TEST(Validate, PredictsRunsWithNothingInBetweenWithWarmCaches) {
  Machine machine = find_machine("h200-4");
  for (Parameter& parameter : machine.parameters) {
    const bool chance = parameter.key == "gpu.matmul_spread" || parameter.key == "fabric.arbitration_spread";
    if (chance) parameter.value = 0;
  }
  const std::string path = testing::TempDir() + "without_chance.toml";
  std::ofstream(path) << write_machine(machine, "without chance");
  const auto predicted_ns = [&](const std::string& header, const std::string& flush) {
    const std::string row = replaced(kRow, ",20,256000000,", ",20," + flush);
    const auto rows = match_scenarios({parse_measured(header + row, "file.csv")}, {}, false, path);
    return validate(rows).at(0).predicted_on(MeasuredClock::wall);
  };
  const double cold_start_ns = find_machine("h200-4").interpreter.cold_start_ns;
  const double warm_ns = predicted_ns(kHeader, "0,");
  EXPECT_GT(cold_start_ns, 0);
  EXPECT_GE(predicted_ns(kHeader, "256000000,"), warm_ns + cold_start_ns);
  // A file that does not say what came in between.
  EXPECT_GE(predicted_ns(replaced(kHeader, "flush_bytes,", ""), ""), warm_ns + cold_start_ns);
}

TEST(Validate, RefusesARowThatTheMachineCannotRunAndSaysWhichRow) {
  expect_refused([] { validate(matched(replaced(kRow, ",2,512", ",8,512"), kScenario)); },
                 {"file.csv:2", "cannot be simulated", "8"});
}

TEST(Validate, LeavesOutRowsAfterCancelling) {
  ValidateOptions options;
  options.cancelled = [] { return true; };
  EXPECT_TRUE(validate(matched(kRow, kScenario), options).empty());
}

TEST(ShippedMeasurements, AreSimulatedRowByRowFromTheirScenarios) {
  const std::vector<MeasuredFile> files = shipped_measurements();
  ASSERT_FALSE(files.empty());
  std::size_t rows = 0;
  for (const MeasuredFile& file : files) {
    EXPECT_GE(file.remarks.size(), 2u) << file.origin << " must say where, when and how it was made";
    rows += file.rows.size();
  }
  const auto scenarios = shipped_measured_scenarios();
  const auto matched_rows = match_scenarios(files, scenarios, true, "");
  EXPECT_EQ(matched_rows.size(), rows) << "a row without a scenario";
  const std::vector<ValidatedRow> validated = validate(matched_rows);
  ASSERT_EQ(validated.size(), rows);
  // That something sensible comes; measured_bounds_test.cpp holds the model to its accuracy.
  const ValidationSummary summary = summarise(validated, MeasuredClock::wall);
  EXPECT_LT(summary.errors.median_abs_error, 0.15);
  EXPECT_GT(summary.best_pattern_picked.value(), 0.6);
}

// A row of a table made by hand, in us on the wall clock; the device clock holds other numbers.
ValidatedRow hand_row(const std::string& pattern, std::int64_t m, double measured, double predicted) {
  ValidatedRow row;
  row.id = pattern;
  row.pattern = pattern;
  row.problem = problem_of(GemmAllScatter{m, 1024, 1024, DType::bf16, 4});
  row.measured[0] = {measured * 1e3, measured * 1e3, measured * 1e3};
  row.measured[1] = {1, 1, 1};
  row.predicted_ns = {predicted * 1e3, 2};
  return row;
}

// Shape 1: the model picks b (90), which took 125; a is best with 100: regret 25 %. Shape 2: right, in the
// second best tile of the pattern: 80 / 64. Shape 3: one pattern, so no choice.
std::vector<ValidatedRow> hand_table() {
  return {hand_row("a", 1, 100, 100),  // error 0
          hand_row("b", 1, 125, 90),   // -0.28
          hand_row("a", 2, 64, 80),    // +0.25
          hand_row("a", 2, 80, 76),    // -0.05
          hand_row("b", 2, 160, 176),  // +0.1
          hand_row("b", 3, 50, 50)};   // 0
}

TEST(ValidationSummary, OfAHandMadeTableIsExact) {
  const ValidationSummary summary = summarise(hand_table(), MeasuredClock::wall);
  EXPECT_EQ(summary.errors.rows, 6u);
  // |errors| sorted: 0 0 0.05 0.1 0.25 0.28; the median lies midway between the third and fourth, the 90th
  // percentile midway between the last two.
  EXPECT_NEAR(summary.errors.median_abs_error, 0.075, 1e-12);
  EXPECT_NEAR(summary.errors.p90_abs_error, 0.265, 1e-12);
  // errors sorted: -0.28 -0.05 0 0 0.1 0.25
  EXPECT_NEAR(summary.errors.median_error, 0, 1e-12);
  EXPECT_DOUBLE_EQ(summary.best_pattern_picked.value(), 0.5);
  EXPECT_DOUBLE_EQ(summary.mean_regret.value(), 0.25);
  EXPECT_DOUBLE_EQ(summary.max_regret.value(), 0.25);
  EXPECT_FALSE(summary.band_coverage.has_value());
}

TEST(ValidationSummary, OfOnePatternCountsItsRowsOnly) {
  const ErrorSummary errors = summarise_errors(hand_table(), MeasuredClock::wall,
                                               [](const ValidatedRow& row) { return row.pattern == "b"; });
  EXPECT_EQ(errors.rows, 3u);
  EXPECT_NEAR(errors.median_abs_error, 0.1, 1e-12);
  EXPECT_NEAR(errors.p90_abs_error, 0.1 + 0.8 * 0.18, 1e-12);
}

TEST(ValidationSummary, UsesTheClockAskedFor) {
  const ValidationSummary summary = summarise(hand_table(), MeasuredClock::device);
  EXPECT_DOUBLE_EQ(summary.errors.median_abs_error, 1);
}

TEST(ValidationSummary, CountsRowsInTheirBandOfThoseThatHaveOne) {
  std::vector<ValidatedRow> rows = hand_table();
  for (ValidatedRow& row : rows) row.band = {.off = 0.1, .sets = 9, .count = 9};
  // In the band: 100/100, 80/76, 160/176 (176 = 1.1 · 160), 50/50.
  EXPECT_DOUBLE_EQ(summarise(rows, MeasuredClock::wall).band_coverage.value(), 4.0 / 6);
  rows.back().band = {};
  EXPECT_DOUBLE_EQ(summarise(rows, MeasuredClock::wall).band_coverage.value(), 3.0 / 5);
  for (ValidatedRow& row : rows) row.band = {};
  EXPECT_FALSE(summarise(rows, MeasuredClock::wall).band_coverage.has_value());
}

TEST(Choices, OrderPatternsByTheirBestRow) {
  const std::vector<ValidatedRow> rows{hand_row("a", 1, 10, 30), hand_row("b", 1, 20, 20),
                                       hand_row("c", 1, 30, 25), hand_row("a", 1, 40, 50)};
  const std::vector<Choice> choices = choices_of(rows, MeasuredClock::wall);
  ASSERT_EQ(choices.size(), 1u);
  EXPECT_EQ(choices[0].measured_order, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(choices[0].predicted_order, (std::vector<std::string>{"b", "c", "a"}));
  EXPECT_EQ(choices[0].pairs(), 3u);
  EXPECT_EQ(choices[0].pairs_in_order(), 1u);  // b before c
  EXPECT_DOUBLE_EQ(summarise(rows, MeasuredClock::wall).pairs_in_order.value(), 1.0 / 3);
}

TEST(Choices, AreMadeWithinAFileShapeAndNumberOfGpus) {
  std::vector<ValidatedRow> rows = hand_table();
  const std::vector<Choice> choices = choices_of(rows, MeasuredClock::wall);
  ASSERT_EQ(choices.size(), 2u);
  EXPECT_EQ(choices[0].picked, &rows[1]);
  EXPECT_EQ(choices[0].best, &rows[0]);
  EXPECT_EQ(choices[1].picked, &rows[3]);
  EXPECT_EQ(choices[1].best, &rows[2]);
  rows[1].problem.values.give("gpus", 2);
  rows[4].file = 1;
  EXPECT_TRUE(choices_of(rows, MeasuredClock::wall).empty());
  EXPECT_FALSE(summarise(rows, MeasuredClock::wall).max_regret.has_value());
}

TEST(ReadMeasured, RefusesDamageInColumnsThatNoPredictionNeeds) {
  expect_csv_refused(kHeader + replaced(kRow, "1.66e-03", "1.66e-"),
                     {"file.csv:2", "relative_error", "1.66e-"});
  expect_csv_refused(kHeader + replaced(kRow, "1.66e-03", "nan"), {"file.csv:2", "relative_error", "nan"});
  expect_csv_refused(kHeader + replaced(kRow, "1.66e-03", "5"),
                     {"file.csv:2", "relative_error", "'5'", "0.1"});
  const std::string paced = replaced(kHeader, "flush_bytes", "flush_bytes,pace_gb_per_s");
  expect_csv_refused(paced + replaced(kRow, "256000000", "256000000,x"), {"file.csv:2", "pace_gb_per_s"});
}

TEST(ReadMeasured, RefusesACopyOfARowButNotASecondMeasurementOrOtherKnobs) {
  expect_csv_refused(kHeader + kRow + kRow, {"file.csv:3", "repeats file.csv:2"});
  EXPECT_EQ(parse_measured(kHeader + kRow + replaced(kRow, "30.5", "31"), "f.csv").rows.size(), 2u);
  EXPECT_EQ(parse_measured(kHeader + kRow + replaced(kRow, "256000000", "0"), "f.csv").rows.size(), 2u);
}

TEST(ReadMeasured, TakesAByteOrderMarkAndWindowsLineEnds) {
  EXPECT_EQ(parse_measured("\xEF\xBB\xBF" + kRemark + kHeader + kRow, "f.csv").rows.size(), 1u);
  const std::string row = kRow.substr(0, kRow.size() - 1) + "\r\n";
  EXPECT_EQ(parse_measured("\xEF\xBB\xBF" + kHeader + row, "f.csv").rows.size(), 1u);
}

}  // namespace
}  // namespace tritax
