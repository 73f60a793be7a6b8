#pragma once

#include "model/workload/workload.hpp"

namespace tritax {

// GEMM, all-reduce, residual and RMSNorm: A (M×K) and B (K×N) are split along K over the GPUs. Every GPU ends
// with the sum of Σ A_r·B_r and the residual stream, and with its normalised rows. This is attention output
// or down projection of tensor parallelism, with the following steps of the layer.
const Workload& gemm_all_reduce_norm();

}  // namespace tritax
