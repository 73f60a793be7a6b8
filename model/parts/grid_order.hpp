// Order in which a grid walks the tiles of a GEMM.
#pragma once

#include <cstdint>

namespace tritax {

struct TileGrid {
  std::int32_t rows = 0;  // ceil(M / tile_m)
  std::int32_t cols = 0;  // ceil(Nl / tile_n)
  std::int32_t count() const { return rows * cols; }
};

struct TileIndex {
  std::int32_t row = 0;
  std::int32_t col = 0;
};

// Workgroup number after the XCD remap (ROCm/iris examples/07_gemm_all_scatter), so that with round-robin
// dispatch every die owns a contiguous range. Iris' formula p' = (p mod X)·(G div X) + p div X is a bijection
// only if X divides G; for other G this is the balanced form: the first G mod X dies own one number more.
std::int32_t remap_to_dies(std::int32_t workgroup, std::int32_t workgroups, std::int32_t dies);

// Tile number t in group-M order: columns of height `group_m` (ROCm/iris examples; Triton matmul tutorial).
TileIndex grouped_tile(std::int32_t tile, const TileGrid& grid, std::int32_t group_m);

}  // namespace tritax
