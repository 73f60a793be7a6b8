#pragma once

#include "model/workload/workload.hpp"

namespace tritax {

// Paged attention on one GPU: the new tokens of a batch of sequences of different lengths attend to a cache
// in pages. Patterns are the successive versions of Triton's paged-attention kernel.
const Workload& paged_attention();

}  // namespace tritax
