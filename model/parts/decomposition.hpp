// How the products of a GEMM are shared out among workgroups: Stream-K and its family, as exact ranges.
//
// A GEMM in tiles of BM×BN has t = ceil(M/BM)·ceil(N/BN) tiles, each of i = ceil(K/BK) iterations. All
// iterations lie in one line: tile after tile, and along K within a tile. A decomposition cuts the first
// `split_tiles` tiles evenly among `sharers` workgroups, across tile borders, and leaves the other tiles
// whole:
//
//   data-parallel         no tile is split
//   fixed split           every tile in s parts (split-K)
//   Stream-K              all t·i iterations among g workgroups
//   … + one tile          the t mod p tiles of the last round among p workgroups, whole tiles after them
//   … + two tiles         these and one full round, so that a share is of one to two tiles
//
// Shares differ by one iteration at most; longer shares come first. Where the number of sharers is a multiple
// of the number of split tiles, each tile is split by itself: g = t is data-parallel, and g = s·t a fixed
// split.
//
// CUTLASS 3.x shares its split tiles out in groups, each among as many workgroups. Groups follow each other
// in the line. In the matrix, tiles of different groups lie side by side, so that workgroups at the same
// place of K have neighbours. Groups with one tile more have longer shares.
//
// The owner of a tile is the workgroup with the first iteration of the tile. The owner adds the sums of its
// peers, which are the next workgroups. A workgroup is a peer of at most one tile, the first of its share.
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
  std::int64_t iterations = 0;  // i, per tile

  std::int64_t total() const { return tiles * iterations; }
};

// Tiles of an M×N×K product, in tiles of bm×bn with bk of K per iteration; all at least 1.
TiledGemm tiled_gemm(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t bm, std::int64_t bn,
                     std::int64_t bk);

struct Decomposition {
  TiledGemm gemm;
  std::int64_t split_tiles = 0;  // the first tiles of the line
  std::int64_t sharers = 0;  // workgroups that share the split tiles; every sharer has at least one iteration
  bool whole_tiles_first = false;  // a workgroup does its whole tiles before its share
  std::int64_t groups = 1;         // groups that share split tiles separately; `groups` divides `sharers`

  std::int64_t whole_tiles() const { return gemm.tiles - split_tiles; }
  // Regions of split tiles that are shared out separately: the groups, or each tile alone.
  std::int64_t regions() const;
  // Iterations of a shorter share, and how many shares are one iteration longer. With several groups: of the
  // last group, which is the smallest; its number of longer shares times the number of groups.
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

// Iterations [begin, end) in the line of all split tiles.
struct IterationRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// Iterations of a sharer, and the sharer that has iteration `at` of the split tiles.
IterationRange range_of(const Decomposition& split, std::int64_t sharer);
std::int64_t sharer_at(const Decomposition& split, std::int64_t at);

// Sharers [first, end) of a split tile: the first owns it, the others are its peers.
struct TileSharers {
  std::int64_t first = 0;
  std::int64_t end = 0;

  std::int64_t peers() const { return end - first - 1; }
};
TileSharers sharers_of(const Decomposition& split, std::int64_t tile);

// Number in the GEMM of the tile at a place of the line. Everywhere else in this file, "tile" means the
// place.
std::int64_t tile_at(const Decomposition& split, std::int64_t place);

// What workgroup `number` does, in order: its share, and whole tiles in turn with the other workgroups,
// starting with workgroups without a share. `workgroups` is at least the number of sharers.
std::vector<TilePart> parts_of(const Decomposition& split, std::int64_t number, std::int64_t workgroups);

// Partial sums that are written and added again: all borders between sharers that lie inside a tile.
std::int64_t seams_of(const Decomposition& split);

// Useful share of the time that `units` units take for equal tiles (arXiv:2301.03598 Fig. 1), or for shares.
double utilisation(const Decomposition& split, std::int64_t units);

// --- The family. `p`: workgroups that are resident together. ---------------------------------------------

Decomposition data_parallel(const TiledGemm& gemm);
// s parts per tile, at most one per iteration.
Decomposition fixed_split(const TiledGemm& gemm, std::int64_t parts);
// g workgroups, at most one per iteration.
Decomposition stream_k(const TiledGemm& gemm, std::int64_t grid);
Decomposition one_tile_stream_k(const TiledGemm& gemm, std::int64_t p);
// With fewer than two full rounds the same as one_tile_stream_k.
Decomposition two_tile_stream_k(const TiledGemm& gemm, std::int64_t p);

// The choice of CUTLASS 2.x for a GPU of `units` compute units with room for `occupancy` workgroups each. The
// number of full rounds decides how many tiles are split; a search for the largest saving decides among how
// many workgroups.
Decomposition cutlass_2_stream_k(const TiledGemm& gemm, std::int64_t units, std::int64_t occupancy);

// The choice of CUTLASS 3.x (sm90 and later): data-parallel if the last round is at least half full, two
// tiles otherwise; at least 8 iterations per share, and sharers in whole clusters. `most_groups` (CUTLASS: 8,
// or the lesser side of the grid of tiles, in clusters) limits the number of groups. CUTLASS takes the
// largest number that divides sharers and split tiles, or else sharers alone, and leaves at least 8
// iterations per share; one group where every tile is split by itself. Left out: CUTLASS moves a seam that is
// less than 8 iterations away from a border of tiles onto the border, and workgroups of a cluster load
// operands together.
Decomposition cutlass_3_stream_k(const TiledGemm& gemm, std::int64_t p, std::int64_t cluster,
                                 std::int64_t most_groups = 1);

// Policy 0 of composable_kernel is data-parallel; policies s = 1, 2, … split (s - 1) full rounds and the
// tiles of the last one. The source has policies up to 4. Policies 5 and 6 continue the same rule, which
// gives the seven policies of arXiv:2408.11417 (that these are the paper's policies is our reading). `whole`:
// as the source has it, with as many sharers as split tiles, so that nothing is split along K; otherwise
// `grid` workgroups share the split tiles.
inline constexpr int kPolicies = 7;
Decomposition composable_kernel_policy(const TiledGemm& gemm, std::int64_t grid, int policy, bool whole);

// tritonBLAS: the full rounds first, then the tiles of the last round shared among all workgroups.
Decomposition triton_stream_k(const TiledGemm& gemm, std::int64_t grid);
// Number of counters from which the persistent workgroups of a die draw tiles, where workgroups steal work.
std::int64_t triton_steal_counters(std::int64_t tiles);

}  // namespace tritax
