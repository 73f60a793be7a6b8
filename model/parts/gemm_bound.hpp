// A lower bound of the run time for given knobs, before the schedule is built: the matmul time of the widest
// rank.
//
// T tiles of the widest rank; u the shortest time of one tile at the clock under full load (the cost law,
// less the spread of equal tiles); G workgroups that compute; C compute units; boost the highest clock over
// the load clock:
// load clock:
//   chain   ⌈T / G⌉ · u / boost        tiles of one workgroup, one after the other
//   power   Σ over rounds of (b / C)^(1/3) · u, b = tiles of the round: G in all but the last
//   shared  T · u / (gain · C)         in place of power where workgroups share compute units
//
// "power" is the law of model/cost/power_bound.hpp. Its cost is concave in b, and so least with rounds as
// full as possible. It is left out where energies are known, because another law holds there. Host barriers
// and the launch at the start of every run come on top. The bound is cheap: a search orders its candidates by
// it, and builds no schedule that it rules out.
#pragma once

#include "model/parts/gemm_knobs.hpp"
#include "model/parts/library_tile.hpp"
#include "model/workload/workload.hpp"

namespace tritax {

// The same for a kernel with `workgroups` resident workgroups, possibly several per compute unit. Each
// workgroup takes whole tiles, or at best all have equal shares of the iterations of all tiles.
enum class WorkSharing : std::uint8_t { whole_tiles, iterations };
double gemm_bound_ns(const GemmShape& gemm, const Machine& machine, const GemmKnobs& knobs,
                     std::int64_t workgroups, WorkSharing sharing);

// The same for a kernel that needs `resources`, with one workgroup per tile and as many resident workgroups
// as fit.
double gemm_bound_ns(const GemmShape& gemm, const Machine& machine, const GemmKnobs& knobs,
                     const Resources& resources);

// `gemm`: the product of the rank with the most work. 0 for a pattern that does not use the tile of the
// knobs. Throws UserError when the tile does not fit a compute unit, or when the GPU has no matrix
// instruction for the dtype.
double gemm_bound_ns(const Pattern& pattern, const GemmShape& gemm, const Machine& machine,
                     const GemmKnobs& knobs, WorkSharing sharing = WorkSharing::whole_tiles);

// Workload::call_ns where only the vendor's patterns call a GEMM library through a framework.
inline double gemm_call_ns(const Pattern& pattern, const Problem&, const Machine& machine) {
  return pattern.vendor ? machine.library.gemm_call_ns : 0;
}

}  // namespace tritax
