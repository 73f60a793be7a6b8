// The selectors, one file each; selector.cpp has the table of them.
#pragma once

#include "model/select/selector.hpp"

namespace tritax {

// Coarse to fine. First the values of every pattern that decide most (tiles × CU splits, for a GEMM) are
// tried at the start of all others; then the neighbours of the best few of each pattern, one axis at a time
// (model/workload/knob_space.hpp), until none is better; last, every single change of a knob of the best of
// the patterns in reach of the fastest, so that none of them gains. A candidate is left out when a lower
// bound of its time is not below the best of its own pattern, and a simulation stops once it is clearly
// slower than that best. Of patterns that take half as long again as the fastest only what is best for others
// is tried.
void select_by_search(const Choices& choices, Trials& trials);

// The coarse values of every pattern in the order of their lower bounds, the first of every group (shape of
// tiles) before the others; the start and the first few of each are simulated. Where the bounds of two
// candidates are equal the one that is listed first goes first.
void select_by_bound(const Choices& choices, Trials& trials);

// Where a search of each pattern would start: one simulation a pattern.
void select_defaults(const Choices& choices, Trials& trials);

}  // namespace tritax
