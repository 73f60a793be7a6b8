// Cache reuse: the chunk-by-chunk LRU against published hit rates and cases worked out by hand, and the
// per-slab rule of the simulator against the LRU.
//
// Hit rates: HipKittens, arXiv:2511.08083, Table 4 (bf16 GEMM on an MI355X).
#include "sim/cache.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <queue>
#include <random>
#include <vector>

#include "model/parts/grid_order.hpp"
#include "tests/sim/lru_reference.hpp"

namespace tritax {
namespace {

// The same problem through the rule that the simulator uses: a slab is looked up when a tile starts, and what
// missed enters the caches while the tile runs.
HitFractions follow_slabs(const LruProblem& problem) {
  std::vector<ReuseCache> l2(static_cast<std::size_t>(problem.dies), ReuseCache(problem.l2_bytes));
  ReuseCache llc(problem.llc_bytes);
  struct Turn {  // a worker starts a tile; its fill of the tile before ends
    std::int64_t tick = 0;
    std::size_t worker = 0;
    std::size_t tile = 0;
    double l2_fill = 0;
    double llc_fill = 0;
    bool operator>(const Turn& other) const {
      return tick != other.tick ? tick > other.tick : worker > other.worker;
    }
  };
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> turns;
  for (std::size_t w = 0; w < problem.workers.size(); ++w) turns.push({problem.workers[w].first_tick, w, 0});
  double read = 0;
  double missed_l2 = 0;
  double missed_llc = 0;
  while (!turns.empty()) {
    Turn turn = turns.top();
    turns.pop();
    const LruWorker& worker = problem.workers[turn.worker];
    const double now = static_cast<double>(turn.tick);
    ReuseCache& own = l2[static_cast<std::size_t>(worker.die)];
    own.end_fill(turn.l2_fill, now);
    llc.end_fill(turn.llc_fill, now);
    if (turn.tile == worker.tiles.size()) continue;
    turn.l2_fill = turn.llc_fill = 0;
    const auto look_up = [&](std::int32_t slab, double chunk_bytes) {
      read += chunk_bytes;
      if (own.touch(static_cast<std::uint32_t>(slab), now)) return;
      turn.l2_fill += chunk_bytes;
      missed_l2 += chunk_bytes;
      if (problem.llc_bytes > 0 && llc.touch(static_cast<std::uint32_t>(slab), now)) return;
      turn.llc_fill += chunk_bytes;
      missed_llc += chunk_bytes;
    };
    look_up(worker.tiles[turn.tile].row, problem.a_chunk_bytes);
    look_up(problem.rows + worker.tiles[turn.tile].col, problem.b_chunk_bytes);
    own.begin_fill(turn.l2_fill, now);
    llc.begin_fill(turn.llc_fill, now);
    turn.tick += problem.steps;
    ++turn.tile;
    turns.push(turn);
  }
  return {read > 0 ? 1 - missed_l2 / read : 0, missed_l2 > 0 ? 1 - missed_llc / missed_l2 : 0};
}

// Workgroup w goes to die w mod X and, within the die, to worker (w div X) mod `workers`.
LruProblem gemm(std::int64_t size, std::int32_t tile_m, std::int32_t tile_n, std::int32_t step,
                std::int32_t dies, std::int32_t workers,
                const std::function<TileIndex(std::int32_t, const TileGrid&)>& tile_of) {
  LruProblem problem;
  const TileGrid grid{static_cast<std::int32_t>((size + tile_m - 1) / tile_m),
                      static_cast<std::int32_t>((size + tile_n - 1) / tile_n)};
  problem.dies = dies;
  problem.rows = grid.rows;
  problem.cols = grid.cols;
  problem.steps = static_cast<std::int32_t>(size / step);
  problem.a_chunk_bytes = 2.0 * tile_m * step;
  problem.b_chunk_bytes = 2.0 * tile_n * step;
  problem.workers.resize(static_cast<std::size_t>(dies * workers));
  for (std::int32_t w = 0; w < grid.count(); ++w) {
    LruWorker& worker = problem.workers[static_cast<std::size_t>(w % (dies * workers))];
    worker.die = w % dies;
    const TileIndex tile = tile_of(w, grid);
    worker.tiles.push_back({tile.row, tile.col});
  }
  return problem;
}

constexpr double kMebibyte = 1024.0 * 1024.0;

TileIndex row_major(std::int32_t w, const TileGrid& grid) { return {w / grid.cols, w % grid.cols}; }

// Every die owns a contiguous range of tiles, walked in windows of `window` rows. This is Algorithm 1 of
// HipKittens with C = ceil(tiles / dies).
std::function<TileIndex(std::int32_t, const TileGrid&)> windowed(std::int32_t window) {
  return [window](std::int32_t w, const TileGrid& grid) {
    return grouped_tile(remap_to_dies(w, grid.count(), 8), grid, window);
  };
}

// An MI355X: 8 dies of 32 compute units, 4 MiB of L2 each, 256 MiB behind them.
LruProblem mi355x_gemm(std::int64_t size,
                       const std::function<TileIndex(std::int32_t, const TileGrid&)>& tile_of) {
  LruProblem problem = gemm(size, 192, 256, 64, 8, 32, tile_of);
  problem.l2_bytes = 4 * kMebibyte;
  problem.llc_bytes = 256 * kMebibyte;
  return problem;
}

TEST(LruReference, GivesThePublishedHitRatesOfAWindowedWalk) {
  const HitFractions w7 = follow_chunks(mi355x_gemm(9216, windowed(7)));
  EXPECT_NEAR(w7.l2, 0.79, 0.02);
  EXPECT_NEAR(w7.llc, 0.24, 0.06);
  const HitFractions w8 = follow_chunks(mi355x_gemm(14592, windowed(8)));
  EXPECT_NEAR(w8.l2, 0.79, 0.02);
  EXPECT_NEAR(w8.llc, 0.07, 0.03);
}

TEST(LruReference, GivesThePublishedHitRatesOfARowMajorWalk) {
  EXPECT_NEAR(follow_chunks(mi355x_gemm(14592, row_major)).l2, 0.36, 0.02);
  // The L2 rate of this row is published as 55 %, which lock step (73 %) does not explain.
  EXPECT_NEAR(follow_chunks(mi355x_gemm(9216, row_major)).llc, 0.95, 0.05);
}

TEST(LruReference, CountsHitsOfALoopThatJustFitsAndOneThatDoesNot) {
  // One worker computes the same column tile under three rows, twice over: 3 row slabs of 4 chunks and one
  // column slab, one unit a chunk. Everything fits 16 units; the second time over nothing is read again.
  LruProblem problem;
  problem.rows = 3;
  problem.cols = 1;
  problem.steps = 4;
  problem.a_chunk_bytes = problem.b_chunk_bytes = 1;
  problem.workers = {{0, 0, {{0, 0}, {1, 0}, {2, 0}, {0, 0}, {1, 0}, {2, 0}}}};
  problem.l2_bytes = 16;
  EXPECT_NEAR(follow_chunks(problem).l2, 1 - 16.0 / 48, 1e-12);
  // With 15 units LRU throws out each row chunk just before it is needed; the column slab stays.
  problem.l2_bytes = 15;
  EXPECT_NEAR(follow_chunks(problem).l2, 1 - 28.0 / 48, 1e-12);
  // A last-level cache behind it catches what the first time over has brought in.
  problem.llc_bytes = 16;
  EXPECT_NEAR(follow_chunks(problem).llc, 12.0 / 28, 1e-12);
}

TEST(ReuseCache, HitsWhileTheWorkingSetFitsAndMissesWhenItDoesNot) {
  for (const double capacity : {99.0, 100.0}) {
    ReuseCache cache(capacity);
    EXPECT_FALSE(cache.touch(0, 0));
    cache.begin_fill(10, 0);
    EXPECT_TRUE(cache.touch(0, 5));   // 50 bytes later
    EXPECT_FALSE(cache.touch(1, 5));  // never seen
    cache.end_fill(10, 15);
    EXPECT_EQ(cache.touch(0, 20), capacity == 100);  // 100 bytes later; nothing enters after the fill
    const double mark = cache.mark(20);
    cache.insert(99.5, 20);
    EXPECT_EQ(cache.holds(mark, 20), capacity == 100);
    cache.drop(20);
    EXPECT_FALSE(cache.holds(mark, 20));
    EXPECT_FALSE(cache.touch(0, 20));
  }
}

struct Walk {
  const char* name;
  std::function<TileIndex(std::int32_t, const TileGrid&)> tile_of;
};

std::vector<Walk> walks() {
  return {{"row-major", row_major},   {"window 2", windowed(2)}, {"window 4", windowed(4)},
          {"window 7", windowed(7)},  {"window 8", windowed(8)}, {"window 16", windowed(16)},
          {"window 32", windowed(32)}};
}

TEST(ReuseCache, AgreesWithTheLruInLockStep) {
  for (const std::int64_t size : {4096, 8192, 12288, 14592, 16384}) {
    for (const Walk& walk : walks()) {
      const LruProblem problem = mi355x_gemm(size, walk.tile_of);
      const HitFractions chunks = follow_chunks(problem);
      const HitFractions slabs = follow_slabs(problem);
      EXPECT_NEAR(slabs.l2, chunks.l2, 0.002) << size << " " << walk.name;
      EXPECT_NEAR(slabs.llc, chunks.llc, 0.02) << size << " " << walk.name;
    }
  }
}

// At 9216 both operands together are a little larger than the last-level cache, and slabs that hit come to
// lie between two uses of others: the LRU counts their bytes, the rule does not, and hits more.
TEST(ReuseCache, HitsAtMostAnEighthMoreThanTheLruWhenTheWorkingSetIsAboutTheCapacity) {
  for (const Walk& walk : walks()) {
    const LruProblem problem = mi355x_gemm(9216, walk.tile_of);
    const HitFractions chunks = follow_chunks(problem);
    const HitFractions slabs = follow_slabs(problem);
    EXPECT_NEAR(slabs.l2, chunks.l2, 0.002) << walk.name;
    EXPECT_GE(slabs.llc, chunks.llc - 0.002) << walk.name;
    EXPECT_LE(slabs.llc, chunks.llc + 0.125) << walk.name;
  }
}

TEST(ReuseCache, StaysNearTheLruWhenWorkersStartUpToEightStepsApart) {
  std::mt19937_64 random(1);
  for (const std::int64_t size : {8192, 14592}) {
    for (const Walk& walk : walks()) {
      LruProblem problem = mi355x_gemm(size, walk.tile_of);
      for (LruWorker& worker : problem.workers) worker.first_tick = static_cast<std::int64_t>(random() % 9);
      const HitFractions chunks = follow_chunks(problem);
      const HitFractions slabs = follow_slabs(problem);
      EXPECT_NEAR(slabs.l2, chunks.l2, 0.08) << size << " " << walk.name;
      EXPECT_NEAR(slabs.llc, chunks.llc, 0.1) << size << " " << walk.name;
    }
  }
}

// What misses ask for is not what memory gives.
TEST(ReuseCache, FillsNoFasterThanMemoryGives) {
  constexpr double kBytes = 100;
  ReuseCache cache(kBytes, 1);
  EXPECT_FALSE(cache.touch(0, 0));
  cache.begin_fill(10, 0);
  EXPECT_TRUE(cache.touch(0, 90));
  EXPECT_FALSE(cache.touch(0, 200));
}

TEST(ReuseCache, HoldsWhatFitsExactlyHoweverItsSumIsRounded) {
  ReuseCache cache(0.3);
  EXPECT_FALSE(cache.touch(0, 0.0));
  const double mark = cache.mark(0.0);
  for (int i = 0; i < 3; ++i) cache.insert(0.1, 0.0);
  EXPECT_GT(0.1 + 0.1 + 0.1, 0.3);
  EXPECT_TRUE(cache.holds(mark, 0.0));
  EXPECT_TRUE(cache.touch(0, 0.0));
  cache.insert(0.3001, 0.0);
  EXPECT_FALSE(cache.touch(0, 0.0));
}

// Where memory holds up everybody, followers of an access that still runs catch up with it.
TEST(ReuseCache, FollowersJoinARunningAccessWhereMemoryIsTheLimit) {
  constexpr double kBytes = 100;
  constexpr double kDuration = 1000;
  ReuseCache limited(kBytes, 1);
  EXPECT_FALSE(limited.touch(0, 0, kDuration));
  limited.begin_fill(10, 0);
  EXPECT_TRUE(limited.touch(0, 500, kDuration));
  EXPECT_FALSE(limited.touch(0, 1500, kDuration));
  ReuseCache enough(kBytes, 20);
  EXPECT_FALSE(enough.touch(0, 0, kDuration));
  enough.begin_fill(10, 0);
  EXPECT_FALSE(enough.touch(0, 500, kDuration));
}

}  // namespace
}  // namespace tritax
