#pragma once

#include "model/workload/workload.hpp"

namespace tritax {

// A layer of experts that GPUs share: tokens go to their experts, through two products each, and back.
const Workload& moe();

}  // namespace tritax
