#include "model/parts/grid_order.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

namespace tritax {
namespace {

TEST(GridOrder, FollowsTheWorkedExampleOfTheIrisKernels) {
  // ROCm/iris examples/07: G = 304, X = 8, p = 9; M = 8192, Nl = 512, tiles 256×128, groups of 6.
  EXPECT_EQ(remap_to_dies(9, 304, 8), 39);
  const TileIndex index = grouped_tile(39, {32, 4}, 6);
  EXPECT_EQ(index.row, 9);
  EXPECT_EQ(index.col, 2);
}

RC_GTEST_PROP(RemapToDies, IsABijectionForEveryGridAndEveryNumberOfDies, ()) {
  const auto workgroups = *rc::gen::inRange(1, 2000);
  const auto dies = *rc::gen::inRange(1, 17);
  std::vector<bool> seen(static_cast<std::size_t>(workgroups), false);
  for (std::int32_t p = 0; p < workgroups; ++p) {
    const std::int32_t mapped = remap_to_dies(p, workgroups, dies);
    RC_ASSERT(mapped >= 0 && mapped < workgroups);
    RC_ASSERT(!seen[static_cast<std::size_t>(mapped)]);
    seen[static_cast<std::size_t>(mapped)] = true;
  }
}

RC_GTEST_PROP(RemapToDies, GivesEveryDieAContiguousRange, ()) {
  const auto workgroups = *rc::gen::inRange(1, 2000);
  const auto dies = *rc::gen::inRange(1, 17);
  std::vector<int> die_of(static_cast<std::size_t>(workgroups));
  for (std::int32_t p = 0; p < workgroups; ++p) {
    die_of[static_cast<std::size_t>(remap_to_dies(p, workgroups, dies))] = p % dies;
  }
  RC_ASSERT(std::is_sorted(die_of.begin(), die_of.end()));
}

RC_GTEST_PROP(RemapToDies, IsTheIrisFormulaWhereThatIsABijection, ()) {
  const auto dies = *rc::gen::inRange(1, 17);
  const auto workgroups = dies * *rc::gen::inRange(1, 100);
  const auto p = *rc::gen::inRange(0, workgroups);
  RC_ASSERT(remap_to_dies(p, workgroups, dies) == p % dies * (workgroups / dies) + p / dies);
}

// HipKittens (arXiv:2511.08083) at 9216³, tiles of 192×256: chunks of 216 and windows of 7.
TEST(ChunkToDies, FollowsTheWorkedExampleOfHipKittens) {
  const TileGrid grid{48, 36};
  const auto tile_of = [&](std::int32_t w) {
    const TileIndex tile = grouped_tile(chunk_to_dies(w, grid.count(), 8, 216), grid, 7);
    return std::pair{tile.row, tile.col};
  };
  EXPECT_EQ(chunk_to_dies(1, grid.count(), 8, 216), 216);
  EXPECT_EQ(tile_of(0), (std::pair{0, 0}));
  EXPECT_EQ(tile_of(8), (std::pair{1, 0}));
  EXPECT_EQ(tile_of(16), (std::pair{2, 0}));
  EXPECT_EQ(tile_of(56), (std::pair{0, 1}));
  EXPECT_EQ(tile_of(1), (std::pair{6, 30}));
}

// Their chunk of 542 on 4332 tiles is one of more than there are for 8 dies, so the formula does nothing:
// what their table measured is the whole share of every die, of which the first four own one more.
TEST(ChunkToDies, OfChunksThatLeaveADieNothingIsTheIdentity) {
  for (const std::int32_t w : {0, 1, 8, 4331}) EXPECT_EQ(chunk_to_dies(w, 4332, 8, 542), w);
  EXPECT_EQ(remap_to_dies(1, 4332, 8), 542);
  EXPECT_EQ(remap_to_dies(5, 4332, 8), 4 * 542 + 541);
}

RC_GTEST_PROP(ChunkToDies, WithAnyWindowVisitsEveryTileOnce, ()) {
  const TileGrid grid{*rc::gen::inRange(1, 60), *rc::gen::inRange(1, 60)};
  const auto dies = *rc::gen::inRange(1, 17);
  const auto chunk = *rc::gen::inRange(1, 600);
  const auto window = *rc::gen::inRange(1, 80);
  std::set<std::pair<int, int>> seen;
  for (std::int32_t w = 0; w < grid.count(); ++w) {
    const TileIndex tile = grouped_tile(chunk_to_dies(w, grid.count(), dies, chunk), grid, window);
    RC_ASSERT(tile.row >= 0 && tile.row < grid.rows && tile.col >= 0 && tile.col < grid.cols);
    RC_ASSERT(seen.emplace(tile.row, tile.col).second);
  }
}

RC_GTEST_PROP(ChunkToDies, GivesWholeChunksToTheDiesInTurn, ()) {
  const auto dies = *rc::gen::inRange(1, 17);
  const auto chunk = *rc::gen::inRange(1, 40);
  const auto workgroups = *rc::gen::inRange(1, 2000);
  const auto remapped = workgroups / (dies * chunk) * (dies * chunk);
  for (std::int32_t w = 0; w < workgroups; ++w) {
    const std::int32_t number = chunk_to_dies(w, workgroups, dies, chunk);
    const bool right = w < remapped ? number / chunk % dies == w % dies : number == w;
    RC_ASSERT(right);
  }
}

RC_GTEST_PROP(ChunkToDies, OfTheWholeShareIsTheRemap, ()) {
  const auto dies = *rc::gen::inRange(1, 17);
  const auto chunk = *rc::gen::inRange(1, 100);
  const auto w = *rc::gen::inRange(0, dies * chunk);
  RC_ASSERT(chunk_to_dies(w, dies * chunk, dies, chunk) == remap_to_dies(w, dies * chunk, dies));
  RC_ASSERT(chunk_to_dies(w, dies * chunk, dies, 1) == w);
}

RC_GTEST_PROP(GroupedTile, VisitsEveryTileOnce, ()) {
  const TileGrid grid{*rc::gen::inRange(1, 60), *rc::gen::inRange(1, 60)};
  const auto group = *rc::gen::inRange(1, 80);
  std::set<std::pair<int, int>> seen;
  for (std::int32_t t = 0; t < grid.count(); ++t) {
    const TileIndex index = grouped_tile(t, grid, group);
    RC_ASSERT(index.row >= 0 && index.row < grid.rows && index.col >= 0 && index.col < grid.cols);
    RC_ASSERT(seen.emplace(index.row, index.col).second);
  }
}

TEST(GroupedTile, WithAGroupOfOneWalksRowByRow) {
  EXPECT_EQ(grouped_tile(5, {3, 4}, 1).row, 1);
  EXPECT_EQ(grouped_tile(5, {3, 4}, 1).col, 1);
}

TEST(GroupedTile, DoesNotOverflowWithHugeGroups) {
  const TileIndex index = grouped_tile(7, {3, 4}, 2147483647);
  EXPECT_EQ(index.row, 1);
  EXPECT_EQ(index.col, 2);
}

}  // namespace
}  // namespace tritax
