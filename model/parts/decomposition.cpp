#include "model/parts/decomposition.hpp"

#include <algorithm>
#include <limits>

#include "model/core/ceil_div.hpp"
#include "model/core/error.hpp"

namespace tritax {

namespace {

Decomposition shared_out(const TiledGemm& gemm, std::int64_t split_tiles, std::int64_t sharers) {
  TRITAX_ASSERT(gemm.tiles > 0 && gemm.iterations > 0, "a GEMM without tiles or iterations");
  TRITAX_ASSERT(split_tiles >= 0 && split_tiles <= gemm.tiles, "more split tiles than there are");
  Decomposition split;
  split.gemm = gemm;
  split.split_tiles = split_tiles;
  split.sharers = std::clamp<std::int64_t>(sharers, 0, split_tiles * gemm.iterations);
  TRITAX_ASSERT(split.split_tiles == 0 || split.sharers > 0, "split tiles that nobody has");
  return split;
}

// Sharers of one region, and the iterations of the region in the line. Where tiles do not divide evenly, the
// first regions have one tile more.
struct IterationRegion {
  std::int64_t sharers = 0;
  std::int64_t begin = 0;
  std::int64_t iterations = 0;
};

IterationRegion region_of(const Decomposition& split, std::int64_t number) {
  const std::int64_t regions = split.regions();
  const std::int64_t least = split.split_tiles / regions;
  const std::int64_t larger = split.split_tiles % regions;
  const std::int64_t before = number * least + std::min(number, larger);
  const std::int64_t tiles = least + (number < larger ? 1 : 0);
  return {split.sharers / regions, before * split.gemm.iterations, tiles * split.gemm.iterations};
}

std::int64_t region_at(const Decomposition& split, std::int64_t place) {
  const std::int64_t regions = split.regions();
  const std::int64_t least = split.split_tiles / regions;
  const std::int64_t in_larger = split.split_tiles % regions * (least + 1);
  return place < in_larger ? place / (least + 1) : split.split_tiles % regions + (place - in_larger) / least;
}

// CUTLASS 2.x: number of workgroups that share the split tiles, and the iterations that the split saves.
struct BlockSearch {
  std::int64_t blocks = 0;
  std::int64_t savings = std::numeric_limits<std::int64_t>::min();
};

BlockSearch search_blocks(std::int64_t tiles, std::int64_t iterations, std::int64_t units,
                          std::int64_t most_of_unit, bool partial_wave) {
  constexpr std::int64_t kLeastOfBlock = 2;  // iterations
  constexpr double kSkewCost = 0.02;  // share of the iterations, per peer, unless all tiles are cut alike
  constexpr std::int64_t kCostOfWave = 2;
  constexpr double kCostOfPeer = 2;
  const std::int64_t low = partial_wave ? std::min(units, tiles + 1) : units;
  const std::int64_t high = std::min(units * most_of_unit, tiles * iterations / kLeastOfBlock);
  BlockSearch best;
  for (std::int64_t blocks = low; blocks <= high; ++blocks) {
    const std::int64_t waves = ceil_div(blocks, units);
    const std::int64_t taken = ceil_div(tiles * iterations, blocks) * waves;
    const bool alike = blocks % tiles == 0;
    const auto peers = static_cast<double>(alike ? blocks / tiles : ceil_div(blocks, tiles) + 1);
    const double skew = alike ? 0 : kSkewCost * peers * static_cast<double>(taken);
    const auto fixup =
        static_cast<std::int64_t>(static_cast<double>(kCostOfWave * waves) + skew + kCostOfPeer * peers);
    const std::int64_t savings = iterations * ceil_div(tiles, units) - taken - fixup;
    if (savings >= best.savings) best = {blocks, savings};
  }
  return best;
}

}  // namespace

TiledGemm tiled_gemm(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t bm, std::int64_t bn,
                     std::int64_t bk) {
  return {ceil_div(m, bm) * ceil_div(n, bn), ceil_div(k, bk)};
}

std::int64_t Decomposition::regions() const {
  return split_tiles > 0 && sharers >= split_tiles && sharers % split_tiles == 0 ? split_tiles : groups;
}

std::int64_t Decomposition::share() const {
  if (sharers == 0) return 0;
  const IterationRegion region = region_of(*this, regions() - 1);
  return region.iterations / region.sharers;
}

std::int64_t Decomposition::longest_share() const {
  if (sharers == 0) return 0;
  const IterationRegion region = region_of(*this, 0);
  return ceil_div(region.iterations, region.sharers);
}

std::int64_t Decomposition::longer_shares() const {
  if (sharers == 0) return 0;
  const IterationRegion region = region_of(*this, regions() - 1);
  return region.iterations % region.sharers * regions();
}

bool Decomposition::operator==(const Decomposition& other) const {
  return gemm.tiles == other.gemm.tiles && gemm.iterations == other.gemm.iterations &&
         split_tiles == other.split_tiles && sharers == other.sharers &&
         whole_tiles_first == other.whole_tiles_first && groups == other.groups;
}

IterationRange range_of(const Decomposition& split, std::int64_t sharer) {
  TRITAX_ASSERT(sharer >= 0 && sharer < split.sharers, "no such sharer");
  const IterationRegion region = region_of(split, sharer / (split.sharers / split.regions()));
  const std::int64_t number = sharer % region.sharers;
  const std::int64_t share = region.iterations / region.sharers;
  const std::int64_t longer = region.iterations % region.sharers;
  const std::int64_t begin = region.begin + number * share + std::min(number, longer);
  return {begin, begin + share + (number < longer ? 1 : 0)};
}

std::int64_t sharer_at(const Decomposition& split, std::int64_t at) {
  const std::int64_t region_number = region_at(split, at / split.gemm.iterations);
  const IterationRegion region = region_of(split, region_number);
  const std::int64_t share = region.iterations / region.sharers;
  const std::int64_t longer = region.iterations % region.sharers;
  const std::int64_t inside = at - region.begin;
  const std::int64_t by_longer = longer * (share + 1);
  const std::int64_t number =
      inside < by_longer ? inside / (share + 1) : longer + (inside - by_longer) / share;
  return region_number * region.sharers + number;
}

TileSharers sharers_of(const Decomposition& split, std::int64_t tile) {
  TRITAX_ASSERT(tile >= 0 && tile < split.split_tiles, "no such split tile");
  const std::int64_t begin = tile * split.gemm.iterations;
  return {sharer_at(split, begin), sharer_at(split, begin + split.gemm.iterations - 1) + 1};
}

std::int64_t tile_at(const Decomposition& split, std::int64_t place) {
  if (place >= split.split_tiles || split.regions() == split.split_tiles) return place;
  const std::int64_t group = region_at(split, place);
  const std::int64_t first = region_of(split, group).begin / split.gemm.iterations;
  return (place - first) * split.groups + group;
}

std::vector<TilePart> parts_of(const Decomposition& split, std::int64_t number, std::int64_t workgroups) {
  TRITAX_ASSERT(number >= 0 && number < workgroups && split.sharers <= workgroups, "no such workgroup");
  const std::int64_t depth = split.gemm.iterations;
  std::vector<TilePart> shared;
  if (number < split.sharers) {
    const IterationRange range = range_of(split, number);
    for (std::int64_t at = range.begin; at < range.end;) {
      const std::int64_t tile = at / depth;
      const std::int64_t end = std::min(range.end, (tile + 1) * depth);
      shared.push_back({tile, at - tile * depth, end - tile * depth});
      at = end;
    }
  }
  std::vector<TilePart> whole;
  const std::int64_t first = (number - split.sharers + workgroups) % workgroups;
  for (std::int64_t tile = first; tile < split.whole_tiles(); tile += workgroups) {
    whole.push_back({split.split_tiles + tile, 0, depth});
  }
  std::vector<TilePart>& earlier = split.whole_tiles_first ? whole : shared;
  const std::vector<TilePart>& later = split.whole_tiles_first ? shared : whole;
  earlier.insert(earlier.end(), later.begin(), later.end());
  return earlier;
}

std::int64_t seams_of(const Decomposition& split) {
  std::int64_t seams = 0;
  for (std::int64_t sharer = 0; sharer < split.sharers; ++sharer) {
    if (range_of(split, sharer).begin % split.gemm.iterations != 0) ++seams;
  }
  return seams;
}

double utilisation(const Decomposition& split, std::int64_t units) {
  const std::int64_t waves = ceil_div(std::max<std::int64_t>(split.sharers, 1), units);
  std::int64_t taken = ceil_div(split.whole_tiles(), units) * split.gemm.iterations;
  if (split.sharers > 0) taken += waves * split.longest_share();
  return static_cast<double>(split.gemm.total()) / static_cast<double>(taken * units);
}

Decomposition data_parallel(const TiledGemm& gemm) { return shared_out(gemm, 0, 0); }

Decomposition fixed_split(const TiledGemm& gemm, std::int64_t parts) {
  return stream_k(gemm, gemm.tiles * std::min(parts, gemm.iterations));
}

Decomposition stream_k(const TiledGemm& gemm, std::int64_t grid) {
  if (grid == gemm.tiles) return data_parallel(gemm);
  return shared_out(gemm, gemm.tiles, grid);
}

Decomposition one_tile_stream_k(const TiledGemm& gemm, std::int64_t p) {
  const std::int64_t last_wave = gemm.tiles % p;
  return last_wave == 0 ? data_parallel(gemm) : shared_out(gemm, last_wave, p);
}

Decomposition two_tile_stream_k(const TiledGemm& gemm, std::int64_t p) {
  if (gemm.tiles % p == 0 || gemm.tiles / p < 2) return one_tile_stream_k(gemm, p);
  return shared_out(gemm, p + gemm.tiles % p, p);
}

Decomposition cutlass_2_stream_k(const TiledGemm& gemm, std::int64_t units, std::int64_t occupancy) {
  const std::int64_t full = gemm.tiles / units;
  const std::int64_t rest = gemm.tiles % units;
  if (rest == 0) return data_parallel(gemm);
  const auto search = [&](std::int64_t tiles, std::int64_t of_unit, bool partial_wave) {
    return search_blocks(tiles, gemm.iterations, units, of_unit, partial_wave);
  };
  const auto accepted = [&](std::int64_t tiles, const BlockSearch& found) {
    return found.savings < 0 ? data_parallel(gemm) : shared_out(gemm, tiles, found.blocks);
  };
  if (full < occupancy) return accepted(rest, search(rest, occupancy - full, true));
  if (occupancy > 1 && full % occupancy == occupancy - 1) {
    const BlockSearch found = search(rest, 1, true);
    if (found.savings >= 0) return accepted(rest, found);
  }
  return accepted(rest + units, search(rest + units, occupancy - (full - 1) % occupancy, false));
}

namespace {

constexpr std::int64_t kLeastOfUnit = 8;  // iterations per share of CUTLASS 3.x

std::int64_t cutlass_3_groups(const Decomposition& split, std::int64_t cluster, std::int64_t most) {
  const std::int64_t units = split.sharers / cluster;
  const std::int64_t tiles = split.split_tiles / cluster;
  std::int64_t fallback = 1;
  for (std::int64_t groups = most; groups > 1; --groups) {
    if (units % groups != 0) continue;
    const std::int64_t share = tiles / groups * cluster * split.gemm.iterations / (split.sharers / groups);
    if (share < kLeastOfUnit) continue;
    if (tiles % groups == 0) return groups;
    if (fallback == 1) fallback = groups;
  }
  return fallback;
}

}  // namespace

Decomposition cutlass_3_stream_k(const TiledGemm& gemm, std::int64_t p, std::int64_t cluster,
                                 std::int64_t most_groups) {
  const std::int64_t full = gemm.tiles / p;
  const std::int64_t rest = gemm.tiles % p;
  if (rest == 0 || gemm.iterations <= kLeastOfUnit || 2 * rest >= p) return data_parallel(gemm);
  const std::int64_t whole = (full > 1 ? full - 1 : 0) * p;
  const std::int64_t tiles = (gemm.tiles - whole) / cluster * cluster;
  const std::int64_t worth = tiles * gemm.iterations / kLeastOfUnit;
  const std::int64_t sharers = std::min(p, worth) / cluster * cluster;
  if (tiles == 0 || sharers == 0) return data_parallel(gemm);
  Decomposition split = shared_out(gemm, tiles, sharers);
  if (split.regions() == 1) split.groups = cutlass_3_groups(split, cluster, most_groups);
  return split;
}

Decomposition composable_kernel_policy(const TiledGemm& gemm, std::int64_t grid, int policy, bool whole) {
  TRITAX_ASSERT(policy >= 0 && policy < kPolicies, "no such policy");
  if (policy == 0) return data_parallel(gemm);
  const std::int64_t full_waves = policy - 1;
  const bool fits = gemm.tiles > std::max<std::int64_t>(1, full_waves) * grid;
  const std::int64_t tiles = fits ? full_waves * grid + gemm.tiles % grid : gemm.tiles;
  if (tiles == 0) return data_parallel(gemm);
  return shared_out(gemm, tiles, whole ? tiles : grid);
}

Decomposition triton_stream_k(const TiledGemm& gemm, std::int64_t grid) {
  Decomposition split = one_tile_stream_k(gemm, grid);
  split.whole_tiles_first = true;
  return split;
}

std::int64_t triton_steal_counters(std::int64_t tiles) {
  if (tiles <= 512) return 8;
  if (tiles <= 1536) return 4;
  return tiles <= 2048 ? 2 : 1;
}

}  // namespace tritax
