// One builder per pattern of this workload alone; the other patterns are in model/parts/sum_patterns.hpp.
#pragma once

#include "model/parts/partial_sums.hpp"
#include "model/workload/workload.hpp"

namespace tritax {

Schedule build_reduce_scatter_library(const PartialSums& problem, const Machine& machine,
                                      const SumKnobs& knobs);
Schedule build_reduce_scatter_atomics(const PartialSums& problem, const Machine& machine,
                                      const SumKnobs& knobs);

}  // namespace tritax
