// Ragged products on one GPU: group g has its own number of rows, the tokens routed to expert g
// (model/parts/expert_routing.hpp); all groups have N and K in common.
//
// Patterns differ in how tiles come to workgroups. loops (arXiv:2301.04792) asks this for sparse rows; here
// groups stand for tile sets, tiles of C for tiles, and iterations of K for atoms:
//
//   one launch per group         library (the vendor's GEMM), launch-per-group
//   one launch for all           dispatched, tile-mapped, group-mapped, work-oriented, dynamic-queue
//   one launch for like groups   bucketing
#pragma once

#include <cstdint>
#include <memory>

#include "model/parts/shared_gemm.hpp"
#include "model/workload/workload.hpp"

namespace tritax {

struct GroupedKnobs : GemmKnobs {
  std::int32_t grid = 0;  // resident workgroups; 0: one per compute unit
  Fixup fixup = Fixup::partials;
};
GroupedKnobs grouped_knobs_of(const Values& values);

// Groups with rows, in the order of experts. Keeps the results for the last few problems.
std::shared_ptr<const GroupedProducts> grouped_products_of(const Problem& problem);

Schedule build_grouped_library(const GroupedProducts& products, const Machine& machine,
                               const GroupedKnobs& knobs);
Schedule build_launch_per_group(const GroupedProducts& products, const Machine& machine,
                                const GroupedKnobs& knobs);
Schedule build_grouped_dispatched(const GroupedProducts& products, const Machine& machine,
                                  const GroupedKnobs& knobs);
Schedule build_tile_mapped(const GroupedProducts& products, const Machine& machine,
                           const GroupedKnobs& knobs);
Schedule build_group_mapped(const GroupedProducts& products, const Machine& machine,
                            const GroupedKnobs& knobs);
Schedule build_work_oriented(const GroupedProducts& products, const Machine& machine,
                             const GroupedKnobs& knobs);
Schedule build_group_buckets(const GroupedProducts& products, const Machine& machine,
                             const GroupedKnobs& knobs);
Schedule build_tile_queue(const GroupedProducts& products, const Machine& machine, const GroupedKnobs& knobs);

}  // namespace tritax
