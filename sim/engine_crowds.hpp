// Copies on the links of a GPU: how many there are, and what a byte costs on a link that few of them fill; by
// the law of crowding.hpp.
//
// Crowds owns the number of copies on every link. It sets the steps of crowding in the path of a transfer and
// changes nothing else.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/crowding.hpp"
#include "sim/engine_data_path.hpp"
#include "sim/engine_resources.hpp"
#include "sim/engine_run.hpp"

namespace tritax::engine {

class Crowds {
 public:
  Crowds(const Run& run, const SharedResources& resources)
      : run_(run),
        resources_(resources),
        crowding_(run.machine.fabric.store_idle_share),
        copies_on_link_(run.topology.edges.size(), 0) {}

  bool counts(const WorkgroupState& wg, const DataPath& path) const;
  void join(DataPath& path);
  // The running store of the workgroup, which has joined, ends.
  void leave(const WorkgroupState& wg);
  double cost(std::uint8_t step) const { return crowding_.cost(step); }

 private:
  const Run& run_;
  const SharedResources& resources_;
  const Crowding crowding_;
  std::vector<std::int32_t> copies_on_link_;  // by topology edge; for links that can be crowded
};

}  // namespace tritax::engine
