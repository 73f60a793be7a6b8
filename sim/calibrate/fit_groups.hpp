// Which parameters are fitted together, and to which rows: the table behind `calibrate`.
#pragma once

#include <vector>

#include "sim/calibrate/fit.hpp"

namespace tritax {

// Groups in the order in which they are fitted; a group may rely on parameters of the groups before it, and
// on the clocks.
std::vector<FitGroup> fit_groups(const Machine& machine);

}  // namespace tritax
