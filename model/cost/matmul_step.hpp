// Cycles of one K step of a tile by the law of matmul_cost.hpp, at any rate and for elements of any size.
#pragma once

#include "model/machine/machine.hpp"
#include "model/schedule/schedule.hpp"

namespace tritax {

// `tile.k` is the depth of the step, `bytes` an element's.
double matmul_step_clk(const Gpu& gpu, const KernelCosts& costs, const MatrixRate& rate, double bytes,
                       const MatmulTile& tile);

}  // namespace tritax
