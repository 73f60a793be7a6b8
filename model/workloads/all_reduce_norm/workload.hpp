#pragma once

#include "model/workload/workload.hpp"

namespace tritax {

// All-reduce, residual and RMSNorm: every GPU has a matrix of partial sums, and ends with the sum of all of
// them and the residual stream, and with its normalised rows.
const Workload& all_reduce_norm();

}  // namespace tritax
