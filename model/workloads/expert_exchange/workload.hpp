#pragma once

#include "model/workload/workload.hpp"

namespace tritax {

// The exchange of tokens with experts alone: dispatch, or combine. Uneven, because tokens are routed.
const Workload& expert_exchange();

}  // namespace tritax
