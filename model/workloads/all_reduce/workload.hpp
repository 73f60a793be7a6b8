#pragma once

#include "model/workload/workload.hpp"

namespace tritax {

// All-reduce alone: every GPU has a matrix of rows × cols, and ends with the sum of all.
//
// In two shots every GPU sends 2·rows·cols·(W-1)/W elements, in one rows·cols·(W-1).
const Workload& all_reduce();

}  // namespace tritax
