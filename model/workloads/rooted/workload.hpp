#pragma once

#include "model/workload/workload.hpp"

namespace tritax {

// GPU 0, the root, ends with the sum of all matrices.
const Workload& rooted_reduce();
// The root ends with the blocks of all GPUs, one below the other.
const Workload& rooted_gather();
// Every GPU ends with its block of the root's matrix.
const Workload& rooted_scatter();
// Every GPU passes its block on to the next, or GPUs 0, 2, … pass theirs on to GPUs 1, 3, ….
const Workload& send_receive();

}  // namespace tritax
