// Stamps of a run as a timeline, the form that simulations have too. Plain host code.
#pragma once

#include <vector>

#include "backend_hip/executor.hpp"
#include "model/timeline/timeline.hpp"

namespace tritax::gpu {

// Operations in the order of their begin; a kernel lasts from its first operation's begin to its last one's
// end. There are no host intervals: the hosts' clocks are not aligned with those of the GPUs. Of a kernel
// that is launched several times, stamps tell of its last launch.
Timeline timeline_of(const Schedule& schedule, const std::vector<StampedOp>& stamps);

}  // namespace tritax::gpu
