// Ragged products on one GPU: group g has rows of its own, as many as tokens are routed to expert g
// (model/parts/expert_routing.hpp), and N and K in common with the others.
//
// How its tiles come to workgroups is the question that loops (arXiv:2301.04792) asks of sparse rows, here
// with groups for tile sets, tiles of C for tiles, and iterations of K for atoms:
//
//   one launch a group     library (the vendor's GEMM), launch-per-group
//   one launch for all     dispatched, tile-mapped, group-mapped, work-oriented, dynamic-queue
//   one for like groups    bucketing
#pragma once

#include <cstdint>
#include <memory>

#include "model/parts/shared_gemm.hpp"
#include "model/workload/workload.hpp"

namespace tritax {

struct GroupedKnobs : GemmKnobs {
  std::int32_t grid = 0;  // workgroups that run at once; 0: one for each compute unit
  Fixup fixup = Fixup::partials;
};
GroupedKnobs grouped_knobs_of(const Values& values);

// Groups that have rows, in the order of experts. The last few problems that were asked for are kept.
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
