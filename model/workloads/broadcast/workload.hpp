#pragma once

#include "model/workload/workload.hpp"

namespace tritax {

// Broadcast alone, in place: every GPU ends with the matrix of rows × cols that GPU 0 has.
const Workload& broadcast();

}  // namespace tritax
