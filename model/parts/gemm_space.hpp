// Which tiles, splits and orders a search may try for a pattern with a GEMM.
//
// Tiles follow from the problem. Sides are powers of two up to the extents; those below 64 ask for more
// operands per product and are in the space where tiles of 64×64 leave compute units idle, as in products of
// a few rows, down to where tiles twice as long do not; elsewhere those of 32 are tried at the end only.
// Depths go from half to four times the usual 128 bytes of K: the deeper a stage, the more operands are on
// their way at once out of memory. Depths at which a tile takes equally long and a compute unit holds equally
// many workgroups are one: the first of them is in the space.
//
// Every knob that the pattern uses has an axis; what is pinned has one value. A search starts from
// `default_gemm_knobs`, and crosses tiles (with the depths and waves that multiply fastest or fetch soonest)
// and CU splits at first.
#pragma once

#include "model/parts/gemm_knobs.hpp"
#include "model/parts/library_tile.hpp"
#include "model/workload/workload.hpp"

namespace tritax {

// `gemm`: the largest product of a rank. `table`: the workload's knobs at their usual values; it has those of
// model/parts/gemm_knobs.hpp. `pins`: those that were given stay fixed. Throws UserError when no tile fits
// the compute units of the machine, naming the pinned tile if there is one.
KnobSpace gemm_space(const Pattern& pattern, const GemmShape& gemm, int gpus, const Machine& machine,
                     const Values& table, const Values& pins);

}  // namespace tritax
