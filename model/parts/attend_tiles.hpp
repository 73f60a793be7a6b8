// Tiles of attention, for workloads with one tile of queries per workgroup, which goes through all keys that
// the tile may see: knobs of the tile, resources per workgroup, the default tile, and a lower bound of the
// time.
#pragma once

#include "model/parts/attend.hpp"
#include "model/workload/knob_space.hpp"

namespace tritax {

// Rows for tables of knobs: tile (of queries and keys), waves, pipeline, kernel.
const Spec& attend_knob(std::string_view name);

// Tile that the knobs ask for, with heads of `depth` columns. Throws UserError for sides that are no
// multiples of kTileStep.
MatmulTile attend_tile_of(const Values& values, std::int64_t depth);

// Profile of a kernel with these knobs.
KernelProfile attend_profile_of(const Values& values);

// Resources of a workgroup. Queries lie in LDS where the matrix instruction reads them from LDS (wgmma).
// Throws UserError where the tile does not fit a compute unit.
Resources attend_tile_resources(const Gpu& gpu, DType dtype, const MatmulTile& tile);

// Kernel of one rank, without workgroups.
Kernel attend_tile_kernel(const Gpu& gpu, DType dtype, const MatmulTile& tile, KernelProfile profile,
                          int rank, std::string_view name);

// Sets the knobs to the largest tile that fits: 128 queries by 64 keys with the fewest waves, or fewer where
// heads are wide.
void assume_fitting_tile(Values& values, const Gpu& gpu, DType dtype, std::int64_t depth);

// Tiles that a search may try. A value sets tile and waves together, because the waves decide which tile
// fits. The search starts at the tile of `base`. Without values where `base` was given a side or the waves.
Axis attend_tile_axis(const Values& base, const Gpu& gpu, DType dtype, std::int64_t depth);

// The knob `name` of kernels that attend backward, whose tile is queries per step by keys per workgroup.
Spec attend_backward_knob(std::string_view name);

// A lower bound of the time of a kernel, from blocks that take `block_ns` each on a compute unit; several
// workgroups of `resources` gain at most `shared_speedup` there. Other arguments as below.
double blocks_bound_ns(const Machine& machine, DType dtype, const Resources& resources, double block_ns,
                       double shared_speedup, double longest, double all);

// A lower bound of the time of a kernel, from matrix and vector work alone. `all`: blocks of tile.n keys that
// tiles of queries take in total; `longest`: those of one workgroup, one after the other.
double attend_bound_ns(const Machine& machine, DType dtype, const MatmulTile& tile, KernelProfile profile,
                       double longest, double all);

}  // namespace tritax
