// How well requests fill the parallel lanes of a link.
//
// A link of a GPU is several physical ones (18 NVLink on an H200), and an address decides which of them a
// request takes. N requesters that have one request each at any time keep K equal lanes busy for
// N / (N + K - 1) of the time: the throughput of a closed queueing network with balanced stations (Lazowska,
// Zahorjan, Graham, Sevcik, Quantitative System Performance, 1984, chapter 5). Copies between 2 H200 by 32,
// 64 and 128 workgroups come to 318, 355 and 369 GB/s; by 16 of 256 threads, which cannot fill the link, to
// the 360 that they ask for (scenarios/measured/h200-4-microbench.csv).
//
// What is behind it is something else, which the simulator does not have: a full link serves ports of compute
// units alike, and is full with 16 copying workgroups already, but those that share a port with many come to
// their end last, when they no longer fill it (h100-2-link-shares.csv; docs/development/mechanisms.md).
//
// The number of requesters is not all there is either: measured in finer steps (h200-2-filling.csv there),
// with tiles of several sizes, the rate follows from what they ask for together, and this law leaves 4.9 % at
// best where one by demand leaves 3.1 %.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace tritax {

class Crowding {
 public:
  // `idle_share` is what one requester leaves idle, 1 - 1/K; in [0, 1).
  explicit Crowding(double idle_share) : others_(idle_share / (1 - idle_share)) {}

  bool any() const { return others_ > 0; }

  // A step of the square root of 2 requesters (at least 1), for a simulator keeps a class of transfers for
  // each; 0 stands for a link that is not full.
  static std::uint8_t step_of(std::int32_t requesters) {
    return static_cast<std::uint8_t>(1 + std::lround(2 * std::log2(std::max(1, requesters))));
  }

  // Time on a full link per time at its rate.
  double cost(std::uint8_t step) const { return step == 0 ? 1 : 1 + others_ / std::exp2((step - 1) / 2.0); }

 private:
  double others_;  // K - 1
};

}  // namespace tritax
