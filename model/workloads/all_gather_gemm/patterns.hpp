// One builder a pattern; workload.cpp lists them. Each is called with checked knobs.
#pragma once

#include "model/parts/library_tile.hpp"
#include "model/workloads/all_gather_gemm/draft.hpp"

namespace tritax {

Schedule build_library(const AllGatherGemm& problem, const Machine& machine, const GatherKnobs& knobs);
Schedule build_bulk_synchronous(const AllGatherGemm& problem, const Machine& machine,
                                const GatherKnobs& knobs);
Schedule build_pull(const AllGatherGemm& problem, const Machine& machine, const GatherKnobs& knobs);
Schedule build_push(const AllGatherGemm& problem, const Machine& machine, const GatherKnobs& knobs);
Schedule build_copy_engine(const AllGatherGemm& problem, const Machine& machine, const GatherKnobs& knobs);
Schedule build_staged_fetchers(const AllGatherGemm& problem, const Machine& machine,
                               const GatherKnobs& knobs);

// Whether in `push` some that send are sure to find no compute unit before those end who wait for them.
bool push_stalls(const AllGatherGemm& problem, const Machine& machine, const GatherKnobs& knobs);

// What a workgroup of the staged kernel needs, to multiply or to fetch.
Resources staged_resources(const Machine& machine, DType dtype, const GatherKnobs& knobs);

// The shortest time in which the links of a GPU bring what its tiles fetch in `pull`.
double least_pull_ns(const AllGatherGemm& problem, const Machine& machine, const GatherKnobs& knobs);

// The tile of the library's GEMM, whatever the knobs say.
LibraryTile tile_of_library(const AllGatherGemm& problem, const Machine& machine);

}  // namespace tritax
