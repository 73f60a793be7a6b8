// Distinguishes host barriers of a measuring harness from barriers that a pattern needs.
//
// Benchmarks put one host barrier before the measured region and one after it, so that all ranks begin
// together and the last rank decides (ROCm/iris: iris/util.py do_bench). Such barriers order no work of the
// schedule: they come before the first work of all ranks or after the last work of all ranks. Their time
// belongs to the harness and to none of the three taxes. A barrier with work on both sides makes ranks wait
// for each other's kernels; this is bulk-synchronous.
#pragma once

#include <vector>

#include "model/schedule/schedule.hpp"

namespace tritax {

// By number of the barrier in the host programs: nonzero for a barrier of a harness. Work is a launch, a copy
// or labelled host work. A rank with fewer barriers than others (the checker refuses this) counts only for
// its own barriers.
std::vector<char> harness_barriers(const Schedule& schedule);

}  // namespace tritax
