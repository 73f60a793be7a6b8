#pragma once

#include "model/workload/workload.hpp"

namespace tritax {

// All-reduce, residual and RMSNorm: every GPU has a matrix of partial sums. It ends with the sum of all
// matrices and the residual stream, and with the normalised rows of this sum.
const Workload& all_reduce_norm();

}  // namespace tritax
