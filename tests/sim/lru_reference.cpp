#include "tests/sim/lru_reference.hpp"

#include <algorithm>

#include "model/core/error.hpp"

namespace tritax {

namespace {

// Least recently used chunks of different sizes leave first: a doubly linked list over dense chunk numbers.
class LruCache {
 public:
  LruCache(std::size_t chunks, double capacity_bytes)
      : capacity_bytes_(capacity_bytes), links_(chunks + 1), bytes_(chunks, 0), end_(chunks) {
    links_[end_] = {end_, end_};
  }

  // Returns whether the chunk is there; it is, and is the most recent one, afterwards.
  bool access(std::size_t chunk, double bytes) {
    const bool hit = bytes_[chunk] > 0;
    if (hit) {
      unlink(chunk);
    } else {
      bytes_[chunk] = bytes;
      used_bytes_ += bytes;
    }
    link_front(chunk);
    while (used_bytes_ > capacity_bytes_) {
      const std::size_t oldest = links_[end_].before;
      unlink(oldest);
      used_bytes_ -= bytes_[oldest];
      bytes_[oldest] = 0;
    }
    return hit;
  }

 private:
  struct Link {
    std::size_t before = 0;
    std::size_t after = 0;
  };

  void unlink(std::size_t chunk) {
    links_[links_[chunk].before].after = links_[chunk].after;
    links_[links_[chunk].after].before = links_[chunk].before;
  }
  void link_front(std::size_t chunk) {
    links_[chunk] = {end_, links_[end_].after};
    links_[links_[end_].after].before = chunk;
    links_[end_].after = chunk;
  }

  double capacity_bytes_ = 0;
  double used_bytes_ = 0;
  std::vector<Link> links_;    // most recent first, from and to `end_`
  std::vector<double> bytes_;  // 0: not in the cache
  std::size_t end_ = 0;
};

}  // namespace

HitFractions follow_chunks(const LruProblem& problem) {
  const auto steps = static_cast<std::size_t>(problem.steps);
  const auto rows = static_cast<std::size_t>(problem.rows);
  const std::size_t chunks = (rows + static_cast<std::size_t>(problem.cols)) * steps;
  std::vector<LruCache> l2(static_cast<std::size_t>(problem.dies), LruCache(chunks, problem.l2_bytes));
  LruCache llc(chunks, problem.llc_bytes);
  double read = 0;
  double missed_l2 = 0;
  double missed_llc = 0;
  const auto access = [&](const LruWorker& worker, std::size_t chunk, double bytes) {
    read += bytes;
    if (l2[static_cast<std::size_t>(worker.die)].access(chunk, bytes)) return;
    missed_l2 += bytes;
    if (problem.llc_bytes > 0 && llc.access(chunk, bytes)) return;
    missed_llc += bytes;
  };
  std::int64_t end = 0;
  for (const LruWorker& worker : problem.workers) {
    TRITAX_ASSERT(worker.die >= 0 && worker.die < problem.dies, "a worker runs on a die");
    end = std::max(end, worker.first_tick + static_cast<std::int64_t>(worker.tiles.size() * steps));
  }
  for (std::int64_t tick = 0; tick < end; ++tick) {
    for (const LruWorker& worker : problem.workers) {
      if (tick < worker.first_tick) continue;
      const auto item = static_cast<std::size_t>(tick - worker.first_tick);
      if (item >= worker.tiles.size() * steps) continue;
      const LruTile& tile = worker.tiles[item / steps];
      const std::size_t step = item % steps;
      access(worker, static_cast<std::size_t>(tile.row) * steps + step, problem.a_chunk_bytes);
      access(worker, (rows + static_cast<std::size_t>(tile.col)) * steps + step, problem.b_chunk_bytes);
    }
  }
  return {read > 0 ? 1 - missed_l2 / read : 0, missed_l2 > 0 ? 1 - missed_llc / missed_l2 : 0};
}

}  // namespace tritax
