#include "sim/study/calibrate/calibrate.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "model/core/error.hpp"
#include "model/machine/parameters.hpp"
#include "model/machine/write_machine.hpp"
#include "model/microbench/schedules.hpp"
#include "sim/study/calibrate/fit.hpp"
#include "sim/study/calibrate/microbench_model.hpp"

namespace tritax {
namespace {

constexpr int kGpus = 2;
constexpr int kComputeUnits = 40;
constexpr double kBoostGhz = 1.8;
constexpr double kSpread = 0.03;
constexpr double kLightGhz = 1.8;
constexpr double kLoadGhz = 1.5;
constexpr double kSustainedGhz = 1.3;

// No requests coalesce: what changes where they do is in lock_step_test.cpp.
Machine uncalibrated() {
  Machine machine = read_machine(std::string(TRITAX_SOURCE_DIR) + "/model/machine/uncalibrated/h200-4.toml");
  machine.gpu.l2_gb_per_s = machine.gpu.l2_lock_step_gb_per_s;
  machine.gpu.l2_lock_step_gb_per_s = 0;
  machine.interpreter.l2_coalescing_ns = 0;
  machine.gpu.l2_ports = 0;
  return machine;
}

// On a switch, ports and links limit the same traffic: the rows show the lower limit.
// A small node whose every fitted parameter is its own, so that none is right by chance.
Machine true_machine() {
  Machine machine = uncalibrated();
  machine.gpus_per_node = kGpus;
  machine.gpu.cus_per_xcd = kComputeUnits;
  machine.gpu.boost_clock_ghz = kBoostGhz;
  for (MatrixRate& rate : machine.gpu.matrix) {
    rate.load_clock_ghz = 1.5;
    rate.issue_efficiency = 0.9;
  }
  machine.fabric.arbitration_spread = 0;
  const std::vector<std::pair<std::string, double>> values{{"gpu.cu_l2_bandwidth", 110},
                                                           {"gpu.matmul_step_overhead", 300},
                                                           {"gpu.matmul_least_step", 490},
                                                           {"gpu.stage_op_time", 700},
                                                           {"gpu.passed_op_time", 450},
                                                           {"gpu.sent_signal_time", 400},
                                                           {"gpu.meet_time", 550},
                                                           {"gpu.specialised_copy_efficiency", 0.8},
                                                           {"gpu.matmul_spread", kSpread},
                                                           {"gpu.matrix.bf16.light_clock", 1.8},
                                                           {"gpu.matrix.fp16.light_clock", 1.8},
                                                           {"gpu.matrix.fp8.light_clock", 1.8},
                                                           {"gpu.matmul_op_time", 400},
                                                           {"gpu.cold_start_time", 900},
                                                           {"gpu.cold_code_time", 1300},
                                                           {"gpu.cu_store_bandwidth", 55},
                                                           {"gpu.cu_load_bandwidth", 50},
                                                           {"gpu.cu_remote_store_bandwidth", 43},
                                                           {"gpu.cu_remote_load_bandwidth", 37},
                                                           {"gpu.cu_remote_atomic_bandwidth", 28},
                                                           {"gpu.store_op_time", 300},
                                                           {"gpu.copy_op_time", 500},
                                                           {"gpu.guarded_copy_time", 350},
                                                           {"gpu.guarded_copy_bandwidth", 30},
                                                           {"gpu.guarded_copy_least_time", 750},
                                                           {"gpu.busy_copy_time", 250},
                                                           {"gpu.stage_bandwidth", 40},
                                                           {"gpu.matrix.fp8.stage_bandwidth", 25},
                                                           {"gpu.accumulate_bandwidth", 60},
                                                           {"gpu.hbm_bandwidth", 1300},
                                                           {"gpu.hbm_write_bandwidth", 1000},
                                                           {"gpu.dirty_share", 0.3},
                                                           {"gpu.stage_latency", 1300},
                                                           {"gpu.ragged_copy_time", 900},
                                                           {"fabric.split_line_bytes", 12},
                                                           {"fabric.sector_end_bytes", 15},
                                                           {"fabric.ragged_end_bytes", 50},
                                                           {"gpu.matrix.bf16.sustained_clock", kSustainedGhz},
                                                           {"gpu.matrix.fp16.sustained_clock", kSustainedGhz},
                                                           {"gpu.matrix.fp8.sustained_clock", kSustainedGhz},
                                                           {"gpu.release_time", 640},
                                                           {"gpu.poll_load_time", 600},
                                                           {"gpu.poll_atomic_time", 900},
                                                           {"fabric.load_round_trip", 750},
                                                           {"fabric.signal_round_trip", 1100},
                                                           {"fabric.store_efficiency", 330 / 478.116},
                                                           {"fabric.load_efficiency", 310 / 478.116},
                                                           {"fabric.atomic_efficiency", 0.6},
                                                           {"fabric.store_egress", 330},
                                                           {"fabric.store_ingress", 330},
                                                           {"fabric.load_egress", 310},
                                                           {"fabric.load_ingress", 310},
                                                           {"host.launch_call_time", 3600},
                                                           {"host.launch_turn_time", 1500},
                                                           {"host.kernel_gap", 900},
                                                           {"host.launch_latency", 5500},
                                                           {"host.synchronize_time", 5500},
                                                           {"host.graph_launch_call_time", 4200},
                                                           {"host.graph_node_gap", 1400},
                                                           {"host.barrier_time", 700},
                                                           {"gpu.flag_same_die_latency", 250},
                                                           {"gpu.flag_cross_die_latency", 250},
                                                           {"fabric.flag_latency", 800}};
  for (const auto& [key, value] : values) set_parameter_value(machine, key, value);
  return machine;
}

// Rows that something is fitted to; the others only cost time here.
bool is_wanted(const MicrobenchRow& row) {
  if (row.group == "contention" || row.group == "arbitration" || row.number("threads") == 1024) return false;
  if (row.text("traffic") == "all-in-order") return false;
  return row.name != "atomic-add" || row.group == "remote";
}

double true_time_us(const Microbench& bench, const MicrobenchRow& row, const Machine& machine) {
  if (row.group == "flag") {  // half a poll on average
    const double latency =
        row.name == "round trip on one GPU" ? machine.gpu.flag_same_die_ns : machine.fabric.flag_latency_ns;
    return 2 * (machine.gpu.release_ns + latency + machine.gpu.poll_load_ns / 2);
  }
  if (row.group == "chain" && (row.name == "wait" || row.name == "barrier")) {  // half a poll here too
    const auto workgroups = static_cast<int>(row.number("workgroups"));
    const Schedule signalled = chain(1024, workgroups, 1, ChainEnd::signal);
    const double known_ns = machine.gpu.flag_cross_die_ns + machine.gpu.poll_load_ns / 2;
    const int meetings = row.name == "wait" ? 1 : 2;
    return simulated_time_us(signalled, bench, row, machine) +
           1e-3 * (known_ns + meetings * machine.interpreter.meet_ns);
  }
  return simulated_time_us(bench.schedule(), bench, row, machine);
}

// The rows of a file, as `machine` would have measured them.
std::vector<std::string> true_rows(const Machine& machine) {
  std::vector<std::pair<Microbench, MicrobenchRow>> wanted;
  for (const Microbench& bench : microbenchmarks(kGpus, kComputeUnits)) {
    for (const MicrobenchRow& row : bench.rows) {
      if (is_wanted(row)) wanted.emplace_back(bench, row);
    }
  }
  std::vector<std::string> lines(wanted.size());
  tbb::parallel_for(std::size_t{0}, wanted.size(), [&](std::size_t i) {
    const auto& [bench, row] = wanted[i];
    const double time = true_time_us(bench, row, machine);
    const double clock_ghz = row.number("workgroups") == 1    ? kLightGhz
                             : row.text("sustained") == "yes" ? kSustainedGhz
                                                              : kLoadGhz;
    const double value = row.value(time, clock_ghz, kSpread);
    lines[i] = fmt::format("{},{},{},{},{},{},{},{},10\n", row.group, row.name, row.parameter_text(), value,
                           row.unit, time, time, time);
  });
  return lines;
}

const std::vector<std::string>& stored_rows() {
  static const std::vector<std::string> rows = true_rows(true_machine());
  return rows;
}

MicrobenchTable table_of(const std::function<bool(const std::string&)>& wanted) {
  std::string text = "# a day, a node\n" + std::string(kMicrobenchColumns) + "\n";
  for (const std::string& row : stored_rows()) {
    if (wanted(row)) text += row;
  }
  return parse_microbench(text, "true.csv", kGpus, kComputeUnits);
}

MicrobenchTable whole_table() {
  return table_of([](const std::string&) { return true; });
}

// The same node as one would describe it before measuring: other values, and none of those that a machine
// file may leave out.
Machine wrong_machine(double factor) {
  Machine machine = uncalibrated();
  machine.gpus_per_node = kGpus;
  machine.gpu.cus_per_xcd = kComputeUnits;
  machine.fabric.arbitration_spread = 0;
  for (Parameter& parameter : machine.parameters) {
    if (parameter.key == "gpu.cus_per_xcd") parameter.value = kComputeUnits;
  }
  for (const std::string key :
       {"gpu.cu_store_bandwidth", "gpu.cu_load_bandwidth", "gpu.cu_remote_store_bandwidth",
        "gpu.cu_remote_load_bandwidth", "gpu.cu_remote_atomic_bandwidth", "host.launch_call_time",
        "host.launch_latency", "host.graph_launch_call_time", "host.graph_node_gap", "gpu.hbm_bandwidth",
        "gpu.release_time", "gpu.poll_load_time", "fabric.load_round_trip"}) {
    set_parameter_value(machine, key, factor * parameter_value(machine, key));
  }
  return machine;
}

const CalibratedParameter& find(const Calibration& calibration, const std::string& key) {
  const auto found = std::find_if(calibration.parameters.begin(), calibration.parameters.end(),
                                  [&](const CalibratedParameter& p) { return p.key == key; });
  EXPECT_NE(found, calibration.parameters.end()) << key;
  return *found;
}

class CalibrateFrom : public testing::TestWithParam<double> {};

TEST_P(CalibrateFrom, AWrongMachineFindsTheTrueOne) {
  Machine wrong = wrong_machine(GetParam());
  wrong.gpu.boost_clock_ghz = kBoostGhz;  // from the data sheet; no rows tell it
  for (MatrixRate& rate : wrong.gpu.matrix) rate.load_clock_ghz = std::min(rate.load_clock_ghz, kBoostGhz);
  const Calibration calibration = calibrate(wrong, whole_table(), "mine");
  const Machine truth = true_machine();
  constexpr double kClose = 0.02;
  // No row of this node fills the L2, any number of its workgroups fills a link, ports for stores are as fast
  // as the links, and the table leaves `arbitration` out.
  const std::vector<std::string> unseen{"gpu.l2_bandwidth",     "fabric.store_latency",
                                        "fabric.store_egress",  "fabric.store_idle_share",
                                        "fabric.store_ingress", "fabric.arbitration_spread"};
  for (const CalibratedParameter& p : calibration.parameters) {
    const bool expected = std::find(unseen.begin(), unseen.end(), p.key) == unseen.end();
    EXPECT_EQ(p.determined, expected) << p.key;
    if (!expected) continue;
    const double wanted = parameter_value(truth, p.key);
    EXPECT_NEAR(parameter_value(calibration.machine, p.key), wanted, kClose * wanted) << p.key;
    EXPECT_LT(p.residual, kClose) << p.key;
    EXPECT_LT(p.standard_error, kLargestStandardError) << p.key;
    EXPECT_GT(p.rows, 0) << p.key;
  }
  EXPECT_LT(calibration.residual, kClose);
}

INSTANTIATE_TEST_SUITE_P(Factors, CalibrateFrom, testing::Values(0.6, 1.5));

// A bench that runs after long load is simulated at the clock of then.
TEST(MicrobenchModel, SimulatesSustainedBenchesAtTheSustainedClock) {
  Machine machine = true_machine();
  for (const Microbench& bench : microbenchmarks(kGpus, kComputeUnits)) {
    const MicrobenchRow& row = bench.rows.front();
    if (row.group != "clock" || row.text("dtype") != "bf16" || row.number("size") == 0) continue;
    Machine slower = machine;
    set_parameter_value(slower, "gpu.matrix.bf16.sustained_clock", kSustainedGhz / 2);
    const Schedule schedule = bench.schedule();
    const double time = simulated_time_us(schedule, bench, row, machine);
    const double slower_time = simulated_time_us(schedule, bench, row, slower);
    if (row.text("sustained") == "yes") {
      EXPECT_GT(slower_time, 1.5 * time) << row.parameter_text();
    } else {
      EXPECT_EQ(slower_time, time) << row.parameter_text();
    }
  }
}

// Otherwise what moves would count twice.
TEST(Calibrate, ALoadClockOfWholeProductsLeavesNoEnergies) {
  Machine base = wrong_machine(1);
  set_parameter_value(base, "gpu.operand_energy", 70);
  set_parameter_value(base, "gpu.miss_energy", 150);
  const Calibration calibration =
      calibrate(base, table_of([](const std::string& row) { return row.rfind("clock,", 0) == 0; }), "mine");
  EXPECT_NEAR(parameter_value(calibration.machine, "gpu.matrix.bf16.load_clock"), kLoadGhz, 0.01);
  EXPECT_FALSE(calibration.machine.gpu.knows_energies());
  EXPECT_EQ(calibration.machine.gpu.miss_pj_per_byte, 0);
}

TEST(Calibrate, ParametersWithoutRowsKeepTheirValues) {
  const Machine base = uncalibrated();
  const Machine small = wrong_machine(1);
  const Calibration calibration = calibrate(
      small, table_of([](const std::string& row) { return row.rfind("launch,st", 0) == 0; }), "mine");
  for (const std::string key : {"gpu.cu_store_bandwidth", "gpu.matrix.bf16.load_clock", "fabric.flag_latency",
                                "gpu.stage_bandwidth", "host.graph_node_gap", "host.barrier_time"}) {
    const CalibratedParameter& p = find(calibration, key);
    EXPECT_FALSE(p.determined) << key;
    EXPECT_EQ(p.value, p.old_value) << key;
    EXPECT_EQ(parameter_value(calibration.machine, key), parameter_value(small, key)) << key;
  }
  EXPECT_TRUE(find(calibration, "host.launch_call_time").determined);
  const auto kept = std::find_if(calibration.machine.parameters.begin(), calibration.machine.parameters.end(),
                                 [](const Parameter& p) { return p.key == "gpu.cu_store_bandwidth"; });
  EXPECT_NE(kept->how, Provenance::calibrated);
  EXPECT_EQ(base.parameters.size(), calibration.machine.parameters.size());
}

// Ports that let everything through: with two GPUs they would hide the link.
TEST(Calibrate, FindsWhatFewWorkgroupsLeaveIdleOfAFullLink) {
  constexpr double kIdle = 0.8;
  Machine truth = true_machine();
  Fabric& fabric = truth.fabric;
  fabric.store_egress_gb_per_s = fabric.store_ingress_gb_per_s = fabric.link_raw_gb_per_s;
  fabric.store_idle_share = kIdle;
  std::string text = "# a day, a node\n" + std::string(kMicrobenchColumns) + "\n";
  for (const std::string& row : true_rows(truth)) {
    if (row.find("traffic=one-pair") != std::string::npos) text += row;
  }
  const Calibration found =
      calibrate(truth, parse_microbench(text, "pair.csv", kGpus, kComputeUnits), "mine");
  EXPECT_TRUE(find(found, "fabric.store_idle_share").determined);
  EXPECT_NEAR(found.machine.fabric.store_idle_share, kIdle, 0.02);
  EXPECT_NEAR(found.machine.fabric.store_efficiency, fabric.store_efficiency, 0.01);
}

TEST(Calibrate, TakesTheSpreadOfAFullLinkAsMeasured) {
  std::string text = "# a day, a node\n" + std::string(kMicrobenchColumns) + "\n";
  for (const Microbench& bench : microbenchmarks(kGpus, kComputeUnits)) {
    const MicrobenchRow& row = bench.rows.front();
    if (row.group != "arbitration") continue;
    text += fmt::format("{},{},{},{},{},9,9,9,10\n", row.group, row.name, row.parameter_text(),
                        row.number("gpus") > 1 ? 0.31 : 0.17, row.unit);  // 0.17: of a memory, not used
  }
  const Calibration found =
      calibrate(wrong_machine(1), parse_microbench(text, "link.csv", kGpus, kComputeUnits), "mine");
  EXPECT_TRUE(find(found, "fabric.arbitration_spread").determined);
  EXPECT_EQ(found.machine.fabric.arbitration_spread, 0.31);
}

// Short kernels that take 0.9 us more after a flush with one tile and 1.4 with the other: known to 22 %.
TEST(Calibrate, WhatTheBaseLeavesOutNeedOnlyBeToldFromNothing) {
  std::string text = "# a day, a node\n" + std::string(kMicrobenchColumns) + "\n";
  for (const Microbench& bench : microbenchmarks(kGpus, kComputeUnits)) {
    const MicrobenchRow& row = bench.rows.front();
    if (row.group != "cold") continue;
    const double longer_us = row.number("flush") == 0 ? 0 : row.name == "64x128" ? 0.9 : 1.4;
    text += fmt::format("{},{},{},{},{},{},9,12,10\n", row.group, row.name, row.parameter_text(),
                        9 + longer_us, row.unit, 9 + longer_us);
  }
  Machine base = wrong_machine(1);
  const auto cold_start = [&] {
    const Calibration found =
        calibrate(base, parse_microbench(text, "cold.csv", kGpus, kComputeUnits), "mine");
    const CalibratedParameter& p = find(found, "gpu.cold_start_time");
    EXPECT_GT(p.standard_error, kLargestStandardError);
    EXPECT_EQ(p.determined, found.machine.interpreter.cold_start_ns != base.interpreter.cold_start_ns);
    return found.machine.interpreter.cold_start_ns;
  };
  EXPECT_EQ(base.interpreter.cold_start_ns, 0);
  EXPECT_NEAR(cold_start(), 1100, 100);
  set_parameter_value(base, "gpu.cold_start_time", 700);
  EXPECT_EQ(cold_start(), 700);
}

// Tiles whose operands need more of the L2 than the base says that there is.
TEST(Calibrate, AValueThatContradictsTheRowsMovesToWhereItNoLongerDoes) {
  Machine base = wrong_machine(1);
  base.gpu.l2_gb_per_s = 1000;
  const Calibration calibration =
      calibrate(base, table_of([](const std::string& row) { return row.rfind("matmul", 0) == 0; }), "mine");
  const CalibratedParameter& p = find(calibration, "gpu.l2_bandwidth");
  EXPECT_TRUE(p.determined);
  EXPECT_NE(p.remark.find("bound"), std::string::npos);
  EXPECT_EQ(p.standard_error, std::numeric_limits<double>::infinity());
  EXPECT_GT(calibration.machine.gpu.l2_gb_per_s, 2000);
  EXPECT_LT(calibration.machine.gpu.l2_gb_per_s, true_machine().gpu.l2_gb_per_s);
}

TEST(Calibrate, WritesAMachineFileThatReadsAsWhatWasFitted) {
  const Calibration calibration = calibrate(
      wrong_machine(1), table_of([](const std::string& row) { return row.find("matmul") == 0; }), "mine");
  const Machine again = parse_machine(write_machine(calibration.machine, "head"), "written.toml");
  EXPECT_EQ(again.name, "mine");
  ASSERT_EQ(again.parameters.size(), calibration.machine.parameters.size());
  for (std::size_t i = 0; i < again.parameters.size(); ++i) {
    EXPECT_EQ(again.parameters[i].key, calibration.machine.parameters[i].key);
  }
  for (const CalibratedParameter& p : calibration.parameters) {
    if (!p.determined) continue;
    EXPECT_EQ(parameter_value(again, p.key), parameter_value(calibration.machine, p.key)) << p.key;
    const auto entry = std::find_if(again.parameters.begin(), again.parameters.end(),
                                    [&](const Parameter& parameter) { return parameter.key == p.key; });
    EXPECT_EQ(entry->how, Provenance::calibrated);
    EXPECT_NE(entry->source.find("tritax calibrate, a day, a node"), std::string::npos);
  }
}

TEST(Calibrate, EqualInputGivesEqualOutput) {
  const auto text = [] {
    const auto part = [](const std::string& row) { return row.find("tile-s") != std::string::npos; };
    return write_machine(calibrate(wrong_machine(1), table_of(part), "mine").machine, "");
  };
  EXPECT_EQ(text(), text());
}

TEST(Calibrate, MeasurementsThatContradictEachOtherAreRefused) {
  const std::string rows = "# a day\n" + std::string(kMicrobenchColumns) +
                           "\nclock,128x256,dtype=bf16;k=16384;workgroups=1,1.2,GHz,1,1,1,9\n"
                           "clock,128x256,dtype=bf16;k=16384;workgroups=40,1.5,GHz,1,1,1,9\n";
  try {
    calibrate(wrong_machine(1), parse_microbench(rows, "odd.csv", kGpus, kComputeUnits), "mine");
    FAIL() << "a load clock above the boost clock was accepted";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("odd.csv"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("load_clock"), std::string::npos);
  }
}

}  // namespace
}  // namespace tritax
