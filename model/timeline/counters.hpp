// What a simulation counts over time beside its operations: the clock of the matrix cores, and what is read
// from caches and memory. For traces; links are in the timeline itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/timeline/timeline.hpp"

namespace tritax {

// The matrix cores of a GPU have this clock from `time_ns` on.
struct ClockSample {
  std::int32_t rank = 0;
  double time_ns = 0;
  double ghz = 0;
};

// Each byte by the first level that has it, so that their sum is what was asked for; or rates of such in
// GB/s.
struct ReadBytes {
  double l2 = 0;
  double llc = 0;  // last-level cache
  double hbm = 0;
};

// What an operation, or a copy by a copy engine, reads there.
struct CacheRead {
  std::int32_t rank = 0;  // whose caches and memory
  bool by_engine = false;
  std::uint32_t interval = 0;  // of Timeline::ops, or of Timeline::copies
  float l2_bytes = 0, llc_bytes = 0, hbm_bytes = 0;
};

// Of one timeline. Empty where nobody counted, as of measurements.
struct Counters {
  std::vector<ClockSample> clocks;  // in order of time
  std::vector<CacheRead> reads;
};

// Reads over time in steps of equal length from time 0 on.
struct ReadRates {
  std::int64_t step_ns = 1;
  std::vector<std::vector<ReadBytes>> of_gpu;  // by rank and step: means over the step [GB/s]
};

inline constexpr std::size_t kMostReadSteps = 2000;  // more than a screen has columns

// Spreads each read evenly over the time of its operation. A step times its rate, summed, is what was read.
ReadRates read_rates(const Timeline& timeline, const Counters& counters, std::int32_t ranks,
                     std::size_t most_steps = kMostReadSteps);

}  // namespace tritax
