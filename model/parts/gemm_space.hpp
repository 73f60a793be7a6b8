// Which tiles, splits and orders a search may try for a pattern with a GEMM.
//
// Tiles follow from the problem. Sides are powers of two up to the extents. Sides below 64 ask for more
// operands per product. They are in the space where tiles of 64×64 leave compute units idle, as in products
// of a few rows, as long as tiles twice as long leave some idle too; elsewhere sides of 32 are tried only at
// the end. Depths go from half to four times the usual 128 bytes of K: the deeper a stage, the more operands
// are on their way from memory at once. Of several depths with equal tile time and equally many workgroups
// per compute unit, only the first is in the space.
//
// Every knob that the pattern uses has an axis; a pinned knob has one value. A search starts from
// `default_gemm_knobs`. At first it crosses tiles (with the depths and waves that multiply fastest or fetch
// soonest) with CU splits.
#pragma once

#include "model/parts/gemm_knobs.hpp"
#include "model/parts/library_tile.hpp"
#include "model/workload/workload.hpp"

namespace tritax {

// `gemm`: the largest product of a rank. `table`: the workload's knobs at their usual values, among them
// those of model/parts/gemm_knobs.hpp. `pins`: given knobs, which stay fixed. Throws UserError when no tile
// fits the compute units of the machine, and names the pinned tile if there is one.
KnobSpace gemm_space(const Pattern& pattern, const GemmShape& gemm, int gpus, const Machine& machine,
                     const Values& table, const Values& pins);

}  // namespace tritax
