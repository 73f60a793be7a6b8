// What matmuls draw, and so which clock the power limit leaves them (sim/engine_clock.cpp has the whole law).
//
// Of a limit P the idle power S is drawn whatever the clock. The rest counts in units of what was left where
// the load clocks were measured, under the limit P0 (`load_power`):
//
//   budget = (P - S) / (P0 - S)
//
// A matmul of `clk` cycles draws g(f) · draw / clk at the clock f, with
//
//   draw = share of the GPU's peak / load_clock^3 + operand_energy · bytes of A,     in clk / GHz^3
//   g(f) = f^3 while the voltage follows the clock, v^2 f below the clock v from which it falls no further
//
// Dynamic power is activity times frequency times voltage squared. That measured power of A40, A100, H100 and
// H200 is a baseline, a part linear in the clock, and a part that grows faster above a transition frequency:
// A. Afzal et al., arXiv:2607.00819. Example: S = 0.1 P0, v = 0.9 of the clock f0 at P0. Half the limit
// leaves a budget of 0.44: below 0.9^3, so f = 0.44 / 0.81 f0 = 0.55 f0, where a cube alone would leave 0.79
// f0.
#pragma once

#include "model/cost/matmul_cost.hpp"

namespace tritax {

// The clock follows the draw in steps of this share of it.
inline constexpr double kClockStep = 0.02;

// Watts under which the load clocks were measured, besides the idle power.
double load_budget_w(const Gpu& gpu);

// What the power limit leaves, over what it left where the load clocks were measured; 1 without a limit.
double power_budget(const Gpu& gpu);

// The clock at which something that draws `draw`, per clk, takes the whole budget.
double clock_of_draw_ghz(const Gpu& gpu, double draw);

// The same as a multiple of some clock c, which takes the share `draw` of the budget; the voltage falls no
// further below `flat` times c.
double clock_of_draw(double draw, double flat);

// g(f) / f: what a cycle costs at that clock, as part of its draw.
double draw_of_cycle(const Gpu& gpu, double clock_ghz);

// Of an energy in pJ/B at the boost clock: draw per byte.
double draw_per_byte(const Gpu& gpu, double pj_per_byte);

// 0 where the energies are not known. Operands that miss the caches come on top.
double matmul_draw(const Gpu& gpu, DType dtype, const MatmulCost& cost);

// The highest clock that matmuls ever have, however little they draw.
double light_clock_ghz(const Gpu& gpu, DType dtype);

}  // namespace tritax
