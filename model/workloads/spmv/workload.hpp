#pragma once

#include "model/workload/workload.hpp"

namespace tritax {

// Sparse matrix times vector on one GPU: y = A·x, with A in compressed sparse rows and a generated structure.
const Workload& spmv();

}  // namespace tritax
