// A lower bound of the time of knobs, before their schedule is built: what the matmuls of the widest rank
// take.
//
// With T tiles of that rank, u the shortest time of one at the clock under full load (the cost law, less the
// spread of equal tiles), G workgroups that compute, C compute units, and boost the highest clock over that
// load clock:
//
//   chain   ⌈T / G⌉ · u / boost        one workgroup has that many tiles, one after the other
//   power   Σ over rounds of (b / C)^(1/3) · u, b = tiles of the round: G in all but the last
//   shared  T · u / (gain · C)         in place of power where workgroups share compute units
//
// Power is that of model/cost/power_bound.hpp, whose cost is concave in b and so least with rounds as full
// as they can be; it is left out where energies are known, for there another law holds. Host barriers and the
// launch that every such run begins with come on top. It costs nothing, so a search orders its candidates by
// it, and builds no schedule that it rules out.
#pragma once

#include "model/parts/gemm_knobs.hpp"
#include "model/parts/library_tile.hpp"
#include "model/workload/workload.hpp"

namespace tritax {

// The same of a kernel of which `workgroups` run at once, several on a compute unit maybe: each takes whole
// tiles, or at best all have equal shares of the iterations of all tiles.
enum class WorkSharing : std::uint8_t { whole_tiles, iterations };
double gemm_bound_ns(const GemmShape& gemm, const Machine& machine, const GemmKnobs& knobs,
                     std::int64_t workgroups, WorkSharing sharing);

// The same of a kernel that needs `resources`, with a workgroup a tile, as many at once as have room.
double gemm_bound_ns(const GemmShape& gemm, const Machine& machine, const GemmKnobs& knobs,
                     const Resources& resources);

// `gemm`: the product of the rank that has most. 0 for a pattern that does not use the tile of the knobs.
// Throws UserError when the tile does not fit a compute unit or the GPU has no matrix instruction for the
// dtype.
double gemm_bound_ns(const Pattern& pattern, const GemmShape& gemm, const Machine& machine,
                     const GemmKnobs& knobs, WorkSharing sharing = WorkSharing::whole_tiles);

// Workload::call_ns where only the vendor's patterns call a GEMM library through a framework.
inline double gemm_call_ns(const Pattern& pattern, const Problem&, const Machine& machine) {
  return pattern.vendor ? machine.library.gemm_call_ns : 0;
}

}  // namespace tritax
