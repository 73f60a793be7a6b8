// GEMM + reduce-scatter: A (M×K) and B (K×N) are split along K over the ranks, rank r has A_r·B_r, and ends
// with its rows or columns of Σ_r A_r·B_r.
//
// The second half of tensor parallelism with weights split by rows (sequence parallelism). Every rank sends
// all but its own block of its partial sum: M·N·(W-1)/W elements.
//
// One builder a pattern that is this workload's own; those of model/parts/sum_patterns.hpp are the others'.
#pragma once

#include "model/parts/partial_sums.hpp"
#include "model/workload/workload.hpp"

namespace tritax {

Schedule build_reduce_scatter_library(const PartialSums& problem, const Machine& machine,
                                      const SumKnobs& knobs);
Schedule build_reduce_scatter_atomics(const PartialSums& problem, const Machine& machine,
                                      const SumKnobs& knobs);

// The workload as the rest of the program sees it.
const Workload& gemm_reduce_scatter();

}  // namespace tritax
