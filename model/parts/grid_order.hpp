// Order in which a grid walks the tiles of a GEMM: the number of each workgroup, and the tile of each number.
//
// Workgroup w runs on die w mod X, with X dies (the hardware's round robin). A remap gives workgroup w the
// number w', so that a die owns neighbouring numbers. The tile then follows from w' in columns of a few rows
// (`group_m`, the window W of HipKittens). Both together are the grid swizzle of HipKittens
// (arXiv:2511.08083, Algorithm 1); row-major is no remap and a window of one row. W shapes the block of tiles
// that the compute units of a die share in their L2; the chunk sets how far the blocks of dies overlap in the
// last-level cache.
//
// Example: 9216³ with tiles of 192×256 are R = 48 rows of Q = 36 tiles, T = 1728. With W = 7 and chunks of
// C = 216 = T/X, workgroups 0, 8, 16 and 56, all of die 0, get w' = 0, 1, 2, 7: tiles (0,0), (1,0), (2,0),
// (0,1).
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

// The same in chunks (HipKittens; `remap_xcd_chunked` of ROCm/aiter): chunks of `chunk` numbers go to the
// dies in turn. With L the largest multiple of X·chunk that is at most T, number l of die x gets (l div
// chunk)·X·chunk + x·chunk + l mod chunk; numbers from L on stay. A bijection for every T and, as in
// HipKittens, the identity where X·chunk > T: chunks of that size need `remap_to_dies`, the whole share of a
// die.
std::int32_t chunk_to_dies(std::int32_t workgroup, std::int32_t workgroups, std::int32_t dies,
                           std::int32_t chunk);

// Tile number t in group-M order: columns of height `group_m` (ROCm/iris examples; Triton matmul tutorial).
TileIndex grouped_tile(std::int32_t tile, const TileGrid& grid, std::int32_t group_m);

}  // namespace tritax
