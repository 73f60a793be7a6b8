// Tiles of attention backward, and what a workgroup needs for one.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "model/core/error.hpp"
#include "model/parts/attend_tiles.hpp"
#include "model/parts/gemm_knobs.hpp"
#include "model/parts/kernels.hpp"
#include "model/schedule/wave_schedule.hpp"
#include "model/workloads/attention_backward/problem.hpp"

namespace tritax {

namespace {

constexpr double kOverheadRegisters = 32;  // per thread: addresses and statistics
constexpr double kSlicedQueries = 16;      // whose scores lie in registers at a time
constexpr double kWideHead = 128;          // more columns: FlashAttention-3 has one block of dO in LDS
constexpr std::int64_t kKeysOfWave = 64;   // of 64 lanes
constexpr std::int64_t kKeysOfWarp = 16;   // of 32 lanes; four are a warp group of wgmma

struct Sides {
  std::int64_t queries = 0, keys = 0, waves = 0;
};

struct SidesOfDepth {
  std::int64_t depth;  // at most
  Sides sides, causal;
};
// Two warp groups of four waves, and three for heads of 192 columns.
constexpr std::array<SidesOfDepth, 5> kHopperTiles{{{64, {128, 128, 8}, {128, 128, 8}},
                                                    {96, {64, 128, 8}, {64, 128, 8}},
                                                    {128, {80, 128, 8}, {64, 128, 8}},
                                                    {192, {64, 96, 12}, {64, 96, 12}},
                                                    {256, {64, 80, 8}, {64, 80, 8}}}};
constexpr Sides kAssembledTile{64, 256, 4}, kWaveTile{64, 128, 4}, kWarpTile{64, 128, 8};

void set_tile(Values& values, const Sides& sides) {
  values.assume("tile_q", sides.queries);
  values.assume("tile_kv", sides.keys);
  values.assume("waves", sides.waves);
}

bool fits(const Values& values, const Gpu& gpu, const AttentionProblem& problem) {
  try {
    backward_resources(gpu, problem.dtype, attend_tile_of(values, problem.depth));
    return true;
  } catch (const UserError&) {
    return false;
  }
}

Sides first_tile(const Values& values, const Gpu& gpu, const AttentionProblem& problem) {
  if (!gpu.async_tile_copy && gpu.lanes_per_wave != 64) return kWarpTile;
  const bool assembled = static_cast<Pipeline>(values["pipeline"]) == Pipeline::interleaved;
  if (!gpu.async_tile_copy) return assembled ? kAssembledTile : kWaveTile;
  const auto* entry = std::find_if(kHopperTiles.begin(), kHopperTiles.end(),
                                   [&](const SidesOfDepth& tile) { return problem.depth <= tile.depth; });
  if (entry == kHopperTiles.end()) --entry;
  return problem.causal ? entry->causal : entry->sides;
}

std::int64_t halved(std::int64_t side) {
  return std::max<std::int64_t>(kTileStep, side / 2 / kTileStep * kTileStep);
}

}  // namespace

Resources backward_resources(const Gpu& gpu, DType dtype, const MatmulTile& tile) {
  check_waves(tile.waves, gpu);
  if (const std::string fault = fault_of_waves(gpu, tile); !fault.empty()) throw UserError(fault);
  const double m = tile.m, n = tile.n, d = tile.k, e = bytes_of(dtype);
  const std::int32_t threads = (tile.waves + producers_of(gpu, tile)) * gpu.lanes_per_wave;
  const double computing = tile.waves * gpu.lanes_per_wave;
  const double stages = tile.pipeline != Pipeline::serial ? 2 : 1;
  const bool wgmma = gpu.async_tile_copy;
  const double blocks = (stages + (wgmma && d > kWideHead ? 1 : stages)) * m * d * e;
  const double rows = std::min(m, kSlicedQueries);
  // With wgmma scores and dP make room for P, T and dQ.
  const double scores = wgmma ? std::max(2 * m * n, m * n * e / 2 + m * d) : rows * n * (2 + e / 2);
  const double words = 2 * n * d + scores + (wgmma ? 0 : n * d * e / 4);
  const double lds =
      wgmma ? 2 * n * d * e + blocks + m * n * e + m * d * 4 : n * d * e + blocks + rows * n * e;
  const Resources resources{threads,
                            static_cast<std::int32_t>(std::ceil(words / computing) + kOverheadRegisters),
                            static_cast<std::int32_t>(lds)};
  const double registers = registers_of_thread(gpu, tile.pipeline, threads);
  if (resources.registers_per_thread <= registers && lds <= gpu.lds_bytes_per_workgroup_max) return resources;
  throw UserError(
      fmt::format("tile: gradients of {} keys, {} queries at a time, of {} columns in {} with {} waves need "
                  "{} registers per "
                  "thread and {} bytes of LDS; {} has {:.0f} and {:.0f}: use a smaller tile, more waves or "
                  "the serial pipeline",
                  tile.n, tile.m, tile.k, name_of(dtype), tile.waves, resources.registers_per_thread,
                  resources.lds_bytes, gpu.name, registers, gpu.lds_bytes_per_workgroup_max));
}

void assume_backward_tile(Values& values, const Gpu& gpu, const AttentionProblem& problem) {
  Sides sides = first_tile(values, gpu, problem);
  set_tile(values, sides);
  while (!fits(values, gpu, problem) && (sides.queries > kTileStep || sides.keys > kTileStep)) {
    std::int64_t& longer =
        sides.keys > sides.queries || sides.queries == kTileStep ? sides.keys : sides.queries;
    longer = halved(longer);
    const std::int64_t keys = gpu.lanes_per_wave == 64 ? kKeysOfWave : kKeysOfWarp;
    sides.waves = std::max<std::int64_t>(gpu.simds_per_cu, sides.keys / keys);
    set_tile(values, sides);
  }
}

Axis backward_tile_axis(const Values& base, const Gpu& gpu, const AttentionProblem& problem) {
  Axis tiles;
  tiles.name = "tile";
  tiles.travels = true;
  if (base.given("tile_q") || base.given("tile_kv") || base.given("waves")) return tiles;
  const auto add = [&](const Sides& sides) {
    Values values = base;
    set_tile(values, sides);
    if (!fits(values, gpu, problem)) return;
    tiles.coarse.push_back(tiles.values.size());
    tiles.values.push_back({{sides.queries, sides.keys, sides.waves}, 0, [=](Values& into) {
                              set_tile(into, sides);
                              return true;
                            }});
  };
  const Sides start{base["tile_q"], base["tile_kv"], base["waves"]};
  add(start);
  for (const std::int64_t queries : {32, 64, 128}) {
    for (const Sides keys :
         {Sides{0, 64, 4}, Sides{0, 128, 4}, Sides{0, 128, 8}, Sides{0, 256, 4}, Sides{0, 256, 8}}) {
      const Sides sides{queries, keys.keys, keys.waves};
      if (sides.queries != start.queries || sides.keys != start.keys || sides.waves != start.waves)
        add(sides);
    }
  }
  return tiles;
}

}  // namespace tritax
