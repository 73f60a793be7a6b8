#pragma once

#include "model/workload/workload.hpp"

namespace tritax {

// Flash decode: one token of every sequence attends to a cache of keys and values that is sharded over the
// GPUs along the sequence; every GPU ends with all results.
const Workload& flash_decode();

}  // namespace tritax
