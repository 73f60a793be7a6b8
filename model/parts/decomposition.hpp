// How the products of a GEMM are shared out among workgroups: Stream-K and its family, as exact ranges.
//
// A GEMM in tiles of BM×BN has t = ceil(M/BM)·ceil(N/BN) tiles, each of i = ceil(K/BK) iterations. They lie
// in one line, tile after tile, K inside the tile. A decomposition cuts the first `split_tiles` of them
// evenly among `sharers` workgroups, whatever the tiles, and leaves the others whole:
//
//   data-parallel         no tile is split
//   fixed split           every tile in s parts (split-K)
//   Stream-K              all t·i iterations among g workgroups
//   … + one tile          the t mod p tiles of the last wave among p workgroups, whole tiles after them
//   … + two tiles         these and one full wave, so that a share is of one to two tiles
//
// Shares differ by one iteration at most, the longer ones first. Where the sharers are a multiple of the
// split tiles, each tile is split by itself: so g = t is data-parallel, and g = s·t a fixed split.
//
// CUTLASS 3.x shares its split tiles out in groups, each among as many workgroups: group after group in the
// line, but in the matrix the tiles of groups lie side by side, so that workgroups at the same place of K
// have neighbours. Of groups that have a tile more all shares are longer.
//
// The owner of a tile is who has its first iteration: it adds what its peers, the next ones, have summed. A
// workgroup is a peer of one tile at most, the first of its share.
//
//   Example: 9 tiles of 32 iterations among 4: 72 each. Workgroup 1 has iterations 8 to 32 of tile 2, all of
//   tile 3, and 0 to 16 of tile 4, which it owns; workgroup 2 has the other 16 and is its peer.
//
// Sources: arXiv:2301.03598 §4 and §5.2; NVIDIA/cutlass @7107b05
// include/cutlass/gemm/threadblock/threadblock_swizzle_streamk.h (2.x) and @0046e366
// include/cutlass/gemm/kernel/tile_scheduler_params.h (3.x); ROCm/composable_kernel @8e22e1a
// include/ck/tensor_operation/gpu/grid/block_to_ctile_map.hpp; ROCm/tritonBLAS @95e2c47.
#pragma once

#include <cstdint>
#include <vector>

namespace tritax {

struct TiledGemm {
  std::int64_t tiles = 0;       // t
  std::int64_t iterations = 0;  // i, of every tile

  std::int64_t total() const { return tiles * iterations; }
};

// Of an M×N×K product in tiles of bm×bn, bk of K an iteration; all at least 1.
TiledGemm tiled_gemm(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t bm, std::int64_t bn,
                     std::int64_t bk);

struct Decomposition {
  TiledGemm gemm;
  std::int64_t split_tiles = 0;    // the first of all
  std::int64_t sharers = 0;        // workgroups among which they are split; none has nothing
  bool whole_tiles_first = false;  // a workgroup does its whole tiles before its share
  std::int64_t groups = 1;         // that share split tiles apart; they divide the sharers

  std::int64_t whole_tiles() const { return gemm.tiles - split_tiles; }
  // Parts of the split tiles that are shared out apart from each other: the groups, or each tile alone.
  std::int64_t regions() const;
  // Iterations of the shorter shares, and how many sharers have one more; of several groups those of the
  // smallest, the last, and of its sharers times the groups.
  std::int64_t share() const;
  std::int64_t longer_shares() const;
  std::int64_t longest_share() const;

  bool operator==(const Decomposition& other) const;
};

// Iterations [begin, end) of a tile.
struct TilePart {
  std::int64_t tile = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;

  bool operator==(const TilePart&) const = default;
};

// Iterations of all split tiles in line, [begin, end).
struct IterationRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// What a sharer has, and who has iteration `at` of the split tiles.
IterationRange range_of(const Decomposition& split, std::int64_t sharer);
std::int64_t sharer_at(const Decomposition& split, std::int64_t at);

// Sharers [first, end) of a split tile: the first owns it, the others are its peers.
struct TileSharers {
  std::int64_t first = 0;
  std::int64_t end = 0;

  std::int64_t peers() const { return end - first - 1; }
};
TileSharers sharers_of(const Decomposition& split, std::int64_t tile);

// Which tile of the GEMM stands at a place of the line. Everything else here says "tile" for the place.
std::int64_t tile_at(const Decomposition& split, std::int64_t place);

// What workgroup `number` of `workgroups`, at least as many as sharers, does in its turn: its share, and
// whole tiles in turn with the others, those without a share first.
std::vector<TilePart> parts_of(const Decomposition& split, std::int64_t number, std::int64_t workgroups);

// Tiles that are written as partial sums and added again: all seams between sharers.
std::int64_t seams_of(const Decomposition& split);

// Useful share of the time that p units take for t equal tiles (arXiv:2301.03598 Fig. 1), or for shares.
double utilisation(const Decomposition& split, std::int64_t units);

// --- The family. `p`: workgroups that run at once. ------------------------------------------------------

Decomposition data_parallel(const TiledGemm& gemm);
// s parts a tile, at most one an iteration.
Decomposition fixed_split(const TiledGemm& gemm, std::int64_t parts);
// g workgroups, at most one an iteration.
Decomposition stream_k(const TiledGemm& gemm, std::int64_t grid);
Decomposition one_tile_stream_k(const TiledGemm& gemm, std::int64_t p);
// With less than two full waves as one_tile_stream_k.
Decomposition two_tile_stream_k(const TiledGemm& gemm, std::int64_t p);

// What CUTLASS 2.x chooses for a GPU of `units` compute units with room for `occupancy` workgroups each: how
// many tiles to split by the waves that are full, and among how many by a search for the largest saving.
Decomposition cutlass_2_stream_k(const TiledGemm& gemm, std::int64_t units, std::int64_t occupancy);

// What CUTLASS 3.x chooses (sm90 and later): data-parallel if the last wave is half full, two tiles
// otherwise; at least 8 iterations a share, sharers in whole clusters. Of up to `most_groups` (CUTLASS: 8, or
// the lesser side of the grid of tiles, in clusters) it takes as many as divide sharers and split tiles, or
// else sharers alone, and leave at least 8 iterations a share; one where every tile is split by itself. Left
// out: that it moves seams less than 8 iterations away from a border of tiles onto it, and that workgroups of
// a cluster load operands together.
Decomposition cutlass_3_stream_k(const TiledGemm& gemm, std::int64_t p, std::int64_t cluster,
                                 std::int64_t most_groups = 1);

// Policy 0 of composable_kernel is data-parallel; s = 1, 2, … splits the tiles of the last wave and s - 1
// full ones. Its source has policies to 4; 5 and 6 go on by the same rule, which makes the seven of
// arXiv:2408.11417 (that these are the paper's is our reading). `whole`: as that source, which has as many
// sharers as split tiles, so that nothing is split along K; otherwise `grid` workgroups share them.
inline constexpr int kPolicies = 7;
Decomposition composable_kernel_policy(const TiledGemm& gemm, std::int64_t grid, int policy, bool whole);

// tritonBLAS: the full waves first, then the tiles of the last one among all.
Decomposition triton_stream_k(const TiledGemm& gemm, std::int64_t grid);
// Counters from which the persistent workgroups of a die draw tiles, where they steal work.
std::int64_t triton_steal_counters(std::int64_t tiles);

}  // namespace tritax
