// GEMM + all-reduce: A (M×K) and B (K×N) are split along K over the ranks. Rank r computes A_r·B_r, and every
// rank ends with all of Σ_r A_r·B_r.
//
// Attention output and down projection of tensor parallelism without sequence parallelism. In two shots, one
// rank adds up a block and stores it to all, and every rank sends 2·M·N·(W-1)/W elements. In one shot, every
// rank adds up everything, and sends M·N·(W-1) elements.
#pragma once

#include "model/workload/workload.hpp"

namespace tritax {

// The GEMM + all-reduce workload.
const Workload& gemm_all_reduce();

}  // namespace tritax
