// The fit finds the rates of links and ports from rows of a few copies.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <tbb/parallel_for.h>

#include <algorithm>
#include <string>
#include <vector>

#include "model/machine/parameters.hpp"
#include "sim/study/calibrate/calibrate.hpp"
#include "sim/study/calibrate/microbench_model.hpp"

namespace tritax {
namespace {

constexpr double kShare = 0.775;

// Of before the rows: 4 GPUs on a switch, links of 369 GB/s that few copies do not fill.
Machine base_machine() {
  Machine machine = read_machine(std::string(TRITAX_SOURCE_DIR) + "/model/machine/uncalibrated/h200-4.toml");
  machine.fabric.arbitration_spread = 0;
  machine.fabric.store_efficiency = 0.772;
  machine.fabric.store_idle_share = kShare;
  return machine;
}

std::string link_row(const std::string& name, int workgroups, double gb_per_s) {
  constexpr double kBytes = 268435456;
  const double time_us = kBytes / gb_per_s * 1e-3;
  return fmt::format(
      "remote,{},traffic=one-pair;gpus=2;workgroups={};threads=256;bytes={:.0f},{},GB/s,{},{},{},10\n", name,
      workgroups, kBytes, gb_per_s, time_us, time_us, time_us);
}

// Stores that fill links, as `machine` would have measured them.
std::string simulated_rows(const Machine& machine) {
  std::vector<std::pair<Microbench, MicrobenchRow>> wanted;
  for (const Microbench& bench : microbenchmarks(machine.gpus_per_node, machine.gpu.cu_count())) {
    for (const MicrobenchRow& row : bench.rows) {
      const bool data = row.group == "matrix" || row.group == "stores" || row.number("threads") == 256;
      const bool stores = row.name == "store" || row.name == "copy-out" || row.name == "tile-store";
      const bool ways = row.text("traffic") == "one-pair" || row.text("traffic") == "all-rotated";
      if (row.group != "local" && data && stores && ways && row.number("workgroups") >= 32) {
        wanted.emplace_back(bench, row);
      }
    }
  }
  std::vector<std::string> lines(wanted.size());
  tbb::parallel_for(std::size_t{0}, wanted.size(), [&](std::size_t i) {
    const auto& [bench, row] = wanted[i];
    const double time_us = simulated_time_us(bench.schedule(), bench, row, machine);
    lines[i] = fmt::format("{},{},{},{},{},{},{},{},10\n", row.group, row.name, row.parameter_text(),
                           row.value(time_us, 0, 0), row.unit, time_us, time_us, time_us);
  });
  return fmt::format("{}", fmt::join(lines, ""));
}

// A row as slow as no link is.
std::string slow_row(const std::string& group_and_name, const std::string& parameters, double bytes) {
  constexpr double kSlow = 100;  // GB/s
  const double time_us = bytes / kSlow * 1e-3;
  return fmt::format("{},{};bytes={:.0f},{},GB/s,{},{},{},10\n", group_and_name, parameters, bytes, kSlow,
                     time_us, time_us, time_us);
}

Calibration calibrate_links(const Machine& base, const std::string& rows) {
  const std::string text = "# a day, a node\n" + std::string(kMicrobenchColumns) + "\n" + rows;
  return calibrate(base, parse_microbench(text, "links.csv", base.gpus_per_node, base.gpu.cu_count()),
                   "mine");
}

bool determined(const Calibration& calibration, const std::string& key) {
  const auto found = std::find_if(calibration.parameters.begin(), calibration.parameters.end(),
                                  [&](const CalibratedParameter& p) { return p.key == key; });
  return found != calibration.parameters.end() && found->determined;
}

class FlatLink : public testing::TestWithParam<double> {};

// Any number of workgroups gets the same: the link has that rate, and nobody leaves any of it idle.
TEST_P(FlatLink, HasTheRateOfItsRowsWhateverTheBaseSays) {
  constexpr double kClose = 0.005;
  const double rate = GetParam();
  std::string rows;
  for (const std::string name : {"store", "copy-out"}) {
    for (const int workgroups : {32, 64, 128}) rows += link_row(name, workgroups, rate);
  }
  for (const double share : {0.0, kShare, 0.9}) {
    Machine base = base_machine();
    base.fabric.store_idle_share = share;
    const Fabric fabric = calibrate_links(base, rows).machine.fabric;
    EXPECT_EQ(fabric.store_idle_share, 0) << share;
    EXPECT_NEAR(fabric.store_efficiency * fabric.link_raw_gb_per_s, rate, kClose * rate) << share;
  }
}

INSTANTIATE_TEST_SUITE_P(Rates, FlatLink, testing::Values(300.0, 330.0, 369.0, 400.0));

TEST(CalibrateLinks, OneRowTellsTheLinkAndNotWhatFewLeaveIdleOfIt) {
  constexpr double kClose = 0.005;
  constexpr double kRate = 350;
  constexpr int kWorkgroups = 64;
  const Calibration found = calibrate_links(base_machine(), link_row("store", kWorkgroups, kRate));
  EXPECT_TRUE(determined(found, "fabric.store_efficiency"));
  EXPECT_FALSE(determined(found, "fabric.store_idle_share"));
  const Fabric& fabric = found.machine.fabric;
  EXPECT_EQ(fabric.store_idle_share, kShare);
  const double idle = 1 + kShare / (1 - kShare) / kWorkgroups;
  EXPECT_NEAR(fabric.store_efficiency * fabric.link_raw_gb_per_s / idle, kRate, kClose * kRate);
}

// A share of 0.88 that is known to 9 % may stand for 4 lanes or for any number.
TEST(CalibrateLinks, AShareNearOneMustTellWhatItStandsFor) {
  constexpr double kOthers = 7.3;
  constexpr double kLittle = 0.01;
  constexpr double kMuch = 0.025;
  for (const double scatter : {kLittle, kMuch}) {
    std::string rows;
    for (const int workgroups : {64, 128}) {
      const double rate = 400 / (1 + kOthers / workgroups);
      rows += link_row("store", workgroups, rate * (1 + scatter));
      rows += link_row("copy-out", workgroups, rate * (1 - scatter));
    }
    const Calibration found = calibrate_links(base_machine(), rows);
    EXPECT_TRUE(determined(found, "fabric.store_efficiency"));
    EXPECT_EQ(determined(found, "fabric.store_idle_share"), scatter == kLittle);
    const double share = scatter == kLittle ? kOthers / (1 + kOthers) : kShare;
    EXPECT_NEAR(found.machine.fabric.store_idle_share, share, 0.005);
  }
}

class Port : public testing::TestWithParam<double> {};

// One that is above the links is none: the rows tell that it does not limit them.
TEST_P(Port, IsFoundBehindLinksThatFewCopiesDoNotFill) {
  constexpr double kClose = 0.005;
  Machine truth = base_machine();
  truth.fabric.store_egress_gb_per_s = truth.fabric.store_ingress_gb_per_s = GetParam();
  Machine base = truth;
  base.fabric.store_efficiency = 0.7;
  base.fabric.store_idle_share = 0;
  set_parameter_value(base, "fabric.store_egress", 320);
  set_parameter_value(base, "fabric.store_ingress", 320);
  const Calibration found = calibrate_links(base, simulated_rows(truth));
  const Fabric& fabric = found.machine.fabric;
  const double link = truth.fabric.store_efficiency * fabric.link_raw_gb_per_s;
  const double port = std::min(GetParam(), link);
  EXPECT_NEAR(fabric.store_efficiency * fabric.link_raw_gb_per_s, link, kClose * link);
  EXPECT_NEAR(fabric.store_idle_share, kShare, 0.01);
  EXPECT_NEAR(fabric.store_egress_gb_per_s, port, kClose * port);
  EXPECT_LT(found.residual, kClose);
}

INSTANTIATE_TEST_SUITE_P(Rates, Port, testing::Values(280.0, 345.0, 400.0));

// On 4 GPUs. What fills links is predicted from what links and ports were fitted to, and counts as well.
TEST(CalibrateLinks, TheResidualCountsWhatFillsLinksAndNothingElseThatIsNotFitted) {
  std::string fitted;
  for (const int workgroups : {32, 64, 128}) fitted += link_row("store", workgroups, 350);
  const auto residual = [&](const std::string& more) {
    return calibrate_links(base_machine(), fitted + more).residual;
  };
  constexpr double kBytes = 268435456;
  const std::string in_matrix = ";workgroups=32;tile=128x128;columns=8192";
  const std::vector<std::string> count{
      slow_row("matrix,copy-out", "traffic=all-rotated;gpus=2" + in_matrix, kBytes),
      slow_row("stores,tile-store", "traffic=all-rotated;gpus=2" + in_matrix, 62914560),
      slow_row("remote,tile-store", "traffic=one-pair;gpus=2;workgroups=32;tile=128x128", 62914560),
      slow_row("remote,copy-out", "traffic=all-rotated;gpus=2;workgroups=64;threads=256", kBytes),
      slow_row("remote,store", "traffic=all-in-order;gpus=4;workgroups=64;threads=256", kBytes),
      slow_row("remote,load", "traffic=all-rotated;gpus=2;workgroups=64;threads=256", kBytes)};
  const std::vector<std::string> do_not{
      slow_row("remote,copy-out", "traffic=all-rotated;gpus=2;workgroups=64;threads=1024", kBytes),
      slow_row("remote,copy-out", "traffic=all-rotated;gpus=2;workgroups=16;threads=256", kBytes),
      slow_row("local,copy-out", "traffic=local;gpus=1;workgroups=64;threads=256", kBytes)};
  for (const std::string& row : count) EXPECT_GT(residual(row), 0.2) << row;
  for (const std::string& row : do_not) EXPECT_LT(residual(row), 0.01) << row;
}

}  // namespace
}  // namespace tritax
