// GEMM of a library on one GPU, as the rest of the program sees it.
#pragma once

#include "model/workload/workload.hpp"

namespace tritax {

const Workload& library_gemm();

}  // namespace tritax
