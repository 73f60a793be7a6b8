// The shipped h200-4, h200-8 and h100-4 are what `tritax calibrate` makes of data sheets and the stored
// microbenchmarks. The two of H200 take minutes, in which they go through the code of h100-4 once more: they
// run where TRITAX_ALL_MACHINES is set, as after a change of what calibrates, of the engine, or of one of
// their files.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "model/machine/parameters.hpp"
#include "sim/study/calibrate/calibrate.hpp"

namespace tritax {
namespace {

// What a lower power limit does is no part of the fit: its rows were all measured at the full one. Shipped
// machines have it besides, and their energies are what the idle power leaves of the fitted. Nor is fp64, of
// which microbenchmarks have no rows: its clocks are assumed to be those of fp16.
bool is_fitted(const Parameter& parameter) {
  return !parameter.key.starts_with("gpu.matrix.fp64.") && parameter.key != "gpu.load_power" &&
         parameter.key != "gpu.idle_power" && parameter.key != "gpu.flat_voltage_clock";
}

void keep_fitted(std::vector<Parameter>& parameters) {
  parameters.erase(std::stable_partition(parameters.begin(), parameters.end(), is_fitted), parameters.end());
}

// What `tritax calibrate` makes of the data sheet of `name` and the stored `files`, against what is shipped.
Calibration expect_calibrated_from(const std::string& name, const std::vector<std::string>& files) {
  const std::string root = TRITAX_SOURCE_DIR;
  const Machine base = read_machine(root + "/model/machine/uncalibrated/" + name + ".toml");
  Machine shipped = find_machine(name);
  keep_fitted(shipped.parameters);
  std::vector<std::string> paths;
  for (const std::string& file : files) paths.push_back(root + "/scenarios/measured/" + file);
  const MicrobenchTable table = read_microbench(paths, base.gpus_per_node, base.gpu.cu_count());
  const double active = 1 - shipped.gpu.idle_power_w / shipped.gpu.load_power_w;
  Calibration calibrated = calibrate(base, table, name);
  Machine made = calibrated.machine;
  keep_fitted(made.parameters);
  constexpr double kRounding = 1e-3;  // compilers round differently, and the fits stop where little is gained
  EXPECT_EQ(made.parameters.size(), shipped.parameters.size());
  for (std::size_t i = 0; i < std::min(made.parameters.size(), shipped.parameters.size()); ++i) {
    const Parameter& a = made.parameters[i];
    const Parameter& b = shipped.parameters[i];
    EXPECT_EQ(a.key, b.key);
    EXPECT_EQ(a.unit, b.unit) << a.key;
    EXPECT_EQ(a.source, b.source) << a.key;
    EXPECT_EQ(a.how, b.how) << a.key;
    const bool energy = a.key == "gpu.operand_energy" || a.key == "gpu.miss_energy";
    EXPECT_NEAR(energy ? active * a.value : a.value, b.value, kRounding * b.value) << a.key;
    EXPECT_NEAR(a.residual, b.residual, 0.01 * b.residual + 1e-4) << a.key;
  }
  return calibrated;
}

TEST(ShippedMachine, H200x4IsCalibratedFromTheStoredMicrobenchmarks) {
  if (std::getenv("TRITAX_ALL_MACHINES") == nullptr) GTEST_SKIP() << "TRITAX_ALL_MACHINES=1 runs it";
  expect_calibrated_from(
      "h200-4",
      {"h200-4-microbench.csv", "h200-4-microbench-3.csv", "h200-4-microbench-4.csv",
       "h200-4-microbench-5.csv", "h200-2-stores.csv", "h200-1-fp8-staging.csv", "h200-2-beside.csv",
       "h200-1-passed.csv", "h200-1-step.csv", "h200-2-cold.csv", "h200-2-chain.csv", "h200-2-launch.csv"});
}

TEST(ShippedMachine, H100x4IsCalibratedFromTheStoredMicrobenchmarks) {
  const Calibration made = expect_calibrated_from(
      "h100-4", {"h100-4-microbench.csv", "h100-4-microbench-2.csv", "h100-2-beside.csv", "h100-1-passed.csv",
                 "h100-1-step.csv", "h100-2-cold.csv", "h100-2-chain.csv", "h100-2-launch.csv"});
  // What the rows tell is what tiles that run together get; the L2 behind the coalescer stands in the data
  // sheet.
  const Machine base =
      read_machine(std::string(TRITAX_SOURCE_DIR) + "/model/machine/uncalibrated/h100-4.toml");
  EXPECT_EQ(made.machine.gpu.l2_gb_per_s, base.gpu.l2_gb_per_s);
  EXPECT_GT(made.machine.gpu.l2_lock_step_gb_per_s, 12000);
  const auto count_of = [&](const std::string& key) {
    return std::ranges::count(made.parameters, key, &CalibratedParameter::key);
  };
  EXPECT_EQ(count_of("gpu.l2_lock_step_bandwidth"), 1);
  EXPECT_EQ(count_of("gpu.l2_bandwidth"), 0);
}

TEST(ShippedMachine, H200x8IsCalibratedFromTheStoredMicrobenchmarks) {
  if (std::getenv("TRITAX_ALL_MACHINES") == nullptr) GTEST_SKIP() << "TRITAX_ALL_MACHINES=1 runs it";
  expect_calibrated_from("h200-8", {"h200-8-microbench.csv"});
}

}  // namespace
}  // namespace tritax
