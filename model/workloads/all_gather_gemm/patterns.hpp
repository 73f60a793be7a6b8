// One builder per pattern; workload.cpp lists them. Builders expect checked knobs.
#pragma once

#include "model/parts/library_tile.hpp"
#include "model/workloads/all_gather_gemm/draft.hpp"

namespace tritax {

Schedule build_library(const AllGatherGemm& problem, const Machine& machine, const GatherKnobs& knobs);
Schedule build_bulk_synchronous(const AllGatherGemm& problem, const Machine& machine,
                                const GatherKnobs& knobs);
Schedule build_multimem(const AllGatherGemm& problem, const Machine& machine, const GatherKnobs& knobs);
Schedule build_pull(const AllGatherGemm& problem, const Machine& machine, const GatherKnobs& knobs);
Schedule build_push(const AllGatherGemm& problem, const Machine& machine, const GatherKnobs& knobs);
Schedule build_copy_engine(const AllGatherGemm& problem, const Machine& machine, const GatherKnobs& knobs);
Schedule build_staged_fetchers(const AllGatherGemm& problem, const Machine& machine,
                               const GatherKnobs& knobs);

// Whether `push` stalls: some sending workgroups certainly find no compute unit before the workgroups that
// wait for them end.
bool push_stalls(const AllGatherGemm& problem, const Machine& machine, const GatherKnobs& knobs);

// Resources of a workgroup of the staged kernel, which multiplies or fetches.
Resources staged_resources(const Machine& machine, DType dtype, const GatherKnobs& knobs);

// The shortest time in which the links of a GPU carry all fetches of its tiles in `pull`.
double least_pull_ns(const AllGatherGemm& problem, const Machine& machine, const GatherKnobs& knobs);

// The tile of the library's GEMM, which does not depend on the knobs.
LibraryTile tile_of_library(const AllGatherGemm& problem, const Machine& machine);

}  // namespace tritax
