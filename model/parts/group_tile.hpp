// Tiles for products of few rows, such as those of experts: what workloads with many of them start from and
// search.
#pragma once

#include <cstdint>

#include "model/parts/gemm_knobs.hpp"
#include "model/workload/workload.hpp"

namespace tritax {

// The knobs with the sides of their tile halved while they stay at or above `rows` and `columns`, as far as
// matrix instructions allow; with half as many waves where a smaller tile does not fit otherwise.
GemmKnobs with_tile_for(const GemmKnobs& knobs, DType dtype, const Machine& machine, std::int64_t rows,
                        std::int64_t columns);

// Heights of the tile, that of `base` first; those that fit. `base` alone where somebody gave it. Shapes that
// are found better travel to the best of other patterns.
Axis tile_rows_axis(const Pattern& pattern, const Values& base, DType dtype, const Machine& machine,
                    const Values& pins);

// A launch, and products of so many floating-point operations on one GPU at the peak of its matrix cores.
double peak_bound_ns(double flops, DType dtype, const Machine& machine);

}  // namespace tritax
