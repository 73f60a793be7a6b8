#include "model/cost/matmul_power.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

namespace tritax {
namespace {

// 100 of 700 W idle, 1 GHz under load, the voltage flat below 0.9 GHz.
Gpu gpu_at(double limit_w) {
  Gpu gpu;
  gpu.boost_clock_ghz = 2;
  gpu.load_power_w = 700;
  gpu.power_limit_w = limit_w;
  gpu.idle_power_w = 100;
  gpu.flat_voltage_ghz = 0.9;
  return gpu;
}

TEST(MatmulPower, TheBudgetIsWhatTheLimitLeavesAboveTheIdlePower) {
  EXPECT_EQ(power_budget(gpu_at(700)), 1);
  EXPECT_DOUBLE_EQ(power_budget(gpu_at(400)), 0.5);
  EXPECT_DOUBLE_EQ(power_budget(gpu_at(1000)), 1.5);
  EXPECT_EQ(power_budget(Gpu{}), 1);
}

TEST(MatmulPower, TheClockIsTheCubeRootOfTheBudgetUntilTheVoltageFallsNoFurther) {
  EXPECT_DOUBLE_EQ(clock_of_draw_ghz(gpu_at(700), 1), 1);
  EXPECT_DOUBLE_EQ(clock_of_draw_ghz(gpu_at(580), 1), std::cbrt(0.8));
  EXPECT_DOUBLE_EQ(clock_of_draw_ghz(gpu_at(400), 1), 0.5 / 0.81);
  EXPECT_DOUBLE_EQ(clock_of_draw_ghz(gpu_at(400), 2), 0.25 / 0.81);
}

// Energies stand for what they took under the limit at which they were measured.
TEST(MatmulPower, TheDrawOfAByteDoesNotDependOnTheLimit) {
  EXPECT_DOUBLE_EQ(draw_per_byte(gpu_at(250), 60), draw_per_byte(gpu_at(700), 60));
  EXPECT_DOUBLE_EQ(draw_per_byte(gpu_at(700), 60), 60e-3 / (4 * 600.0));
}

RC_GTEST_PROP(MatmulPower, WhatRunsAtTheClockOfItsDrawTakesTheBudget, ()) {
  const double limit_w = *rc::gen::inRange(101, 2000);
  const double draw = *rc::gen::inRange(1, 1000) / 100.0;
  const Gpu gpu = gpu_at(limit_w);
  const double clock_ghz = clock_of_draw_ghz(gpu, draw);
  const double drawn = clock_ghz * draw_of_cycle(gpu, clock_ghz) * draw;
  RC_ASSERT(std::abs(drawn / power_budget(gpu) - 1) < 1e-12);
  RC_ASSERT(clock_of_draw_ghz(gpu_at(limit_w + 1), draw) > clock_ghz);
}

}  // namespace
}  // namespace tritax
