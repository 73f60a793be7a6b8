#pragma once

#include "model/workload/workload.hpp"

namespace tritax {

// Ring attention: attention of one long sequence that is sharded over the GPUs (context parallelism,
// arXiv:2310.01889). Keys and values travel around the GPUs while queries stay.
const Workload& ring_attention();

}  // namespace tritax
