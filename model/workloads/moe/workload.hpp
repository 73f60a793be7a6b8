#pragma once

#include "model/workload/workload.hpp"

namespace tritax {

// A layer of experts that are shared by the GPUs: tokens go to their experts, two products each, and back.
const Workload& moe();

}  // namespace tritax
