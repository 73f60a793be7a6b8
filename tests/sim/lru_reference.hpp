// The caches of a GPU followed chunk by chunk: what sim/cache.hpp must agree with, and slow.
//
// A GPU has dies with a private L2 each and one last-level cache behind them, all of them exact LRU. A worker
// is what computes one tile after another; the K range of a tile is cut into steps, and in every step the
// worker reads one chunk of a row slab (tile_m × step of A) and one chunk of a column slab (step × tile_n of
// B). All workers advance one step a tick, in lock step, each from its own first tick on.
//
//   L2 hit fraction  = bytes read that are in the L2 of the worker's die / bytes read
//   LLC hit fraction = bytes that missed an L2 and are in the last-level cache / bytes that missed an L2
//
// Output tiles are not followed.
#pragma once

#include <cstdint>
#include <vector>

namespace tritax {

struct LruTile {
  std::int32_t row = 0;
  std::int32_t col = 0;
};

struct LruWorker {
  std::int32_t die = 0;
  std::int64_t first_tick = 0;
  std::vector<LruTile> tiles;  // in the order in which they are computed
};

struct LruProblem {
  std::int32_t dies = 1;
  double l2_bytes = 0;    // of one die
  double llc_bytes = 0;   // 0: there is none
  std::int32_t rows = 0;  // of the tile grid
  std::int32_t cols = 0;
  std::int32_t steps = 0;  // chunks of a slab
  double a_chunk_bytes = 0;
  double b_chunk_bytes = 0;
  std::vector<LruWorker> workers;  // in the order in which they read within a tick
};

struct HitFractions {
  double l2 = 0;
  double llc = 0;
};

HitFractions follow_chunks(const LruProblem& problem);

}  // namespace tritax
