// GEMM + reduce-scatter: A (M×K) and B (K×N) are split along K over the ranks. Rank r computes A_r·B_r, and
// ends with its rows or columns of Σ_r A_r·B_r.
//
// The second half of tensor parallelism with weights split by rows (sequence parallelism). Every rank sends
// its partial sum except its own block: M·N·(W-1)/W elements.
#pragma once

#include "model/workload/workload.hpp"

namespace tritax {

// The GEMM + reduce-scatter workload.
const Workload& gemm_reduce_scatter();

}  // namespace tritax
