// Wave tiles of a workgroup's tile: the first lowering of ML-Triton (arXiv:2503.14985), as its passes
// convert-triton-to-tritongpu-warp and distribute-to-warps do it (intel/intel-xpu-backend-for-triton,
// third_party/intel/lib, before its removal in 2025).
//
// A loop with one product is a GEMM. A loop with two products, where the second takes the result of the
// first, is attention.
//
//   GEMM, m × n by W waves, r = floor(sqrt(W)):
//     waves along n   the first of n/16, n/32, n/64 that is at most r, else n/128; at least 1,
//                     and no more than W (the published layout then gives a wave several tiles)
//     waves along m   ceil(W / waves along n)
//     per wave        ceil(m / waves along m) × ceil(n / waves along n), and all of K
//     with fewer than 8 rows per wave: 8 rows, all waves along n, ceil(n / W) columns; with more rows in
//                     the tile, a wave has several such tiles, one below the other
//   attention, m queries against blocks of n keys, d columns:
//     waves along m   W
//     per wave        Q m/W × d, scores m/W × n, O m/W × d; keys and values whole
//
// Wave w has the tile (w mod waves along m, w div waves along m). Example: 256×256 by 32 waves: r = 5,
// 256/64 = 4 waves along n, 8 along m, 32×64 each; 128×128 by 4: 64×64.
#pragma once

#include <cstdint>

#include "model/schedule/rect.hpp"

namespace tritax {

enum class TileLoop : std::uint8_t { gemm, attention };

struct WaveTiles {
  TileLoop loop = TileLoop::gemm;
  std::int32_t waves_m = 1;
  std::int32_t waves_n = 1;
  std::int32_t tiles_m = 1;  // per wave, one below the other
  std::int32_t m = 0;        // per tile
  std::int32_t n = 0;        // per tile; attention: keys of a block
  std::int32_t d = 0;        // attention: columns
  std::int32_t waves() const { return waves_m * waves_n; }
  std::int32_t rows() const { return tiles_m * m; }  // per wave
};

// Both throw UserError when the rule leaves waves without a tile of their own, or tiles without a wave.
WaveTiles gemm_wave_tiles(std::int32_t m, std::int32_t n, std::int32_t waves);
WaveTiles attention_wave_tiles(std::int32_t queries, std::int32_t keys, std::int32_t d, std::int32_t waves);

// The result part of wave `wave`, in a tile of `rows` × `cols` at (0, 0); empty if the wave has no part.
Rect wave_rect(const WaveTiles& tiles, std::int32_t wave, std::int32_t rows, std::int32_t cols);

}  // namespace tritax
