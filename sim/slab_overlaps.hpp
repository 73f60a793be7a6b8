// Slabs of one row or column of tiles whose ranges of K overlap without being the same, as where workgroups
// share iterations and not tiles.
//
// A chunk of K that two of them have in common is read twice, by each at its place in its range. Between the
// two no more enters a cache than memory can give in that time, and, as all that enters is operands, no more
// than these have in all. The chunk is there the second time if that much fits; who starts second gets it, as
// with equal ranges (sim/cache.hpp), though it may be ahead in the chunk: one of the two has to fetch it. A
// slab counts as there if more than half of it is.
//
//   Example: [0, 64) and [24, 88) that start together. The second reads chunk 24 at once, the first after
//   3/8 of its time; what enters in between is what memory gives in those 3/8.
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

  // Before the run: a slab, once. Of the same `band` are slabs of the same rows or columns.
  void add(std::uint32_t slab, std::uint64_t band, std::int32_t size, std::int32_t k_begin,
           std::int32_t k_end, double bytes) {
    slabs_.push_back({slab, band, size, k_begin, k_end, bytes});
  }
  void finish();

  bool empty() const { return others_.empty(); }

  // Whether slabs of the same numbers overlap in the same way. Both are finished.
  bool same_as(const SlabOverlaps& other) const {
    return first_ == other.first_ && others_ == other.others_ && same_bytes_as(other);
  }
  // Whether the operands have as many bytes in all, but for the order in which they were added.
  bool same_bytes_as(const SlabOverlaps& other) const {
    constexpr double kRounding = 1e-12;
    return std::abs(operand_bytes_ - other.operand_bytes_) <= kRounding * operand_bytes_;
  }

  // Whether more than half of a slab, on which an access of `duration_ns` starts, is there by others.
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
    float begin = 0, end = 0;  // what they have in common
    float ahead = 0;           // by how much the other range begins before
    bool operator==(const Other&) const = default;
  };
  std::span<const Other> others_of(std::uint32_t slab) const {
    if (slab + 1 >= first_.size()) return {};
    return std::span(others_).subspan(first_[slab], first_[slab + 1] - first_[slab]);
  }

  std::vector<Slab> slabs_;           // until finish()
  std::vector<std::uint32_t> first_;  // by slab: into others_
  std::vector<Other> others_;         // of a slab by begin
  double operand_bytes_ = 0;          // of all bands, each over all of K
};

}  // namespace tritax
