// The workload of a library's GEMM on one GPU.
#pragma once

#include "model/workload/workload.hpp"

namespace tritax {

const Workload& library_gemm();

}  // namespace tritax
