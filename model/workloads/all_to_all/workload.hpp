#pragma once

#include "model/workload/workload.hpp"

namespace tritax {

// All-to-all alone: every GPU has a matrix of rows × cols, cut by rows into a block for each GPU, and ends
// with the blocks that all have for it. Every GPU sends rows·cols·(W-1)/W elements.
const Workload& all_to_all();

}  // namespace tritax
