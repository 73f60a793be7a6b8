// Tiles for products of few rows, such as those of experts: the start of a search, and its axis.
#pragma once

#include <cstdint>

#include "model/parts/gemm_knobs.hpp"
#include "model/workload/workload.hpp"

namespace tritax {

// Halves the sides of the tile while they stay at or above `rows` and `columns`, as far as matrix
// instructions allow; also halves the waves where a smaller tile does not fit otherwise.
GemmKnobs with_tile_for(const GemmKnobs& knobs, DType dtype, const Machine& machine, std::int64_t rows,
                        std::int64_t columns);

// Heights of the tile, the height of `base` first, without those that do not fit. Only the height of `base`
// where it was given. Better shapes of one pattern are also tried at the best of other patterns.
Axis tile_rows_axis(const Pattern& pattern, const Values& base, DType dtype, const Machine& machine,
                    const Values& pins);

// One launch, and `flops` on one GPU at the peak of its matrix cores.
double peak_bound_ns(double flops, DType dtype, const Machine& machine);

}  // namespace tritax
