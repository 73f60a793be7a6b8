// The duration of a matmul or attend with given cache misses and without contention: times of shapes, no
// state.
#pragma once

#include <cstdint>

#include "sim/engine_state.hpp"

namespace tritax::engine {

double work_ns(const MatmulShape& shape, std::int32_t sharers, std::uint32_t misses, double clock);
double arrival_ns(const MatmulShape& shape, std::int32_t sharers, std::uint32_t misses);
// Whether A comes over links.
inline bool crosses_links(const MatmulShape& shape, std::uint32_t misses) {
  return shape.peer >= 0 && (misses & 1) != 0;
}
double written_first_ns(const MatmulShape& shape, const Missed& missed, double compute_ns);
// Dirty data that the fetches of a matmul displace, as a share of the bytes that it fetches from memory.
inline double evicted_share(std::uint32_t misses) {
  return static_cast<double>(misses >> kEvictionShift) / kEvictionParts;
}

}  // namespace tritax::engine
