#pragma once

#include "model/workload/workload.hpp"

namespace tritax {

// Broadcast alone, in place: every GPU ends with the matrix of rows × cols of GPU 0.
const Workload& broadcast();

}  // namespace tritax
