// The issue rate of compute units follows their clock; loads queue behind stores; memory writes cost more
// than reads.
#include <gtest/gtest.h>

#include <cmath>

#include "hand_machine.hpp"
#include "model/machine/machine.hpp"
#include "model/machine/parameters.hpp"
#include "sim/simulate.hpp"
#include "tests/workloads/problems.hpp"

namespace tritax {
namespace {

using hand::Draft;
using hand::kExact;
using hand::kStepNs;
using hand::kTileBytes;
using hand::Observed;
using hand::run;

constexpr double kCopyGbPerS = 8;
constexpr double kCopyNs = kTileBytes / kCopyGbPerS;

// Half the boost clock as soon as one matrix core works.
Machine slowed_machine() {
  Machine machine = hand::machine();
  MatrixRate& rate = machine.gpu.matrix[static_cast<std::size_t>(DType::fp16)];
  rate.load_clock_ghz = rate.light_clock_ghz = 0.5;
  machine.gpu.cu_load_gb_per_s = machine.gpu.cu_store_gb_per_s = kCopyGbPerS;
  return machine;
}

void copy(Draft& draft, std::int32_t row) {
  draft.builder.copy(draft.c, Draft::tile(row), 0, draft.a, Draft::tile(row).row, 0, 0);
}

TEST(Clock, OfCopiesIsThatOfTheMatrixCoresWhileTheseWork) {
  Draft draft(1);
  const auto gemm = draft.gemm_kernel("gemm", 0);
  draft.builder.workgroup(gemm);
  for (int t = 0; t < 4; ++t) draft.matmul(t);
  const auto beside = draft.data_kernel("beside", 0);
  draft.builder.workgroup(beside);
  copy(draft, 10);
  copy(draft, 11);
  const auto after = draft.data_kernel("after", 0);
  draft.builder.workgroup(after);
  copy(draft, 12);
  draft.builder.launch(0, gemm, 0);
  draft.builder.launch(0, beside, 1);
  draft.builder.launch(0, after, 0);
  draft.builder.host(0, HostOpKind::device_synchronize);
  const Observed out = run(draft.builder.finish(), slowed_machine());
  EXPECT_NEAR(out.seen.kernels.at(0).length_ns(), 4 * kStepNs / 0.5, kExact);
  EXPECT_NEAR(out.seen.kernels.at(1).length_ns(), 2 * kCopyNs / 0.5, kExact);
  EXPECT_NEAR(out.seen.kernels.at(2).length_ns(), kCopyNs, kExact);
}

TEST(Clock, AfterLongLoadIsTheSustainedOneWhereEnergiesAreUnknown) {
  Machine machine = hand::machine();
  EXPECT_EQ(sustained(machine).gpu.rate(DType::fp16).load_clock_ghz, 1);  // none is known
  machine.gpu.matrix[static_cast<std::size_t>(DType::fp16)].sustained_clock_ghz = 0.8;
  EXPECT_EQ(sustained(machine).gpu.rate(DType::fp16).load_clock_ghz, 0.8);
  EXPECT_EQ(machine.gpu.rate(DType::fp16).load_clock_ghz, 1);
}

constexpr std::int32_t kCus = 8;
constexpr std::int32_t kTilesEach = 4;
// The clock follows the draw in steps of 2 %, of which it takes the cube root.
constexpr double kClockStep = 0.008;

// Alone, matrix cores that are all busy run at 1 GHz of 2.
Machine machine_with_energies() {
  Machine machine = hand::machine();
  machine.gpu.boost_clock_ghz = 2;
  machine.gpu.power_limit_w = 1;
  machine.gpu.operand_pj_per_byte = 1e-9;
  return machine;
}

// Bytes of A, or of all operands, in a cycle of all compute units.
constexpr double kABytesPerClk = kCus * kTileBytes / kStepNs;

// pJ/B with which so many bytes a cycle draw `power` times the limit at 1 GHz.
double energy_of(double power, double bytes_per_clk, const Machine& machine) {
  const double boost = machine.gpu.boost_clock_ghz;
  return 1e3 * power * boost * boost * machine.gpu.power_limit_w / bytes_per_clk;
}

void launch_gemm(Draft& draft, std::int32_t workgroups) {
  const auto gemm = draft.gemm_kernel("gemm", 0);
  for (std::int32_t w = 0; w < workgroups; ++w) {
    draft.builder.workgroup(gemm);
    for (std::int32_t t = 0; t < kTilesEach; ++t) draft.matmul(w * kTilesEach + t);
  }
  draft.builder.launch(0, gemm);
}

double gemm_clock_ghz(const Machine& machine, std::int32_t workgroups) {
  Draft draft(1);
  launch_gemm(draft, workgroups);
  draft.builder.host(0, HostOpKind::device_synchronize);
  return kTilesEach * kStepNs / run(draft.builder.finish(), machine).seen.kernels.at(0).length_ns();
}

TEST(Clock, FollowsTheCubeRootOfWhatTheMatrixCoresDraw) {
  const Machine machine = machine_with_energies();
  EXPECT_NEAR(gemm_clock_ghz(machine, kCus), 1, kClockStep);
  EXPECT_NEAR(gemm_clock_ghz(machine, kCus / 2), std::cbrt(2.0), kClockStep * std::cbrt(2.0));
  EXPECT_NEAR(gemm_clock_ghz(machine, 1), 2,
              kExact);  // 8 times the power is left, which the boost clock fits
}

TEST(Clock, FallsWithTheTrafficOfOperands) {
  Machine machine = machine_with_energies();
  machine.gpu.operand_pj_per_byte = energy_of(7, kABytesPerClk, machine);
  EXPECT_NEAR(gemm_clock_ghz(machine, kCus), 0.5, kClockStep * 0.5);
}

// Every tile of A is read once and so misses; the one tile of B hits but the first time.
TEST(Clock, FallsWithWhatMissesTheCaches) {
  Machine machine = machine_with_energies();
  machine.gpu.miss_pj_per_byte = energy_of(7, kABytesPerClk, machine);
  machine.gpu.xcds = 1;
  machine.gpu.cus_per_xcd = kCus;
  const double clock_ghz = gemm_clock_ghz(machine, kCus);
  // In tiles of A a matmul, first and last.
  const auto clock_at = [](double missed) { return std::cbrt(1 / (1 + 7 * missed)); };
  EXPECT_GT(clock_ghz, (1 - kClockStep) * clock_at(1 + 1.0 / kCus));
  EXPECT_LT(clock_ghz, (1 + kClockStep) * clock_at(1 + 1.0 / (kCus * kTilesEach)));
}

// What is left above the idle power is 0.4 of what was. While the voltage falls with the clock that is its
// cube, below it is in proportion.
TEST(Clock, FollowsThePowerLimitDownToTheIdlePower) {
  Machine known = machine_with_energies();
  known.gpu.load_power_w = 700;
  known.gpu.power_limit_w = 340;
  known.gpu.idle_power_w = 100;
  Machine unknown = hand::machine();
  unknown.gpu.load_power_w = 700;
  unknown.gpu.power_limit_w = 340;
  unknown.gpu.idle_power_w = 100;
  for (Machine machine : {known, unknown}) {
    EXPECT_NEAR(gemm_clock_ghz(machine, kCus), std::cbrt(0.4), kClockStep);
    machine.gpu.flat_voltage_ghz = 0.5;
    EXPECT_NEAR(gemm_clock_ghz(machine, kCus), std::cbrt(0.4), kClockStep);
    machine.gpu.flat_voltage_ghz = 0.9;
    EXPECT_NEAR(gemm_clock_ghz(machine, kCus), 0.4 / (0.9 * 0.9), kClockStep);
    machine.gpu.power_limit_w = 700;
    EXPECT_NEAR(gemm_clock_ghz(machine, kCus), 1, kClockStep);
  }
}

// Sustained products of 8192^3 at limits that nvidia-smi allows for an H100. Boards at a third of their limit
// lose about two thirds (facebookexperimental/triton PR 2023: B200 at 500 of 1400 W, 617 TFLOP/s for 1600 to
// 2174).
TEST(Clock, OfAShippedMachineLosesAtAThirdOfThePowerWhatBoardsLose) {
  Machine machine = sustained(find_machine("h100-4"));
  const Problem problem = library_gemm_of(8192, 8192, 8192, DType::bf16);
  const auto time_ns = [&](double limit_w) {
    set_parameter_value(machine, "gpu.power_limit", limit_w);
    const Pattern& pattern = find_pattern(library_gemm(), "library", "test");
    return simulate(build_schedule(pattern, problem, machine, {}), machine).makespan_ns;
  };
  const double full_ns = time_ns(700);
  const double share = full_ns / time_ns(250);
  EXPECT_GT(share, 617.0 / 2174);
  EXPECT_LT(share, 0.45);
  double before_ns = full_ns;
  for (const double limit_w : {600.0, 500.0, 400.0, 300.0, 200.0}) {
    const double now_ns = time_ns(limit_w);
    EXPECT_GT(now_ns, before_ns) << limit_w;
    before_ns = now_ns;
  }
}

// The mean draw over a run that rests in between is what the sustained limit allows.
TEST(Clock, AfterLongLoadFollowsTheMeanDrawOfARun) {
  constexpr double kSustainedGhz = 0.8;
  constexpr double kShare = kSustainedGhz * kSustainedGhz * kSustainedGhz;
  Machine machine = machine_with_energies();
  machine.gpu.matrix[static_cast<std::size_t>(DType::fp16)].sustained_clock_ghz = kSustainedGhz;
  machine.gpu.cu_load_gb_per_s = machine.gpu.cu_store_gb_per_s = kCopyGbPerS;
  for (const int copies : {0, 1, 2, 16}) {
    Draft draft(1);
    launch_gemm(draft, kCus);
    const auto rest = draft.data_kernel("rest", 0);
    draft.builder.workgroup(rest);
    for (int i = 0; i < copies; ++i) copy(draft, 40 + i);
    draft.builder.launch(0, rest);
    draft.builder.host(0, HostOpKind::device_synchronize);
    const Schedule schedule = draft.builder.finish();
    const double brief_ns = simulate(schedule, machine).makespan_ns;
    const Observed out = run(schedule, sustained(machine));
    const double clock_ghz = kTilesEach * kStepNs / out.seen.kernels.at(0).length_ns();
    const double mean = clock_ghz * clock_ghz * kTilesEach * kStepNs / out.result.makespan_ns;
    if (copies < 16) {
      EXPECT_NEAR(mean, kShare, 0.01 * kShare) << copies;
    } else {  // rests enough
      EXPECT_EQ(out.result.makespan_ns, brief_ns);
    }
  }
}

TEST(Poll, GoesOutBehindStoresWhereTheyShareAQueue) {
  Machine machine = slowed_machine();
  machine.gpu.poll_load_ns = 100;
  Draft draft(1);
  const auto flags = draft.builder.flags("set", 1);
  const auto set = draft.data_kernel("set", 0);
  draft.builder.workgroup(set);
  draft.signal(flags, 0, 0);
  const auto kernel = draft.data_kernel("copy", 0);
  draft.builder.workgroup(kernel);
  copy(draft, 0);
  draft.wait(flags, 0);
  draft.builder.launch(0, set);
  draft.builder.launch(0, kernel);
  draft.builder.host(0, HostOpKind::device_synchronize);
  const Schedule schedule = draft.builder.finish();
  EXPECT_NEAR(run(schedule, machine).seen.kernels.at(1).length_ns(), kCopyNs, kExact);
  machine.gpu.loads_queue_behind_stores = true;
  EXPECT_NEAR(run(schedule, machine).seen.kernels.at(1).length_ns(), kCopyNs + 100, kExact);
  machine.gpu.loads_queue_behind_stores = false;
  machine.gpu.loads_wait_for_stores = true;
  EXPECT_NEAR(run(schedule, machine).seen.kernels.at(1).length_ns(), kCopyNs + 100, kExact);
}

double kernel_ns(OpKind kind, const Machine& machine) {
  Draft draft(1);
  const auto kernel = draft.data_kernel("move", 0);
  draft.builder.workgroup(kernel);
  if (kind == OpKind::load) draft.builder.load(draft.a, Draft::tile(0), 0);
  if (kind == OpKind::store) draft.builder.store(draft.c, Draft::tile(0), 0);
  if (kind == OpKind::copy) copy(draft, 0);
  draft.builder.launch(0, kernel);
  draft.builder.host(0, HostOpKind::device_synchronize);
  return run(draft.builder.finish(), machine).seen.kernels.at(0).length_ns();
}

TEST(Load, IntoAccumulatorsTakesTheirTimeBesides) {
  Machine machine = slowed_machine();
  EXPECT_NEAR(kernel_ns(OpKind::load, machine), kCopyNs, kExact);
  machine.interpreter.accumulate_gb_per_s = 2 * kCopyGbPerS;
  EXPECT_NEAR(kernel_ns(OpKind::load, machine), 1.5 * kCopyNs, kExact);
  EXPECT_NEAR(kernel_ns(OpKind::copy, machine), kCopyNs, kExact);
}

TEST(Memory, WritesAtTheirOwnRate) {
  Machine machine = hand::machine();
  machine.gpu.hbm_gb_per_s = 10;
  machine.gpu.hbm_write_gb_per_s = 5;
  EXPECT_NEAR(kernel_ns(OpKind::load, machine), kTileBytes / 10, kExact);
  EXPECT_NEAR(kernel_ns(OpKind::store, machine), kTileBytes / 5, kExact);
  EXPECT_NEAR(kernel_ns(OpKind::copy, machine), kTileBytes / 10 + kTileBytes / 5, kExact);
}

}  // namespace
}  // namespace tritax
