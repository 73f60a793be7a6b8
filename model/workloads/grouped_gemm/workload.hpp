#pragma once

#include "model/workload/workload.hpp"

namespace tritax {

// Ragged products on one GPU, C_g = A_g·B_g with rows of their own: the experts of one GPU, by how their
// tiles are shared out among workgroups.
const Workload& grouped_gemm();

}  // namespace tritax
