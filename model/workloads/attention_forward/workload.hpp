// The workload of forward attention on one GPU.
#pragma once

#include "model/workload/workload.hpp"

namespace tritax {

const Workload& attention();

}  // namespace tritax
