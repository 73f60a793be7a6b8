// How much a run of a schedule is, before anybody runs it.
//
//   operations = sum over all launches of all ranks of (workgroups + items + their tile operations)
//
// Example: a kernel of 304 workgroups with 3 operations each, launched twice on each of 8 ranks, is
// 8 × 2 × (304 + 912) = 19,456. The simulator does 0.5 to 2 million a second on one core, the more the fewer
// of them wait for each other.
#pragma once

#include <cstdint>

#include "model/schedule/schedule.hpp"

namespace tritax {

// Floating-point operations of a matmul, 2·rows·columns·k, or of an attend, 4·d for every key that a row
// sees; 0 of all others.
double flops_of(const Op& op);

// Of a sound schedule: every launch names a kernel or a graph.
std::uint64_t executed_operations(const Schedule& schedule);

}  // namespace tritax
