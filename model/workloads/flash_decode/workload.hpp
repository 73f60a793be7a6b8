#pragma once

#include "model/workload/workload.hpp"

namespace tritax {

// Flash decode: one token of every sequence attends to a cache of keys and values, which is sharded over the
// GPUs along the sequence. Every GPU ends with all results.
const Workload& flash_decode();

}  // namespace tritax
