// Declares the selectors, one source file each; selector.cpp has their table.
#pragma once

#include "model/select/selector.hpp"

namespace tritax {

// Searches coarse to fine. First the most important knobs of every pattern (tiles × CU splits, for a GEMM)
// are varied with the others at their start. Then the neighbours of the best few of each pattern are tried,
// one axis at a time (model/workload/knob_space.hpp), until none is better. Last, for patterns close to the
// fastest, every single change of a knob of the best is tried, so that no single change gains. A candidate is
// left out if a lower bound of its time is not below the best of its own pattern, and a simulation stops when
// it is clearly slower than that best. Patterns that take more than 1.5 times as long as the fastest try only
// the best values of other patterns.
void select_by_search(const Choices& choices, Trials& trials);

// Sorts the coarse choices of every pattern by their lower bounds, with the first of every group (shape of
// tiles) before the others, and simulates the start and the first few of each pattern. Of candidates with
// equal bounds the earlier in the list comes first.
void select_by_bound(const Choices& choices, Trials& trials);

// Simulates the start of a search of each pattern: one simulation per pattern.
void select_defaults(const Choices& choices, Trials& trials);

}  // namespace tritax
