// Which level of the memory hierarchy serves a slab: reuse is followed per slab and cache.
//
// A slab is the data that one matrix tile streams through once: the rows of A or the columns of B of the
// tile, over its K range. Workgroups that share a slab and run at about the same time read each chunk of the
// slab shortly after one another; a later workgroup reads each chunk a constant delay after the previous
// workgroup. So all chunks of a slab have the same LRU stack distance, and no chunk has to be followed: the
// distance is the bytes that entered the cache between the last start on the slab and the current start. The
// access hits if and only if
//
//     I(now) - I(last start on the slab) <= capacity,     I(t) = ∫ fill rate dt
//
// The fill rate is the sum of the missed bytes per time of the running operations that miss, at most the
// bandwidth of the memory behind the cache. If the operations ask for more, the first operation on a slab is
// held up; later operations find the data that has not been replaced yet, catch up, and continue beside the
// first one: an access that starts while another access to the slab runs is served with it. In lock step this
// is exact LRU if all data between two uses of a slab missed. A slab that hits in between counts in LRU but
// not here, so this rule hits more often if a working set is about the capacity: up to an eighth more of the
// last-level accesses of a GEMM. tests/sim/lru_reference.hpp follows chunks one by one; a test compares both.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "model/core/same_time.hpp"

namespace tritax {

class ReuseCache {
 public:
  // `fill_gb_per_s`: bandwidth of the memory behind the cache, the upper bound of the fill rate.
  explicit ReuseCache(double capacity_bytes, double fill_gb_per_s = std::numeric_limits<double>::infinity())
      : capacity_bytes_(capacity_bytes), most_fill_(fill_gb_per_s) {}

  // Starts an access to `slab` (dense ids from 0) that takes `duration_ns`. Returns whether this cache serves
  // the access.
  bool touch(std::uint32_t slab, double now_ns, double duration_ns = 0) {
    advance(now_ns);
    if (slab >= last_.size()) last_.resize(slab + 1);
    Use& last = last_[slab];
    const bool joins = fill_rate_ > most_fill_ * kRounding && later(last.end_ns, now_ns);
    const bool hit = joins || fits(inserted_bytes_ - last.inserted_bytes);
    last.inserted_bytes = inserted_bytes_;
    last.start_ns = now_ns;
    if (!joins) last.end_ns = now_ns + duration_ns;
    return hit;
  }

  // Start of the last access to a slab; and whether the data of that access stays in the cache for another
  // `bytes`.
  double started_ns(std::uint32_t slab) const { return slab < last_.size() ? last_[slab].start_ns : kNever; }
  bool still_has(std::uint32_t slab, double bytes) const {
    return slab < last_.size() && fits(inserted_bytes_ - last_[slab].inserted_bytes) && fits(bytes);
  }
  // Most bytes that can enter the cache in `duration_ns`.
  double most_in(double duration_ns) const { return most_fill_ * duration_ns; }

  // Arrival of the last byte of the last fetch of `slab`, which must have been touched; 0 before any fetch.
  double arrives_ns(std::uint32_t slab) const { return last_[slab].arrives_ns; }
  void expect(std::uint32_t slab, double arrives_ns) { last_[slab].arrives_ns = arrives_ns; }

  // A running operation begins / ends to miss at this rate.
  void begin_fill(double bytes_per_ns, double now_ns) {
    advance(now_ns);
    fill_rate_ += bytes_per_ns;
  }
  void end_fill(double bytes_per_ns, double now_ns) {
    advance(now_ns);
    fill_rate_ -= bytes_per_ns;
    if (fill_rate_ < 0) fill_rate_ = 0;
  }

  // A tile is written or read through the cache at once.
  void insert(double bytes, double now_ns) {
    advance(now_ns);
    inserted_bytes_ += bytes;
  }

  // The position of data that is inserted now; pass it to `holds` later.
  double mark(double now_ns) {
    advance(now_ns);
    return inserted_bytes_;
  }
  bool holds(double mark, double now_ns) {
    advance(now_ns);
    return fits(inserted_bytes_ - mark);
  }

  // Empties the cache (an acquire that invalidates it).
  void drop(double now_ns) { insert(2 * capacity_bytes_, now_ns); }

 private:
  static constexpr double kNever = -1e300;
  // Tiles and caches are powers of two, and a tile often fills a cache exactly: the rounding of summed rates
  // must not decide whether the tile fits.
  static constexpr double kRounding = 1 + 1e-9;

  bool fits(double bytes) const { return bytes <= capacity_bytes_ * kRounding; }

  void advance(double now_ns) {
    inserted_bytes_ += std::min(fill_rate_, most_fill_) * (now_ns - since_ns_);
    since_ns_ = now_ns;
  }

  double capacity_bytes_ = 0;
  double most_fill_ = 0;
  double inserted_bytes_ = 0;
  double fill_rate_ = 0;
  double since_ns_ = 0;
  struct Use {
    double inserted_bytes = kNever;  // before the access started
    double start_ns = kNever;
    double end_ns = 0;
    double arrives_ns = 0;
  };
  std::vector<Use> last_;
};

}  // namespace tritax
