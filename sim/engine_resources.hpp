// What activities share: the resources of all GPUs and links in the fluid network, and the bytes that links
// carry.
//
// SharedResources makes the states of the GPUs with their memories and ports, before the run. It owns the
// resources of links, the shares of profiles, and the bytes sent between ranks. It changes nothing else.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/engine_run.hpp"

namespace tritax::engine {

// Factors of the bytes of a profile on resources whose rate depends on the profile.
struct Shares {
  double l2 = 1;                                                      // port of an L2, per byte
  std::array<double, kPortsCount> egress{1, 1, 1}, ingress{1, 1, 1};  // by Ports
};

class SharedResources {
 public:
  explicit SharedResources(Run& run);

  std::int32_t link(std::int32_t edge) const { return links_[static_cast<std::size_t>(edge)]; }
  const Shares& shares_of(KernelProfile profile) const { return shares_[static_cast<std::size_t>(profile)]; }

  // Bytes sent between two ranks, and between all pairs of ranks that are alike.
  double& sent_bytes(std::int32_t from, std::int32_t to) { return sent_bytes_[pair_of(from, to)]; }
  // Counts bytes that the switch carries between two ranks, which may be one rank.
  void add_switch_bytes(std::int32_t from, double out_bytes, std::int32_t to, double in_bytes) {
    switch_out_bytes_[static_cast<std::size_t>(run_.home(from))] += out_bytes;
    switch_in_bytes_[static_cast<std::size_t>(run_.home(to))] += in_bytes;
  }
  // Bytes carried so far, by topology edge.
  std::vector<double> link_bytes() const;
  // Tells the observer, which there must be, the rates of links that have changed.
  void report_link_rates(double now);

 private:
  void find_shares();
  void add_links();
  void add_gpus();
  std::size_t pair_of(std::int32_t from, std::int32_t to) const {
    const std::int32_t first = run_.home(from);
    const std::int32_t last =
        first == from ? to : (to + run_.schedule.ranks - (from - first)) % run_.schedule.ranks;
    return static_cast<std::size_t>(first) * static_cast<std::size_t>(run_.schedule.ranks) +
           static_cast<std::size_t>(last);
  }

  Run& run_;
  double l2_gb_per_s_ = 0;  // per die, at the rate of the profile with the highest rate
  std::array<Shares, kKernelProfileCount> shares_{};        // by profile
  std::vector<std::int32_t> links_;                         // by topology edge
  std::vector<double> sent_bytes_;                          // by sender and receiver
  std::vector<double> switch_out_bytes_, switch_in_bytes_;  // by rank
  std::vector<double> reported_rate_;  // by topology edge: last rate told to the observer
};

}  // namespace tritax::engine
