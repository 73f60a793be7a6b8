// One builder a pattern; patterns.cpp lists them. Each is called with checked knobs through `build_schedule`.
#pragma once

#include <string_view>

#include "model/patterns/pattern.hpp"

namespace tritax {

Schedule build_library(const GemmAllScatter& workload, const Machine& machine, const Knobs& knobs);
Schedule build_bulk_synchronous(const GemmAllScatter& workload, const Machine& machine, const Knobs& knobs);
Schedule build_producer_consumer(const GemmAllScatter& workload, const Machine& machine, const Knobs& knobs);
Schedule build_fused_sequential(const GemmAllScatter& workload, const Machine& machine, const Knobs& knobs);
Schedule build_workgroup_specialised(const GemmAllScatter& workload, const Machine& machine,
                                     const Knobs& knobs);

// The tile of the library's GEMM, whatever the knobs say.
MatmulTile tile_of_library(const GemmAllScatter& workload, const Machine& machine);

// Name of the library's kernel that adds up the parts of a GEMM that is split along K.
inline constexpr std::string_view kAddingKernel = "library_add_parts";

// The GEMM kernel of the library pattern alone, on one GPU, with the tile of the knobs.
Schedule build_gemm_of_tile(const GemmAllScatter& workload, const Machine& machine, const Knobs& knobs);

}  // namespace tritax
