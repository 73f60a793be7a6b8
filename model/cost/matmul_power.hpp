// Computes the power draw of matmuls and the clock that the power limit allows (sim/engine_clock.cpp has the
// whole law).
//
// Of a limit P, the idle power S does not depend on the clock. The rest is relative to the rest under the
// limit P0 (`load_power`), at which the load clocks were measured:
//
//   budget = (P - S) / (P0 - S)
//
// A matmul of `clk` cycles draws g(f) · draw / clk at the clock f, with
//
//   draw = share of the GPU's peak / load_clock^3 + operand_energy · bytes of A,     in clk / GHz^3
//   g(f) = f^3 while the voltage follows the clock, v^2 f below the clock v at which the voltage stops
//   falling
//
// Dynamic power is activity times frequency times voltage squared. Measured power of A40, A100, H100 and H200
// consists of a baseline, a part linear in the clock, and a part that grows faster above a transition
// frequency (A. Afzal et al., arXiv:2607.00819). Example: S = 0.1 P0, v = 0.9 of the clock f0 at P0. Half the
// limit leaves a budget of 0.44: below 0.9^3, so f = 0.44 / 0.81 f0 = 0.55 f0; a cube alone would give 0.79
// f0.
#pragma once

#include "model/cost/matmul_cost.hpp"

namespace tritax {

// The clock follows the draw in steps of this share of the clock.
inline constexpr double kClockStep = 0.02;

// Watts above the idle power at which the load clocks were measured.
double load_budget_w(const Gpu& gpu);

// The budget of the law above; 1 without a limit.
double power_budget(const Gpu& gpu);

// The clock at which work with `draw` per clk uses the whole budget.
double clock_of_draw_ghz(const Gpu& gpu, double draw);

// The same as a multiple of a clock c at which the work uses the share `draw` of the budget; the voltage is
// constant below `flat` times c.
double clock_of_draw(double draw, double flat);

// g(f) / f: cost of a cycle at that clock, per draw.
double draw_of_cycle(const Gpu& gpu, double clock_ghz);

// Draw per byte for an energy in pJ/B at the boost clock.
double draw_per_byte(const Gpu& gpu, double pj_per_byte);

// Draw of a matmul, without operands that miss the caches; 0 if the energies are unknown.
double matmul_draw(const Gpu& gpu, DType dtype, const MatmulCost& cost);

// The highest clock of matmuls, at any draw.
double light_clock_ghz(const Gpu& gpu, DType dtype);

}  // namespace tritax
