#include "model/parts/library_attention.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "model/core/error.hpp"
#include "model/parts/attend_tiles.hpp"
#include "model/parts/gemm_knobs.hpp"

namespace tritax {

namespace {

constexpr std::int64_t kMostSplits = 128;
constexpr std::int64_t kPartition = 256;  // keys, on AMD
constexpr std::int64_t kFewBlocks = 4;    // of keys, which are not split
constexpr std::int32_t kFewRows = 64;
constexpr std::int64_t kFewDepth = 128;  // with smaller tiles for few rows
constexpr std::int32_t kRowsOfWave = 16;

struct TileOfDepth {
  std::int64_t depth;  // at most
  std::int32_t queries, keys;
};
constexpr std::array<TileOfDepth, 5> kTiles{
    {{64, 192, 128}, {96, 192, 144}, {128, 128, 128}, {192, 128, 112}, {256, 128, 80}}};

bool fits(const Gpu& gpu, DType dtype, const MatmulTile& tile) {
  try {
    attend_tile_resources(gpu, dtype, tile);
    return true;
  } catch (const UserError&) {
    return false;
  }
}

MatmulTile tile_of(std::int32_t queries, std::int32_t keys, std::int64_t depth, const Gpu& gpu) {
  const std::int32_t waves =
      std::max(1, std::min(queries / kRowsOfWave, gpu.simds_per_cu * queries / kFewRows));
  return {queries, keys, static_cast<std::int32_t>(depth), waves, Pipeline::overlapped};
}

// The table's tile, halved until it fits.
MatmulTile fitting_tile(const Gpu& gpu, DType dtype, const AttentionCall& call) {
  const auto* entry = std::find_if(kTiles.begin(), kTiles.end(),
                                   [&](const TileOfDepth& tile) { return call.depth <= tile.depth; });
  if (entry == kTiles.end()) --entry;
  std::int32_t queries = entry->queries, keys = entry->keys;
  if (call.depth <= kFewDepth && call.queries * call.heads / call.kv_heads <= kFewRows) {
    queries = kFewRows;
    if (call.depth <= 64) keys = 192;
  }
  while (true) {
    const MatmulTile tile = tile_of(queries, keys, call.depth, gpu);
    if (fits(gpu, dtype, tile)) return tile;
    if (keys <= kTileStep && queries <= kTileStep) attend_tile_resources(gpu, dtype, tile);  // throws
    std::int32_t& longer = keys > kFewRows || queries <= kTileStep ? keys : queries;
    longer = std::max<std::int32_t>(kTileStep, longer / 2 / kTileStep * kTileStep);
  }
}

}  // namespace

std::int64_t splits_of_keys(std::int64_t tiles, std::int64_t units, std::int64_t blocks) {
  constexpr double kFilled = 0.8, kGood = 0.85;
  if (static_cast<double>(tiles) >= kFilled * static_cast<double>(units) || blocks <= kFewBlocks) return 1;
  const std::int64_t most = std::min({kMostSplits, units, blocks});
  const auto efficiency = [&](std::int64_t splits) {
    const double rounds = static_cast<double>(tiles * splits) / static_cast<double>(units);
    return rounds / std::ceil(rounds);
  };
  double best = 0;
  for (std::int64_t splits = 1; splits <= most; ++splits) best = std::max(best, efficiency(splits));
  for (std::int64_t splits = 1; splits <= most; ++splits) {
    if (efficiency(splits) >= kGood * best) return splits;
  }
  return 1;
}

LibraryAttention library_attention(const Machine& machine, DType dtype, const AttentionCall& call) {
  LibraryAttention found;
  found.tile = fitting_tile(machine.gpu, dtype, call);
  const auto pieces = [](std::int64_t size, std::int64_t piece) { return (size + piece - 1) / piece; };
  found.prepares = machine.gpu.lanes_per_wave == 32;
  if (!found.prepares && call.queries == 1) {
    found.splits = pieces(call.keys, kPartition);
    return found;
  }
  const std::int64_t tiles =
      call.sequences * call.kv_heads * pieces(call.queries * (call.heads / call.kv_heads), found.tile.m);
  found.splits = splits_of_keys(tiles, machine.gpu.cu_count(), pieces(call.keys, found.tile.n));
  return found;
}

LibraryKernel library_kernel_of(LibraryRoutine routine, DType dtype, const AttentionCall& call) {
  const auto small = [](std::int64_t size) { return static_cast<std::int32_t>(size); };
  LibraryKernel kernel;
  kernel.routine = routine;
  kernel.rows = small(call.queries);
  kernel.columns = small(call.keys);
  kernel.depth = small(call.depth);
  kernel.sequences = small(call.sequences);
  kernel.heads = small(call.heads);
  kernel.kv_heads = small(call.kv_heads);
  kernel.dtype = dtype;
  return kernel;
}

}  // namespace tritax
