// GEMM + all-to-all: A (M×K) is sharded over the ranks by rows, B (K×N) is on every rank. Rank r multiplies
// its rows of A with all of B, and ends with all rows of its columns of C = A·B.
//
// The way into attention under sequence parallelism (DeepSpeed-Ulysses, arXiv:2309.14509 §3): tokens are
// sharded, the projections to Q, K and V have weights for all heads, and each rank continues with all tokens
// of its heads. Rank r sends the other ranks' columns of its rows: M_r·(N - N_r) elements.
#pragma once

#include "model/workload/workload.hpp"

namespace tritax {

// The GEMM + all-to-all workload.
const Workload& gemm_all_to_all();

}  // namespace tritax
