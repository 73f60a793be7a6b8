#pragma once

#include "model/workload/workload.hpp"

namespace tritax {

// Reduce-scatter alone: every GPU has a matrix of rows × cols, and ends with its rows of the sum of all
// matrices. Every GPU sends the other GPUs' rows of its matrix: rows·cols·(W-1)/W elements.
const Workload& reduce_scatter();

}  // namespace tritax
