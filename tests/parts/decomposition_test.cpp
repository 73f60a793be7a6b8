#include "model/parts/decomposition.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

namespace tritax {
namespace {

using Parts = std::vector<TilePart>;

// The example of arXiv:2301.03598 Fig. 2b: 384×384×128 in tiles of 128×128, 4 of K an iteration, on 4 units.
TiledGemm example_of_the_paper() { return tiled_gemm(384, 384, 128, 128, 128, 4); }

TiledGemm cubed(std::int64_t side) { return tiled_gemm(side, side, side, 128, 128, 32); }

TEST(Decomposition, SharesTheExampleOfThePaperOutIterationByIteration) {
  const TiledGemm gemm = example_of_the_paper();
  EXPECT_EQ(gemm.tiles, 9);
  EXPECT_EQ(gemm.iterations, 32);
  const Decomposition split = stream_k(gemm, 4);
  EXPECT_EQ(split.share(), 72);
  EXPECT_EQ(split.longer_shares(), 0);
  EXPECT_EQ(parts_of(split, 0, 4), (Parts{{0, 0, 32}, {1, 0, 32}, {2, 0, 8}}));
  EXPECT_EQ(parts_of(split, 1, 4), (Parts{{2, 8, 32}, {3, 0, 32}, {4, 0, 16}}));
  EXPECT_EQ(parts_of(split, 2, 4), (Parts{{4, 16, 32}, {5, 0, 32}, {6, 0, 24}}));
  EXPECT_EQ(parts_of(split, 3, 4), (Parts{{6, 24, 32}, {7, 0, 32}, {8, 0, 32}}));
  EXPECT_EQ(seams_of(split), 3);
  const TileSharers of_four = sharers_of(split, 4);
  EXPECT_EQ(of_four.first, 1);
  EXPECT_EQ(of_four.end, 3);
}

TEST(Decomposition, UsesAsMuchOfTheUnitsAsThePaperSays) {
  EXPECT_DOUBLE_EQ(utilisation(data_parallel(example_of_the_paper()), 4), 0.75);
  EXPECT_DOUBLE_EQ(utilisation(data_parallel(tiled_gemm(384, 384, 128, 128, 64, 4)), 4), 0.9);
  EXPECT_DOUBLE_EQ(utilisation(fixed_split(example_of_the_paper(), 2), 4), 0.9);
  EXPECT_DOUBLE_EQ(utilisation(stream_k(example_of_the_paper(), 4), 4), 1.0);
}

TEST(Decomposition, LeavesFullWavesWholeInTheHybrids) {
  const TiledGemm gemm{21, 32};
  const Decomposition two = two_tile_stream_k(gemm, 4);
  EXPECT_EQ(two.split_tiles, 5);
  EXPECT_EQ(two.sharers, 4);
  EXPECT_EQ(two.share(), 40);
  EXPECT_EQ(two.whole_tiles(), 16);
  const Decomposition one = one_tile_stream_k(gemm, 4);
  EXPECT_EQ(one.split_tiles, 1);
  EXPECT_EQ(one.share(), 8);
  EXPECT_EQ(one.whole_tiles(), 20);
  EXPECT_EQ(two_tile_stream_k({7, 32}, 4), one_tile_stream_k({7, 32}, 4));
  EXPECT_EQ(two_tile_stream_k({8, 32}, 4), data_parallel({8, 32}));
  EXPECT_EQ(parts_of(triton_stream_k(gemm, 4), 0, 4).back(), (TilePart{0, 0, 8}));
}

struct Golden {
  TiledGemm gemm;
  std::int64_t occupancy, whole_tiles, split_tiles, sharers, share, longer;
};

// Of an independent implementation of NVIDIA/cutlass @7107b05 threadblock_swizzle_streamk.h, 108 units.
TEST(Decomposition, IsThatOfCutlass2) {
  const TiledGemm wide = tiled_gemm(256, 3584, 8192, 128, 128, 32);
  const TiledGemm deep = tiled_gemm(128, 128, 16384, 128, 128, 32);
  const TiledGemm small = tiled_gemm(384, 384, 128, 128, 128, 32);
  const std::array<Golden, 16> rows{{
      {cubed(2048), 1, 108, 148, 108, 87, 76},
      {cubed(2048), 2, 108, 148, 108, 87, 76},
      {cubed(1024), 1, 0, 64, 108, 18, 104},
      {cubed(1024), 2, 0, 64, 108, 18, 104},
      {wide, 1, 0, 56, 108, 132, 80},
      {wide, 2, 0, 56, 108, 132, 80},
      {deep, 1, 0, 1, 16, 32, 0},
      {deep, 2, 0, 1, 16, 32, 0},
      {cubed(4096), 1, 864, 160, 108, 189, 68},
      {cubed(3072), 1, 432, 144, 108, 128, 0},
      {cubed(3072), 2, 540, 36, 108, 32, 0},
      {cubed(8192), 1, 4096, 0, 0, 0, 0},
      {cubed(8192), 2, 4096, 0, 0, 0, 0},
      {small, 1, 9, 0, 0, 0, 0},
      {small, 2, 9, 0, 0, 0, 0},
      {cubed(128), 1, 1, 0, 0, 0, 0},
  }};
  for (const Golden& row : rows) {
    SCOPED_TRACE(testing::Message() << row.gemm.tiles << " tiles of " << row.gemm.iterations << ", occupancy "
                                    << row.occupancy);
    const Decomposition split = cutlass_2_stream_k(row.gemm, 108, row.occupancy);
    EXPECT_EQ(split.whole_tiles(), row.whole_tiles);
    EXPECT_EQ(split.split_tiles, row.split_tiles);
    EXPECT_EQ(split.sharers, row.sharers);
    EXPECT_EQ(split.share(), row.share);
    EXPECT_EQ(split.longer_shares(), row.longer);
  }
  EXPECT_EQ(cutlass_2_stream_k(cubed(3072), 108, 2).regions(), 36);
}

TEST(Decomposition, IsThatOfCutlass3) {
  // The last wave is half full, or full, or there is too little of K: data-parallel.
  EXPECT_EQ(cutlass_3_stream_k({150, 64}, 100, 1), data_parallel({150, 64}));
  EXPECT_EQ(cutlass_3_stream_k({200, 64}, 100, 1), data_parallel({200, 64}));
  EXPECT_EQ(cutlass_3_stream_k({149, 8}, 100, 1), data_parallel({149, 8}));
  const Decomposition two_waves = cutlass_3_stream_k({249, 64}, 100, 1);
  EXPECT_EQ(two_waves.split_tiles, 149);
  EXPECT_EQ(two_waves.sharers, 100);
  EXPECT_EQ(cutlass_3_stream_k({149, 64}, 100, 1).split_tiles, 149);
  // At least 8 iterations a share: 3 tiles of 20 have room for 7, whole clusters for 6.
  EXPECT_EQ(cutlass_3_stream_k({3, 20}, 100, 1).sharers, 7);
  EXPECT_EQ(cutlass_3_stream_k({4, 20}, 100, 2).sharers, 10);
  EXPECT_EQ(cutlass_3_stream_k({16, 64}, 132, 1).regions(), 16);  // 128 among 16 tiles: a split in 8
}

TEST(Decomposition, HasTheGroupsOfCutlass3) {
  const auto groups = [](std::int64_t tiles, std::int64_t depth, std::int64_t p, std::int64_t most) {
    return cutlass_3_stream_k({tiles, depth}, p, 1, most).groups;
  };
  EXPECT_EQ(groups(248, 64, 100, 8), 4);  // 4 divides 148 split tiles and 100 sharers, 5 only these
  EXPECT_EQ(groups(249, 64, 100, 8), 5);  // nothing divides 149: the most that divide the sharers
  EXPECT_EQ(groups(249, 64, 100, 4), 4);
  EXPECT_EQ(groups(249, 64, 100, 1), 1);
  EXPECT_EQ(groups(16, 64, 132, 8), 1);   // every tile is split by itself
  EXPECT_EQ(groups(200, 64, 100, 8), 1);  // nothing is split
  EXPECT_EQ(groups(50, 64, 132, 8), 2);   // 6 divide the sharers alone
  EXPECT_EQ(groups(7, 70, 60, 8), 1);     // in groups the shares of some would be of 7 or less
}

TEST(Decomposition, HasTilesOfGroupsSideBySide) {
  const Decomposition split = cutlass_3_stream_k({249, 64}, 100, 1, 8);
  EXPECT_EQ(split.split_tiles, 149);
  // Four groups of 30 tiles, one of 29, each of 20 sharers.
  EXPECT_EQ(tile_at(split, 0), 0);
  EXPECT_EQ(tile_at(split, 1), 5);
  EXPECT_EQ(tile_at(split, 29), 145);
  EXPECT_EQ(tile_at(split, 30), 1);
  EXPECT_EQ(tile_at(split, 120), 4);
  EXPECT_EQ(tile_at(split, 148), 144);
  EXPECT_EQ(tile_at(split, 149), 149);
  EXPECT_EQ(range_of(split, 20).begin, 30 * 64);
  EXPECT_EQ(range_of(split, 80).begin, 120 * 64);
  EXPECT_EQ(split.longest_share(), 96);
  EXPECT_EQ(split.share(), 92);
}

TEST(Decomposition, HasTheTilesOfComposableKernelsPolicies) {
  const auto split_tiles = [](std::int64_t tiles) {
    std::vector<std::int64_t> all;
    for (int policy = 0; policy < kPolicies; ++policy)
      all.push_back(composable_kernel_policy({tiles, 16}, 104, policy, false).split_tiles);
    return all;
  };
  EXPECT_EQ(split_tiles(1000), (std::vector<std::int64_t>{0, 64, 168, 272, 376, 480, 584}));
  EXPECT_EQ(split_tiles(150), (std::vector<std::int64_t>{0, 46, 150, 150, 150, 150, 150}));
  EXPECT_EQ(split_tiles(80), (std::vector<std::int64_t>{0, 80, 80, 80, 80, 80, 80}));
}

TEST(Decomposition, SplitsNothingAlongKAsComposableKernelsSourceDoes) {
  const Decomposition split = composable_kernel_policy({1000, 16}, 104, 2, true);
  EXPECT_EQ(split.sharers, 168);
  EXPECT_EQ(split.share(), 16);
  EXPECT_EQ(seams_of(split), 0);
}

TEST(Decomposition, DrawsFromAsManyCountersAsTritonBlas) {
  EXPECT_EQ(triton_steal_counters(512), 8);
  EXPECT_EQ(triton_steal_counters(1536), 4);
  EXPECT_EQ(triton_steal_counters(2048), 2);
  EXPECT_EQ(triton_steal_counters(2049), 1);
}

std::int64_t drawn(std::int64_t low, std::int64_t high) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<std::int64_t>(low, high + 1));
}

TiledGemm some_gemm() { return {drawn(1, 60), drawn(1, 40)}; }

std::vector<Decomposition> family(const TiledGemm& gemm) {
  const std::int64_t p = drawn(1, 40);
  std::vector<Decomposition> all{data_parallel(gemm),
                                 fixed_split(gemm, drawn(1, 50)),
                                 stream_k(gemm, drawn(1, 100)),
                                 one_tile_stream_k(gemm, p),
                                 two_tile_stream_k(gemm, p),
                                 cutlass_2_stream_k(gemm, p, drawn(1, 3)),
                                 cutlass_3_stream_k(gemm, p, drawn(1, 2)),
                                 triton_stream_k(gemm, p)};
  for (int policy = 0; policy < kPolicies; ++policy) {
    all.push_back(composable_kernel_policy(gemm, p, policy, false));
    all.push_back(composable_kernel_policy(gemm, p, policy, true));
  }
  return all;
}

RC_GTEST_PROP(Decomposition, GivesEveryIterationToOneWorkgroup, ()) {
  const TiledGemm gemm = some_gemm();
  for (const Decomposition& split : family(gemm)) {
    const std::int64_t workgroups = std::max<std::int64_t>(1, split.sharers) + drawn(0, 5);
    std::vector<int> times(static_cast<std::size_t>(gemm.total()), 0);
    for (std::int64_t number = 0; number < workgroups; ++number) {
      for (const TilePart& part : parts_of(split, number, workgroups)) {
        RC_ASSERT(part.begin < part.end);
        for (std::int64_t i = part.begin; i < part.end; ++i)
          ++times[static_cast<std::size_t>(part.tile * gemm.iterations + i)];
      }
    }
    RC_ASSERT(std::all_of(times.begin(), times.end(), [](int count) { return count == 1; }));
  }
}

RC_GTEST_PROP(Decomposition, GivesEveryIterationToOneWorkgroupInGroupsToo, ()) {
  const Decomposition split = cutlass_3_stream_k(some_gemm(), drawn(2, 40), 1, 8);
  std::int64_t next = 0;
  for (std::int64_t sharer = 0; sharer < split.sharers; ++sharer) {
    const IterationRange range = range_of(split, sharer);
    RC_ASSERT(range.begin == next && range.end > range.begin);
    RC_ASSERT(range.end - range.begin >= split.share() && range.end - range.begin <= split.longest_share());
    RC_ASSERT(sharer_at(split, range.begin) == sharer && sharer_at(split, range.end - 1) == sharer);
    next = range.end;
  }
  RC_ASSERT(next == split.split_tiles * split.gemm.iterations);
  std::vector<bool> seen(static_cast<std::size_t>(split.gemm.tiles), false);
  for (std::int64_t place = 0; place < split.gemm.tiles; ++place) {
    const std::int64_t tile = tile_at(split, place);
    RC_ASSERT(tile >= 0 && tile < split.gemm.tiles && !seen[static_cast<std::size_t>(tile)]);
    seen[static_cast<std::size_t>(tile)] = true;
  }
}

RC_GTEST_PROP(Decomposition, CutsSharesThatDifferByOneAndAreOneRangeEach, ()) {
  for (const Decomposition& split : family(some_gemm())) {
    std::int64_t at = 0;
    std::int64_t longer = 0;
    for (std::int64_t sharer = 0; sharer < split.sharers; ++sharer) {
      const IterationRange range = range_of(split, sharer);
      RC_ASSERT(range.begin == at);
      const std::int64_t size = range.end - range.begin;
      RC_ASSERT(size == split.share() || size == split.share() + 1);
      longer += size - split.share();
      for (at = range.begin; at < range.end; ++at) RC_ASSERT(sharer_at(split, at) == sharer);
    }
    RC_ASSERT(at == split.split_tiles * split.gemm.iterations);
    RC_ASSERT(longer == split.longer_shares());
  }
}

// Who has the first iteration of a tile owns it; everybody else on it is a peer, and that of no other tile.
RC_GTEST_PROP(Decomposition, HasOneOwnerATileAndOnePartialSumAPeer, ()) {
  for (const Decomposition& split : family(some_gemm())) {
    std::int64_t peers = 0;
    for (std::int64_t tile = 0; tile < split.split_tiles; ++tile) {
      const TileSharers sharers = sharers_of(split, tile);
      peers += sharers.peers();
      for (std::int64_t sharer = sharers.first; sharer < sharers.end; ++sharer) {
        const Parts parts = parts_of(split, sharer, split.sharers);
        const auto part =
            std::find_if(parts.begin(), parts.end(), [&](const TilePart& one) { return one.tile == tile; });
        RC_ASSERT(part != parts.end());
        RC_ASSERT((part->begin == 0) == (sharer == sharers.first));
        RC_ASSERT((part->end == split.gemm.iterations) == (sharer == sharers.end - 1));
      }
    }
    RC_ASSERT(peers == seams_of(split));
  }
}

RC_GTEST_PROP(Decomposition, IsAFixedSplitWhereTheGridIsAMultipleOfTheTiles, ()) {
  const TiledGemm gemm = some_gemm();
  const std::int64_t parts = drawn(1, gemm.iterations);
  const Decomposition split = stream_k(gemm, parts * gemm.tiles);
  RC_ASSERT(split == fixed_split(gemm, parts));
  if (parts == 1) RC_ASSERT(split == data_parallel(gemm));
  for (std::int64_t tile = 0; tile < split.split_tiles; ++tile) {
    RC_ASSERT(sharers_of(split, tile).peers() == parts - 1);
    RC_ASSERT(sharers_of(split, tile).first == tile * parts);
  }
}

// One to two tiles each, so at most two workgroups to a tile.
RC_GTEST_PROP(Decomposition, HasAtMostOnePeerATileInTheTwoTileHybrid, ()) {
  const std::int64_t p = drawn(1, 40);
  const TiledGemm gemm{drawn(2 * p, 8 * p), drawn(2, 40)};
  const Decomposition split = two_tile_stream_k(gemm, p);
  for (std::int64_t tile = 0; tile < split.split_tiles; ++tile)
    RC_ASSERT(sharers_of(split, tile).peers() <= 1);
  if (split.sharers > 0) {
    RC_ASSERT(split.share() >= gemm.iterations);
    RC_ASSERT(split.share() + (split.longer_shares() > 0 ? 1 : 0) <= 2 * gemm.iterations);
  }
}

}  // namespace
}  // namespace tritax
