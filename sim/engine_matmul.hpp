// How long a matmul takes by what it finds in the caches, without others: times of shapes, no state.
#pragma once

#include <cstdint>

#include "sim/engine_state.hpp"

namespace tritax::engine {

double work_ns(const MatmulShape& shape, std::int32_t sharers, std::uint32_t misses, double clock);
double arrival_ns(const MatmulShape& shape, std::uint32_t misses);
double written_first_ns(const MatmulShape& shape, const Missed& missed, double compute_ns);
// What a matmul displaces that has to be written back first, as a share of what it fetches from memory.
inline double evicted_share(std::uint32_t misses) {
  return static_cast<double>(misses >> kEvictionShift) / kEvictionParts;
}

}  // namespace tritax::engine
