#pragma once

#include "model/workload/workload.hpp"

namespace tritax {

// GEMM, all-reduce, residual and RMSNorm: A (M×K) and B (K×N) split along K over the GPUs; every GPU ends
// with Σ A_r·B_r and the residual stream, and with its normalised rows: attention output or down projection
// of tensor parallelism with what follows it in the layer.
const Workload& gemm_all_reduce_norm();

}  // namespace tritax
