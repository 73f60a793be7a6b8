// Which parameters are fitted together, and to which rows: the table behind `calibrate`.
#pragma once

#include <vector>

#include "sim/calibrate/fit.hpp"

namespace tritax {

// Groups in the order in which they are fitted; a group may rely on parameters of the groups before it, and
// on the clocks.
std::vector<FitGroup> fit_groups(const Machine& machine);

// Stores that fill links in a layout that no pattern has: contiguous streams to several peers, tiles that lie
// side by side. Nothing is fitted to them.
bool left_out_for_layout(const MicrobenchRow& row);

}  // namespace tritax
