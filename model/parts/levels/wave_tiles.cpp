#include "model/parts/levels/wave_tiles.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/core/error.hpp"
#include "model/parts/kernels.hpp"

namespace tritax {

namespace {

constexpr std::int32_t kLeastWaveRows = 8;  // rows of a matrix instruction of Xe-HPC

std::int32_t waves_along_n(std::int32_t n, std::int32_t waves) {
  const auto most = static_cast<std::int32_t>(std::sqrt(static_cast<double>(waves)));
  for (const std::int32_t columns : {16, 32, 64}) {
    if (n / columns <= most) return std::max(1, n / columns);
  }
  return std::max(1, n / 128);
}

}  // namespace

WaveTiles gemm_wave_tiles(std::int32_t m, std::int32_t n, std::int32_t waves) {
  TRITAX_ASSERT(m > 0 && n > 0 && waves > 0, "a tile and waves for it");
  WaveTiles tiles;
  tiles.waves_n = std::min(waves, waves_along_n(n, waves));
  tiles.waves_m = ceil_div(waves, tiles.waves_n);
  tiles.m = ceil_div(m, tiles.waves_m);
  tiles.n = ceil_div(n, tiles.waves_n);
  if (tiles.m < kLeastWaveRows) {
    tiles.m = kLeastWaveRows;
    tiles.waves_m = 1;
    tiles.waves_n = waves;
    tiles.n = ceil_div(n, waves);
    tiles.tiles_m = ceil_div(m, tiles.m);
  }
  if (tiles.waves() != waves) {
    throw UserError(fmt::format(
        "waves: the rule of arXiv:2503.14985 cuts {}x{} into {} x {} tiles, which {} waves do not "
        "share out evenly; use another number of waves",
        m, n, tiles.waves_m, tiles.waves_n, waves));
  }
  return tiles;
}

WaveTiles attention_wave_tiles(std::int32_t queries, std::int32_t keys, std::int32_t d, std::int32_t waves) {
  TRITAX_ASSERT(queries > 0 && keys > 0 && d > 0 && waves > 0, "a tile and waves for it");
  if (queries % waves != 0 || keys % waves != 0) {
    throw UserError(fmt::format(
        "waves: {} is not a divisor of {} queries and {} keys, which the rule of arXiv:2503.14985 asks for",
        waves, queries, keys));
  }
  return {TileLoop::attention, waves, 1, 1, queries / waves, keys, d};
}

Rect wave_rect(const WaveTiles& tiles, std::int32_t wave, std::int32_t rows, std::int32_t cols) {
  const std::int32_t own_cols = tiles.loop == TileLoop::attention ? cols : tiles.n;
  const std::int32_t row = wave % tiles.waves_m * tiles.rows();
  const std::int32_t col = wave / tiles.waves_m * own_cols;
  return {row, col, std::clamp(rows - row, 0, tiles.rows()), std::clamp(cols - col, 0, own_cols)};
}

}  // namespace tritax
