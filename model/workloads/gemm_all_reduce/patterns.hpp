// GEMM + all-reduce: A (M×K) and B (K×N) are split along K over the ranks. Rank r computes A_r·B_r, and every
// rank ends with all of Σ_r A_r·B_r.
//
// Attention output and down projection of tensor parallelism without sequence parallelism. In two shots, one
// rank adds up a block and stores it to all, and every rank sends 2·M·N·(W-1)/W elements. In one shot, every
// rank adds up everything, and sends M·N·(W-1) elements.
//
// One builder per pattern of this workload alone; the other patterns are in model/parts/sum_patterns.hpp.
#pragma once

#include "model/parts/partial_sums.hpp"
#include "model/workload/workload.hpp"

namespace tritax {

Schedule build_all_reduce_library(const PartialSums& problem, const Machine& machine, const SumKnobs& knobs);
Schedule build_all_reduce_atomics(const PartialSums& problem, const Machine& machine, const SumKnobs& knobs);
Schedule build_all_reduce_one_shot(const PartialSums& problem, const Machine& machine, const SumKnobs& knobs);

// The GEMM + all-reduce workload.
const Workload& gemm_all_reduce();

}  // namespace tritax
