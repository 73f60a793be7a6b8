#pragma once

#include "model/workload/workload.hpp"

namespace tritax {

// Paged attention: the new tokens of a batch of sequences, of different lengths, attend to a cache in pages,
// on one GPU, with the kernels that Triton's paged-attention kernel went through.
const Workload& paged_attention();

}  // namespace tritax
