// Counts the operations of a run of a schedule before the run.
//
//   operations = sum over all launches of all ranks of (workgroups + items + their tile operations)
//
// Example: a kernel of 304 workgroups with 3 operations each, launched twice on each of 8 ranks, is
// 8 × 2 × (304 + 912) = 19,456. The simulator runs 0.5 to 2 million operations per second on one core; fewer
// waits between operations mean a higher rate.
#pragma once

#include <cstdint>

#include "model/schedule/schedule.hpp"

namespace tritax {

// Floating-point operations of a matmul, 2·rows·columns·k, of an attend, 4·d per row and visible key, or of
// an attend_backward, 10·d; 0 for other operations.
double flops_of(const Op& op);

// The schedule is sound: every launch names a kernel or a graph.
std::uint64_t executed_operations(const Schedule& schedule);

}  // namespace tritax
