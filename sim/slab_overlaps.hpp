// Slabs of one row or column of tiles whose ranges of K overlap in part, for example if workgroups share
// iterations and not tiles.
//
// A chunk of K in both ranges is read twice, once by each slab at its place in its range. Between the two
// reads, at most the bytes that memory can deliver in that time enter a cache, and, because only operands
// enter, at most the bytes of all operands. The second read finds the chunk if that many bytes fit. The later
// starter gets the chunk, as with equal ranges (sim/cache.hpp), even if it is ahead in the chunk: one of the
// two must fetch it. A slab counts as present if more than half of it is present.
//
//   Example: [0, 64) and [24, 88) that start together. The second slab reads chunk 24 at once, the first
//   after 3/8 of its time; in between, the bytes that memory delivers in 3/8 of the time enter.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

#include "sim/cache.hpp"

namespace tritax {

class SlabOverlaps {
 public:
  static std::uint64_t band_of(std::int32_t buffer, std::int32_t first) {
    return static_cast<std::uint64_t>(buffer) << 32 | static_cast<std::uint32_t>(first);
  }

  // Before the run: adds each slab once. Slabs of the same rows or columns have the same `band`.
  void add(std::uint32_t slab, std::uint64_t band, std::int32_t size, std::int32_t k_begin,
           std::int32_t k_end, double bytes) {
    slabs_.push_back({slab, band, size, k_begin, k_end, bytes});
  }
  void finish();

  bool empty() const { return others_.empty(); }

  // Whether slabs of the same numbers overlap in the same way. Both objects must be finished.
  bool same_as(const SlabOverlaps& other) const {
    return first_ == other.first_ && others_ == other.others_ && same_bytes_as(other);
  }
  // Whether all operands together have the same number of bytes, up to rounding by the order of additions.
  bool same_bytes_as(const SlabOverlaps& other) const {
    constexpr double kRounding = 1e-12;
    return std::abs(operand_bytes_ - other.operand_bytes_) <= kRounding * operand_bytes_;
  }

  // Whether other slabs have brought more than half of `slab` at the start of an access of `duration_ns`.
  bool covers(std::uint32_t slab, const ReuseCache& cache, double now_ns, double duration_ns) const;

 private:
  struct Slab {
    std::uint32_t id = 0;
    std::uint64_t band = 0;
    std::int32_t size = 0;
    std::int32_t k_begin = 0, k_end = 0;
    double bytes = 0;
  };
  // In shares of the slab's own range.
  struct Other {
    std::uint32_t slab = 0;
    float begin = 0, end = 0;  // common range
    float ahead = 0;           // share by which the other range begins earlier
    bool operator==(const Other&) const = default;
  };
  std::span<const Other> others_of(std::uint32_t slab) const {
    if (slab + 1 >= first_.size()) return {};
    return std::span(others_).subspan(first_[slab], first_[slab + 1] - first_[slab]);
  }

  std::vector<Slab> slabs_;           // until finish()
  std::vector<std::uint32_t> first_;  // by slab: into others_
  std::vector<Other> others_;         // sorted by begin per slab
  double operand_bytes_ = 0;          // sum over all bands, each over all of K
};

}  // namespace tritax
