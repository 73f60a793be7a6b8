// Requests for equal operands coalesce: neighbours in lock step ask less of the L2.
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "model/core/quantile.hpp"
#include "model/microbench/read_microbench.hpp"
#include "model/microbench/schedules.hpp"
#include "sim/simulate.hpp"
#include "tests/workloads/gemm_all_scatter.hpp"

namespace tritax {
namespace {

constexpr std::int32_t kDepth = 4096;
constexpr int kTilesEach = 5;

double kernels_ns(const Schedule& schedule, const Machine& machine, bool warm = false) {
  SimulationOptions options;
  options.warm = warm;
  return simulate(schedule, machine, options).ranks.front().kernels_ns;
}

double kernels_ns(const Machine& machine, std::int32_t m, std::int32_t n, Stagger stagger,
                  bool warm = false) {
  return kernels_ns(staggered_tiles(m, n, kDepth, machine.gpu.cu_count(), kTilesEach, stagger), machine,
                    warm);
}

Machine without_coalescing(Machine machine) {
  machine.interpreter.l2_coalescing_ns = 0;
  return machine;
}

// Measured on an H100: 157 and 127 us, 196 us far apart (scenarios/measured/h100-1-stagger.csv).
TEST(LockStep, ProductsThatLeaveItTakeLonger) {
  const Machine machine = find_machine("h100-4");
  const double together_ns = kernels_ns(machine, 128, 128, Stagger::none);
  const double apart_ns = kernels_ns(machine, 128, 128, Stagger::each);
  EXPECT_GT(apart_ns, 1.15 * together_ns);
  EXPECT_GT(kernels_ns(machine, 128, 128, Stagger::far), apart_ns);
}

// What begins later has 11 more K steps than the 320 of all.
TEST(LockStep, ColumnsOneAfterTheOtherStayInIt) {
  const Machine machine = find_machine("h100-4");
  const double together_ns = kernels_ns(machine, 64, 256, Stagger::none);
  EXPECT_LT(kernels_ns(machine, 64, 256, Stagger::between_columns), 1.05 * together_ns);
  EXPECT_GT(kernels_ns(machine, 64, 256, Stagger::between_rows), 1.2 * together_ns);
}

// All rows of that microbenchmark, none of which is fitted. Tiles of 64x256 that start apart are the worst:
// on an H200 up to 22 % too slow.
TEST(LockStep, PredictsWhatStartsApartCost) {
  std::vector<double> errors;
  for (const auto& [machine_name, file] :
       {std::pair{"h100-4", "h100-1-stagger.csv"}, std::pair{"h200-4", "h200-1-stagger.csv"}}) {
    const Machine machine = find_machine(machine_name);
    const MicrobenchTable table =
        read_microbench({std::string(TRITAX_SOURCE_DIR) + "/scenarios/measured/" + file},
                        machine.gpus_per_node, machine.gpu.cu_count());
    ASSERT_EQ(table.rows.size(), 15U);
    for (const MeasuredMicrobench& row : table.rows) {
      const double us = kernels_ns(table.benches[row.bench].schedule(), machine) / 1000;
      errors.push_back(std::abs(us / row.time_us - 1));
      EXPECT_LT(errors.back(), 0.25) << machine_name << " " << table.row(row).name << " "
                                     << table.row(row).parameter_text();
    }
  }
  EXPECT_LT(quantile(errors, 0.5), 0.05);
  EXPECT_LT(quantile(errors, 0.9), 0.12);
}

TEST(LockStep, IsAllTheSameToAnL2ThatServesEachAloneFastEnough) {
  Machine machine = without_coalescing(find_machine("h100-4"));
  machine.gpu.l2_gb_per_s = 20000;
  const double together_ns = kernels_ns(machine, 128, 128, Stagger::none);
  EXPECT_LT(kernels_ns(machine, 128, 128, Stagger::each), 1.08 * together_ns);
}

// All paces are equal, all start at once, and the L2 is far below what they ask for: it serves a port once
// for what several of its compute units share.
TEST(LockStep, ASlowL2ServesAPortOnceForWhatItsComputeUnitsShare) {
  Machine machine = find_machine("h100-4");
  machine.gpu.matmul_spread = 0;
  machine.gpu.workgroup_dispatch_ns = 0;
  machine.gpu.l2_gb_per_s = 1000;
  const double alone_ns = kernels_ns(without_coalescing(machine), 128, 128, Stagger::none, true);
  const double together_ns = kernels_ns(machine, 128, 128, Stagger::none, true);
  // 66 pairs of compute units on 24 ports; 12 rows of tiles, one column after the other.
  std::set<std::pair<int, int>> rows, columns;  // with their port
  for (int cu = 0; cu < 132; ++cu) {
    const int port = cu / 2 * 24 / 66;
    rows.insert({port, cu % 12});
    columns.insert({port, cu / 12});
  }
  const double asked = static_cast<double>(rows.size() + columns.size()) / (2 * 132);
  EXPECT_LT(asked, 0.7);
  EXPECT_NEAR(together_ns / alone_ns, asked, 0.02);
}

// In groups of one row tile neighbours share rows of A, and columns of B are shared by workgroups 16 apart.
// Measured on an H100: 642 us, and 415 if those who share columns are neighbours
// (scenarios/measured/h100-1-ports.csv).
TEST(LockStep, NeighboursThatShareWhatComesFromMemoryAreFaster) {
  const Machine machine = find_machine("h100-4");
  GemmKnobs knobs;
  knobs.tile_m = 64;
  knobs.tile_n = 256;
  knobs.tile_k = 128;
  knobs.waves = 4;
  knobs.pipeline = Pipeline::overlapped;
  knobs.group_m = 1;
  knobs.gemm_cus = machine.gpu.cu_count();
  knobs.comm_cus = machine.gpu.cu_count();
  Schedule schedule = build("bulk-synchronous", {3920, 3904, 15488, DType::fp8, 1}, machine, knobs);
  const double given_ns = kernels_ns(schedule, machine);
  std::vector<Workgroup>& workgroups = schedule.kernels.front().workgroups;
  ASSERT_EQ(workgroups.size(), 132U);
  std::vector<Workgroup> by_column;
  for (std::size_t column = 0; column < 16; ++column) {
    for (std::size_t i = column; i < workgroups.size(); i += 16) by_column.push_back(workgroups[i]);
  }
  workgroups = by_column;
  EXPECT_GT(given_ns, 1.15 * kernels_ns(schedule, machine));
}

TEST(LockStep, GivesTheSameBitsOnEveryRun) {
  const Machine machine = find_machine("h100-4");
  EXPECT_EQ(kernels_ns(machine, 128, 128, Stagger::each), kernels_ns(machine, 128, 128, Stagger::each));
}

}  // namespace
}  // namespace tritax
