#pragma once

#include "model/workload/workload.hpp"

namespace tritax {

// All-reduce alone: every GPU has a matrix of rows × cols, and ends with the sum of all matrices.
//
// Every GPU sends 2·rows·cols·(W-1)/W elements in two shots, and rows·cols·(W-1) in one.
const Workload& all_reduce();

}  // namespace tritax
