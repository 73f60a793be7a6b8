#pragma once

#include "model/workload/workload.hpp"

namespace tritax {

// Sparse matrix times vector on one GPU: y = A·x, A in compressed sparse rows, its structure generated.
const Workload& spmv();

}  // namespace tritax
