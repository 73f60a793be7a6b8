#include "sim/slab_overlaps.hpp"

namespace tritax {

void SlabOverlaps::finish() {
  const auto band_of = [](const Slab& slab) { return std::tie(slab.band, slab.size); };
  std::sort(slabs_.begin(), slabs_.end(), [&](const Slab& a, const Slab& b) {
    return std::tie(a.band, a.size, a.k_begin, a.k_end) < std::tie(b.band, b.size, b.k_begin, b.k_end);
  });
  std::uint32_t ids = 0;
  for (const Slab& slab : slabs_) ids = std::max(ids, slab.id + 1);
  std::vector<std::vector<Other>> others(ids);
  for (std::size_t first = 0; first < slabs_.size();) {
    std::size_t end = first;
    std::int32_t reached = slabs_[first].k_begin;
    for (; end < slabs_.size() && band_of(slabs_[end]) == band_of(slabs_[first]); ++end) {
      const Slab& slab = slabs_[end];
      const double depth = slab.k_end - slab.k_begin;
      operand_bytes_ += slab.bytes * std::max(0, slab.k_end - std::max(reached, slab.k_begin)) / depth;
      reached = std::max(reached, slab.k_end);
    }
    for (std::size_t i = first; i < end; ++i) {
      const Slab& own = slabs_[i];
      const auto share = [&](std::int32_t k) {
        return static_cast<float>(k - own.k_begin) / static_cast<float>(own.k_end - own.k_begin);
      };
      for (std::size_t j = first; j < end && slabs_[j].k_begin < own.k_end; ++j) {
        const Slab& other = slabs_[j];
        if (j == i || other.k_end <= own.k_begin) continue;
        others[own.id].push_back({other.id, share(std::max(own.k_begin, other.k_begin)),
                                  share(std::min(own.k_end, other.k_end)), -share(other.k_begin)});
      }
    }
    first = end;
  }
  slabs_ = {};
  const auto none = [](const std::vector<Other>& of_slab) { return of_slab.empty(); };
  if (std::all_of(others.begin(), others.end(), none)) return;
  first_.push_back(0);
  for (const std::vector<Other>& of_slab : others) {
    others_.insert(others_.end(), of_slab.begin(), of_slab.end());
    first_.push_back(static_cast<std::uint32_t>(others_.size()));
  }
}

bool SlabOverlaps::covers(std::uint32_t slab, const ReuseCache& cache, double now_ns,
                          double duration_ns) const {
  double there = 0;
  float reached = 0;
  for (const Other& other : others_of(slab)) {
    if (other.end <= reached) continue;
    const double apart_ns = std::abs(now_ns - cache.started_ns(other.slab) - other.ahead * duration_ns);
    if (!cache.still_has(other.slab, std::min(operand_bytes_, cache.most_in(apart_ns)))) continue;
    there += other.end - std::max(reached, other.begin);
    reached = other.end;
  }
  return there > 0.5;
}

}  // namespace tritax
