#pragma once

#include "model/workload/workload.hpp"

namespace tritax {

// All-to-all alone: every GPU has a matrix of rows × cols, cut by rows into one block per GPU, and ends with
// its block of every GPU. Every GPU sends rows·cols·(W-1)/W elements.
const Workload& all_to_all();

}  // namespace tritax
