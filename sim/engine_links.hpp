// The links between GPUs: what an operation takes of them, its place among those that copy, and what they
// have carried. Owns the resources of links and what is counted on them; touches nothing else.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/crowding.hpp"
#include "sim/engine_run.hpp"

namespace tritax::engine {

class Links {
 public:
  explicit Links(Run& run) : run_(run), crowding_(run.machine.fabric.store_idle_share) {}

  // Before the run: adds them to the fluid network.
  void add();
  std::int32_t resource(int edge) const { return link_resource_[static_cast<std::size_t>(edge)]; }
  // Time on a full link per time at its rate, of a DataPath's crowd.
  double cost_of_crowd(std::uint8_t crowd) const { return crowding_.cost(crowd); }

  bool crowds(const WorkgroupState& wg, const DataPath& path) const;
  void join(DataPath& path);
  void leave(const WorkgroupState& wg);

  void note_sent(const DataPath& path) { sent_bytes_[pair_of(path.from(), path.to())] += path.bytes; }
  // By topology edge, with those that are alike.
  std::vector<double> carried_bytes() const;
  // To the observer.
  void tell_rates(double now);

 private:
  // Between two ranks, and between all that are as far apart.
  std::size_t pair_of(std::int32_t from, std::int32_t to) const {
    const std::int32_t first = run_.home(from);
    const std::int32_t last =
        first == from ? to : (to + run_.schedule.ranks - (from - first)) % run_.schedule.ranks;
    return static_cast<std::size_t>(first) * static_cast<std::size_t>(run_.schedule.ranks) +
           static_cast<std::size_t>(last);
  }

  Run& run_;
  const Crowding crowding_;
  std::vector<std::int32_t> link_resource_;   // by topology edge
  std::vector<std::int32_t> copies_on_link_;  // likewise, where links can be crowded
  std::vector<double> reported_rate_;         // likewise, as last told to the observer
  std::vector<double> sent_bytes_;            // by sender and receiver
};

}  // namespace tritax::engine
