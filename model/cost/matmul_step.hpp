// Computes the cycles of one K step of a tile by the law of matmul_cost.hpp, for any matrix rate and element
// size.
#pragma once

#include "model/machine/machine.hpp"
#include "model/schedule/schedule.hpp"

namespace tritax {

// `tile.k` is the depth of the step, `bytes` the size of an element.
double matmul_step_clk(const Gpu& gpu, const KernelCosts& costs, const MatrixRate& rate, double bytes,
                       const MatmulTile& tile);

}  // namespace tritax
