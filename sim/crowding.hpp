// How well requests fill the parallel lanes of a link.
//
// A link of a GPU consists of several physical links (18 NVLink on an H200), and the address of a request
// decides which of them it takes. N requesters that have one request each at any time keep K equal lanes busy
// for N / (N + K - 1) of the time: the throughput of a closed queueing network with balanced stations
// (Lazowska, Zahorjan, Graham, Sevcik, Quantitative System Performance, 1984, chapter 5). Copies between 2
// H200 by 32, 64 and 128 workgroups reach 318, 355 and 369 GB/s; copies by 16 workgroups of 256 threads,
// which cannot fill the link, reach the 360 GB/s that they ask for
// (scenarios/measured/h200-4-microbench.csv).
//
// The true cause is another one, which the simulator does not model: a full link serves ports of compute
// units equally, and 16 copying workgroups already fill it; but workgroups that share a port with many others
// end last, when they no longer fill the link (h100-2-link-shares.csv; docs/development/mechanisms.md).
//
// The rate also depends on more than the number of requesters: in finer steps (h200-2-filling.csv there),
// with tiles of several sizes, the rate follows from the total demand of the requesters. This law leaves an
// error of 4.9 % at best, a law by demand 3.1 %.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace tritax {

class Crowding {
 public:
  // `idle_share`: the share of the link that one requester leaves idle, 1 - 1/K; in [0, 1).
  explicit Crowding(double idle_share) : others_(idle_share / (1 - idle_share)) {}

  bool any() const { return others_ > 0; }

  // Number of requesters (at least 1) in logarithmic steps of a factor of sqrt(2), because the simulator
  // keeps one class of transfers per step. Step 0 stands for a link that is not full.
  static std::uint8_t step_of(std::int32_t requesters) {
    return static_cast<std::uint8_t>(1 + std::lround(2 * std::log2(std::max(1, requesters))));
  }

  // Time on a full link, divided by the time at the rate of the link.
  double cost(std::uint8_t step) const { return step == 0 ? 1 : 1 + others_ / std::exp2((step - 1) / 2.0); }

 private:
  double others_;  // K - 1
};

}  // namespace tritax
