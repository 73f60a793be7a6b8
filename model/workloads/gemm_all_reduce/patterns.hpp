// GEMM + all-reduce: A (M×K) and B (K×N) are split along K over the ranks, rank r has A_r·B_r, and every rank
// ends with all of Σ_r A_r·B_r.
//
// Attention output and down projection of tensor parallelism without sequence parallelism. In two shots,
// where one rank adds up a block and stores it to all, a rank sends 2·M·N·(W-1)/W elements; in one, where
// every rank adds up everything, M·N·(W-1).
//
// One builder a pattern that is this workload's own; those of model/parts/sum_patterns.hpp are the others'.
#pragma once

#include "model/parts/partial_sums.hpp"
#include "model/workload/workload.hpp"

namespace tritax {

Schedule build_all_reduce_library(const PartialSums& problem, const Machine& machine, const SumKnobs& knobs);
Schedule build_all_reduce_atomics(const PartialSums& problem, const Machine& machine, const SumKnobs& knobs);
Schedule build_all_reduce_one_shot(const PartialSums& problem, const Machine& machine, const SumKnobs& knobs);

// The workload as the rest of the program sees it.
const Workload& gemm_all_reduce();

}  // namespace tritax
