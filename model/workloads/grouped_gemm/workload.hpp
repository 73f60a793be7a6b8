#pragma once

#include "model/workload/workload.hpp"

namespace tritax {

// Ragged products on one GPU, C_g = A_g·B_g, each with its own rows: the experts of one GPU. Patterns differ
// in how tiles are shared out among workgroups.
const Workload& grouped_gemm();

}  // namespace tritax
