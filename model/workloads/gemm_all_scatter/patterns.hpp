// One builder per pattern; workload.cpp lists them. Builders expect checked knobs.
#pragma once

#include "model/workloads/gemm_all_scatter/workload.hpp"

namespace tritax {

Schedule build_library(const GemmAllScatter& gemm, const Machine& machine, const SumKnobs& knobs);
Schedule build_bulk_synchronous(const GemmAllScatter& gemm, const Machine& machine, const SumKnobs& knobs);
Schedule build_producer_consumer(const GemmAllScatter& gemm, const Machine& machine, const SumKnobs& knobs);
Schedule build_fused_sequential(const GemmAllScatter& gemm, const Machine& machine, const SumKnobs& knobs);
Schedule build_workgroup_specialised(const GemmAllScatter& gemm, const Machine& machine,
                                     const SumKnobs& knobs);
// Of the all-gather alone.
Schedule build_copy_engine(const GemmAllScatter& gemm, const Machine& machine, const SumKnobs& knobs);

// The tile of the library's GEMM, which does not depend on the knobs.
MatmulTile tile_of_library(const GemmAllScatter& gemm, const Machine& machine);

}  // namespace tritax
