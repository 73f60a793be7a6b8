#pragma once

#include "model/workload/workload.hpp"

namespace tritax {

// Memory-bound kernels on one GPU: rows of some matrices in, rows of others out.
const Workload& streaming_kernel();

}  // namespace tritax
