// The host barriers of whoever measures, told from those that a pattern needs.
//
// Benchmarks put a host barrier in front of the measured region and one behind it, so that all ranks begin
// together and the last one counts (ROCm/iris: iris/util.py do_bench). Such barriers order nothing that the
// schedule computes: they stand before the first work of all ranks or behind the last of all. What they take
// is the harness's time, none of the three taxes. A barrier with work on both sides makes ranks wait for each
// other's kernels, and that is bulk-synchronous.
#pragma once

#include <vector>

#include "model/schedule/schedule.hpp"

namespace tritax {

// By number of the barrier in the host programs: nonzero for those of a harness. Work is a launch, a copy or
// labelled host work. Ranks that arrive at fewer barriers than others (the checker refuses that) count as far
// as they go.
std::vector<char> harness_barriers(const Schedule& schedule);

}  // namespace tritax
