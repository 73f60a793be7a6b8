// Energies from clocks: what the law of sim/engine_clock.cpp gives is found again, and what it cannot be is
// left.
#include "sim/study/calibrate/power.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <vector>

#include "model/machine/parameters.hpp"
#include "model/microbench/cases.hpp"
#include "sim/simulate.hpp"
#include "sim/study/calibrate/microbench_model.hpp"

namespace tritax {
namespace {

constexpr int kGpuCount = 2;
constexpr int kCuCount = 40;
constexpr double kSustainedShare = 0.6;

Machine node() {
  Machine machine = read_machine(std::string(TRITAX_SOURCE_DIR) + "/model/machine/uncalibrated/h200-4.toml");
  machine.gpus_per_node = kGpuCount;
  machine.gpu.cus_per_xcd = kCuCount;
  return machine;
}

struct Truth {
  double operand_pj = 60, miss_pj = 120, load_ghz = 1.7;
};

// The clock at which a product of this time fills `share` of the power limit.
double clock_ghz(const Observation& row, const Machine& machine, const Truth& truth, double share) {
  const MicrobenchRow& made = *row.row;
  const auto size = [&](const char* name) {
    return static_cast<double>(made.number("size") > 0 ? made.number("size") : made.number(name));
  };
  const DType dtype = parse_dtype(made.text("dtype"), "");
  const double macs = size("m") * size("n") * size("k");
  const double tile_m = std::stod(made.name.substr(0, made.name.find('x')));
  const double tile_n = std::stod(made.name.substr(made.name.find('x') + 1));
  const double a = bytes_of(dtype) * macs / tile_n;
  const double operands = a + bytes_of(dtype) * macs / tile_m;
  const double missed = operands * (1 - simulate(row.bench->schedule(), machine).l2_hit_fraction);
  const double peak = machine.gpu.cu_count() * machine.gpu.rate(dtype).flop_per_clk_per_cu;
  const double per_pj = 1e-3 / (std::pow(machine.gpu.boost_clock_ghz, 2) * machine.gpu.power_limit_w);
  const double work = 2 * macs / peak / std::pow(truth.load_ghz, 3) +
                      per_pj * (truth.operand_pj * a + truth.miss_pj * missed);
  return std::sqrt(share * row.time_us * 1e3 / work);  // f^2 work / time = share
}

class Power : public testing::Test {
 protected:
  void SetUp() override {
    benches_ = microbenchmarks(kGpuCount, kCuCount);
    const Machine machine = node();
    for (const Microbench& bench : benches_) {
      const MicrobenchRow& row = bench.rows.front();
      const bool product = row.group == "power" || (row.group == "clock" && !row.text("sustained").empty());
      if (!product) continue;
      Observation made{table_.size(), &bench, &row, 0, 0};
      made.time_us = simulated_time_us(bench.schedule(), bench, row, machine);
      made.value = clock_ghz(made, machine, {}, bench.sustained ? kSustainedShare : 1);
      table_.push_back(made);
    }
  }
  std::vector<Microbench> benches_;
  std::vector<Observation> table_;
};

TEST_F(Power, TheEnergiesThatMadeTheClocksAreFound) {
  Machine machine = node();
  const auto found = estimate_power(table_, machine);
  EXPECT_FALSE(found.empty());
  constexpr double kClose = 1e-3;
  const Truth truth;
  EXPECT_NEAR(machine.gpu.operand_pj_per_byte, truth.operand_pj, kClose * truth.operand_pj);
  EXPECT_NEAR(machine.gpu.miss_pj_per_byte, truth.miss_pj, kClose * truth.miss_pj);
  for (const DType dtype : {DType::bf16, DType::fp16, DType::fp8}) {
    const MatrixRate& rate = machine.gpu.rate(dtype);
    EXPECT_NEAR(rate.load_clock_ghz, truth.load_ghz, kClose) << name_of(dtype);
    EXPECT_NEAR(rate.sustained_clock_ghz, truth.load_ghz * std::cbrt(kSustainedShare), kClose)
        << name_of(dtype);
  }
  for (const FittedUnknown& one : found) EXPECT_FALSE(one.rows.empty());
}

TEST_F(Power, ClocksThatDoNotFallWithTrafficGiveNoEnergies) {
  for (Observation& row : table_) row.value = 1.5;
  Machine machine = node();
  EXPECT_TRUE(estimate_power(table_, machine).empty());
  EXPECT_FALSE(machine.gpu.knows_energies());
}

// A law that every term fits, of too few rows to tell.
TEST_F(Power, AsManyRowsAsTermsTellNothing) {
  std::vector<Observation> few;
  for (const DType dtype : {DType::bf16, DType::fp16, DType::fp8}) {
    const auto of_dtype = [&](const Observation& row) {
      return row.row->text("sustained") == "no" && row.row->text("dtype") == name_of(dtype);
    };
    few.push_back(*std::find_if(table_.begin(), table_.end(), of_dtype));
  }
  const auto power = [](const Observation& row) { return row.row->group == "power"; };
  std::copy_if(table_.begin(), table_.end(), std::back_inserter(few), power);
  few.resize(5);
  Machine machine = node();
  EXPECT_TRUE(estimate_power(few, machine).empty());
}

TEST_F(Power, WithoutALimitOrWithoutPowerRowsNothingIsFound) {
  Machine unlimited = node();
  unlimited.gpu.power_limit_w = 0;
  EXPECT_TRUE(estimate_power(table_, unlimited).empty());
  std::erase_if(table_, [](const Observation& row) { return row.row->group == "power"; });
  Machine machine = node();
  EXPECT_TRUE(estimate_power(table_, machine).empty());
}

}  // namespace
}  // namespace tritax
