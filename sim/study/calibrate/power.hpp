// The energies of sim/engine_clock.cpp, from clocks measured during whole products.
#pragma once

#include <vector>

#include "sim/study/calibrate/fit.hpp"

namespace tritax {

// gpu.operand_energy, gpu.miss_energy and gpu.matrix.<dtype>.load_clock by least squares over the clocks of
// the first milliseconds (`clock` and `power` rows), in which the law is linear: matrix work and A tiles
// follow from the product and its tile, misses from a simulation of its caches. Then sustained_clock: the
// share of that power that is left after long load. Sets the values in `machine`. Returns nothing if the
// machine has no gpu.power_limit, there are no `power` rows or none of a dtype, a term is negative or known
// with an error above 50 %, or a load clock lies above the boost clock: then load_clock stands for the whole
// draw of a product (estimate_clocks).
std::vector<FittedUnknown> estimate_power(const std::vector<Observation>& table, Machine& machine);

}  // namespace tritax
