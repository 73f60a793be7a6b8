// A plain GEMM as a schedule for one GPU: what the matmul kernels reach by themselves.
#pragma once

#include <string>

#include "backend_hip/blas.hpp"
#include "model/schedule/schedule.hpp"

namespace tritax::gpu {

struct TileSize {
  std::int32_t m = 0;
  std::int32_t n = 0;
};

// "128x256". Throws UserError that names `where` otherwise.
TileSize parse_tile(const std::string& text, const std::string& where);

// C = A·B by persistent workgroups, one a compute unit, tiles in groups of `group_m` row tiles.
Schedule plain_gemm(const GemmShape& shape, TileSize tile, std::int32_t group_m, std::int32_t compute_units);

}  // namespace tritax::gpu
