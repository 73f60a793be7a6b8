// The workload of attention backward on one GPU.
#pragma once

#include "model/workload/workload.hpp"

namespace tritax {

const Workload& attention_backward();

}  // namespace tritax
