// Converts the stamps of a run to a timeline, the form of simulations. Plain host code.
#pragma once

#include <vector>

#include "backend_hip/executor.hpp"
#include "model/timeline/timeline.hpp"

namespace tritax::gpu {

// Operations are in the order of their begin. A kernel lasts from its first operation's begin to its last
// operation's end. There are no host intervals, because the hosts' clocks are not aligned with the GPUs'
// clocks. For a kernel with several launches, stamps describe the last launch.
Timeline timeline_of(const Schedule& schedule, const std::vector<StampedOp>& stamps);

}  // namespace tritax::gpu
