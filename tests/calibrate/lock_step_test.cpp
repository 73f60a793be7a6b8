// Requests for operands that coalesce: matmuls in lock step ask less of the L2.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "model/machine/parameters.hpp"
#include "model/microbench/schedules.hpp"
#include "model/patterns/pattern.hpp"
#include "sim/calibrate/calibrate.hpp"
#include "sim/simulate.hpp"

namespace tritax {
namespace {

constexpr std::int32_t kDepth = 4096;
constexpr int kTilesEach = 5;

double kernels_ns(const Machine& machine, std::int32_t m, std::int32_t n, Stagger stagger) {
  const Schedule schedule = staggered_tiles(m, n, kDepth, machine.gpu.cu_count(), kTilesEach, stagger);
  return simulate(schedule, machine).ranks.front().kernels_ns;
}

// An H100 whose requests coalesce as a profiler counted them (scenarios/measured/h100-1-coalescing.csv), with
// the bandwidth of the L2 that calibration then finds (docs/accuracy.md).
Machine coalescing_h100() {
  Machine machine = find_machine("h100-4");
  machine.gpu.l2_coalescing_ns = 200;
  machine.gpu.l2_coalesced_share = 0.4;
  machine.gpu.l2_gb_per_s = 8670;
  return machine;
}

Machine without_coalescing(Machine machine) {
  machine.gpu.l2_coalescing_ns = 0;
  return machine;
}

// Measured on an H100: 157 and 127 us, 196 us far apart (scenarios/measured/h100-1-stagger.csv).
TEST(LockStep, ProductsThatLeaveItTakeLonger) {
  const Machine machine = coalescing_h100();
  const double together_ns = kernels_ns(machine, 128, 128, Stagger::none);
  const double apart_ns = kernels_ns(machine, 128, 128, Stagger::each);
  EXPECT_GT(apart_ns, 1.15 * together_ns);
  EXPECT_GT(kernels_ns(machine, 128, 128, Stagger::far), apart_ns);
}

// What begins later has 11 more K steps than the 320 of all.
TEST(LockStep, ColumnsOneAfterTheOtherStayInIt) {
  const Machine machine = coalescing_h100();
  const double together_ns = kernels_ns(machine, 64, 256, Stagger::none);
  EXPECT_LT(kernels_ns(machine, 64, 256, Stagger::between_columns), 1.05 * together_ns);
  EXPECT_GT(kernels_ns(machine, 64, 256, Stagger::between_rows), 1.2 * together_ns);
}

TEST(LockStep, IsAllTheSameToAnL2ThatServesEachAloneFastEnough) {
  Machine machine = without_coalescing(coalescing_h100());
  machine.gpu.l2_gb_per_s = 20000;
  const double together_ns = kernels_ns(machine, 128, 128, Stagger::none);
  EXPECT_LT(kernels_ns(machine, 128, 128, Stagger::each), 1.08 * together_ns);
}

// A law by times alone: requests that coalesce fully at any distance leave an L2 that each fills alone.
TEST(LockStep, ASlowL2ServesThoseTogetherUpToTheirShareOfRequests) {
  Machine machine = coalescing_h100();
  machine.gpu.matmul_spread = 0;
  machine.gpu.l2_gb_per_s = 1000;  // far below what they ask for
  const double alone_ns = kernels_ns(without_coalescing(machine), 128, 128, Stagger::none);
  machine.gpu.l2_coalescing_ns = 1e9;
  const double together_ns = kernels_ns(machine, 128, 128, Stagger::none);
  // All but the first of the requests for rows of A by 11 and for columns of B by 12.
  const double a = kTilesEach * 11, b = kTilesEach * 12;
  const double asked = ((1 + (a - 1) * 0.4) / a + (1 + (b - 1) * 0.4) / b) / 2;
  EXPECT_NEAR(together_ns / alone_ns, asked, 0.05 * asked);
}

TEST(LockStep, GivesTheSameBitsOnEveryRun) {
  const Machine machine = coalescing_h100();
  EXPECT_EQ(kernels_ns(machine, 128, 128, Stagger::each), kernels_ns(machine, 128, 128, Stagger::each));
}

// docs/accuracy.md has these figures.
TEST(LockStep, IsFoundBehindWhatTilesThatRunTogetherSee) {
  const std::string root = TRITAX_SOURCE_DIR;
  Machine base = read_machine(root + "/model/machine/uncalibrated/h100-4.toml");
  base.gpu.l2_coalescing_ns = coalescing_h100().gpu.l2_coalescing_ns;
  base.gpu.l2_coalesced_share = coalescing_h100().gpu.l2_coalesced_share;
  std::vector<std::string> files;
  for (const char* name : {"h100-4-microbench.csv", "h100-4-microbench-2.csv", "h100-2-beside.csv",
                           "h100-1-passed.csv", "h100-1-step.csv", "h100-1-stagger.csv", "h100-2-cold.csv",
                           "h100-2-chain.csv", "h100-2-launch.csv"}) {
    files.push_back(root + "/scenarios/measured/" + name);
  }
  const Calibration found =
      calibrate(base, read_microbench(files, base.gpus_per_node, base.gpu.cu_count()), "h100-4");
  const Machine without = find_machine("h100-4");
  EXPECT_NEAR(found.machine.gpu.l2_gb_per_s, 8670, 50);
  EXPECT_NEAR(found.machine.gpu.l2_lock_step_gb_per_s, without.gpu.l2_gb_per_s, 50);
  // Nothing else depends on it.
  EXPECT_NEAR(found.machine.gpu.cu_l2_bytes_per_clk, without.gpu.cu_l2_bytes_per_clk, 0.1);
  EXPECT_NEAR(found.machine.host.kernel_gap_ns, without.host.kernel_gap_ns, 5);
  const auto of_l2 = [](const CalibratedParameter& p) { return p.key == "gpu.l2_bandwidth"; };
  EXPECT_EQ(std::count_if(found.parameters.begin(), found.parameters.end(), of_l2), 1);
}

}  // namespace
}  // namespace tritax
