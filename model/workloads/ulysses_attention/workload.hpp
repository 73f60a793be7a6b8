#pragma once

#include "model/workload/workload.hpp"

namespace tritax {

// Ulysses: attention of one long sequence. The sequence is sharded over the GPUs by tokens before and after
// attention, and by heads in between (arXiv:2309.14509).
const Workload& ulysses();

}  // namespace tritax
