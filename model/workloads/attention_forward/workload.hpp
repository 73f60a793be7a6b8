// Attention on one GPU, forward, as the rest of the program sees it.
#pragma once

#include "model/workload/workload.hpp"

namespace tritax {

const Workload& attention();

}  // namespace tritax
