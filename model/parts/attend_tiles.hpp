// What workloads share whose workgroups have a tile of queries each and go through all keys that it may see:
// knobs of the tile, what it takes from a compute unit, the tile where nobody says one, and a bound.
#pragma once

#include "model/parts/attend.hpp"
#include "model/workload/knob_space.hpp"

namespace tritax {

// Rows for tables of knobs: tile (of queries and keys), waves, pipeline, kernel.
const Spec& attend_knob(std::string_view name);

// The tile that such knobs ask for, of heads of `depth` columns. Throws UserError for sides that are no
// multiples of kTileStep.
MatmulTile attend_tile_of(const Values& values, std::int64_t depth);

// How a kernel with such knobs is written.
KernelProfile attend_profile_of(const Values& values);

// Of a workgroup; queries are in LDS where the matrix instruction reads them from there (wgmma). Throws
// UserError where the tile does not fit a compute unit.
Resources attend_tile_resources(const Gpu& gpu, DType dtype, const MatmulTile& tile);

// Of a rank, without workgroups.
Kernel attend_tile_kernel(const Gpu& gpu, DType dtype, const MatmulTile& tile, KernelProfile profile,
                          int rank, std::string_view name);

// Puts into the knobs the largest of these that fits: 128 queries by 64 keys, with the fewest waves; narrower
// for wide heads.
void assume_fitting_tile(Values& values, const Gpu& gpu, DType dtype, std::int64_t depth);

// Tiles and waves that a search may try, together: what one holds depends on the other. That of `base` is the
// start; no values where a part of it was given.
Axis attend_tile_axis(const Values& base, const Gpu& gpu, DType dtype, std::int64_t depth);

// A lower bound of the time of a kernel, of matrix and vector work alone: `all` blocks of tile.n keys for a
// tile of queries, `longest` of them one after the other.
double attend_bound_ns(const Machine& machine, DType dtype, const MatmulTile& tile, KernelProfile profile,
                       double longest, double all);

}  // namespace tritax
