#pragma once

#include "model/workload/workload.hpp"

namespace tritax {

// The GEMM workload.
const Workload& gemm();

}  // namespace tritax
