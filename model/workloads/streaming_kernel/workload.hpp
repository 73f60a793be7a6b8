#pragma once

#include "model/workload/workload.hpp"

namespace tritax {

// Kernels that memory bounds: rows of some matrices in, rows of others out, on one GPU.
const Workload& streaming_kernel();

}  // namespace tritax
