// Which level of the memory hierarchy serves a slab: reuse followed per slab and cache.
//
// A slab is what a matrix tile streams through once: the rows of A or the columns of B of one tile, over its
// K range. Workgroups that share a slab and run at about the same time read each chunk of it shortly after
// one another; a later workgroup reads each chunk a constant delay after the last. So all chunks of a slab
// have the same LRU stack distance, and it is known without following chunks: the bytes that entered the
// cache between the last start on the slab and this one. The access hits if and only if
//
//     I(now) - I(last start on the slab) <= capacity,     I(t) = ∫ fill rate dt
//
// where the fill rate is the sum, over the running operations that miss, of their missed bytes per time, and
// at most what the memory behind the cache gives. Where more is asked for than that, the first operation on a
// slab is held up, those behind it find what has not been replaced yet, catch up and go on beside it: an
// access that starts while another on its slab runs is served with it. In lock step this is exact LRU as long
// as what lies between two uses of a slab has missed. A slab that hits in between counts in LRU and not here,
// so the rule hits more where a working set is about the capacity: up to an eighth more of the last-level
// accesses of a GEMM. tests/sim/lru_reference.hpp follows chunks one by one; a test holds the two together.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "model/core/same_time.hpp"

namespace tritax {

class ReuseCache {
 public:
  // What fills it gives no more than `fill_gb_per_s`, however much misses ask for.
  explicit ReuseCache(double capacity_bytes, double fill_gb_per_s = std::numeric_limits<double>::infinity())
      : capacity_bytes_(capacity_bytes), most_fill_(fill_gb_per_s) {}

  // Starts an access to `slab` (dense ids from 0) that takes `duration_ns`. Returns whether it is served from
  // this cache.
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

  // When the last access to a slab started, and whether what it read is there after so many bytes more.
  double started_ns(std::uint32_t slab) const { return slab < last_.size() ? last_[slab].start_ns : kNever; }
  bool still_has(std::uint32_t slab, double bytes) const {
    return slab < last_.size() && fits(inserted_bytes_ - last_[slab].inserted_bytes) && fits(bytes);
  }
  // What can enter in that time.
  double most_in(double duration_ns) const { return most_fill_ * duration_ns; }

  // When the last byte of the last fetch of `slab`, which must have been touched, comes or came; 0 before
  // any.
  double arrives_ns(std::uint32_t slab) const { return last_[slab].arrives_ns; }
  void expect(std::uint32_t slab, double arrives_ns) { last_[slab].arrives_ns = arrives_ns; }

  // A running operation misses at this rate from now on / no longer.
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

  // The position of something inserted now; hand it to `holds` later.
  double mark(double now_ns) {
    advance(now_ns);
    return inserted_bytes_;
  }
  bool holds(double mark, double now_ns) {
    advance(now_ns);
    return fits(inserted_bytes_ - mark);
  }

  // Everything in the cache is lost (an acquire that invalidates it).
  void drop(double now_ns) { insert(2 * capacity_bytes_, now_ns); }

 private:
  static constexpr double kNever = -1e300;
  // Tiles and caches are powers of two, and one often fills the other exactly: sums of rounded rates must not
  // decide whether it fits.
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
    double inserted_bytes = kNever;  // before it started
    double start_ns = kNever;
    double end_ns = 0;
    double arrives_ns = 0;
  };
  std::vector<Use> last_;
};

}  // namespace tritax
