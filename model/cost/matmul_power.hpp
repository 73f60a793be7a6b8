// What matmuls draw, and so which clock the power limit leaves them (sim/engine_clock.cpp has the whole law).
//
// In units in which the limit is 1, a matmul of `clk` cycles draws f^3 · draw / clk at the clock f, with
//
//   draw = share of the GPU's peak / load_clock^3 + operand_energy · bytes of A,     in clk / GHz^3
#pragma once

#include "model/cost/matmul_cost.hpp"

namespace tritax {

// The clock follows the draw in steps of this share of it.
inline constexpr double kClockStep = 0.02;

// Of an energy in pJ/B at the boost clock: draw per byte.
double draw_per_byte(const Gpu& gpu, double pj_per_byte);

// 0 where the energies are not known. Operands that miss the caches come on top.
double matmul_draw(const Gpu& gpu, DType dtype, const MatmulCost& cost);

// The highest clock that matmuls ever have, however little they draw.
double light_clock_ghz(const Gpu& gpu, DType dtype);

}  // namespace tritax
