// Sparse products of workgroups, by the law of model/cost/sparse_cost.hpp.
//
// SparseProducts owns the costs of the products. It starts activities in the fluid network, fills caches, and
// changes the fields of a workgroup for its operation.
#pragma once

#include <cstdint>

#include "model/cost/sparse_cost.hpp"
#include "sim/engine_classes.hpp"
#include "sim/engine_counters.hpp"
#include "sim/engine_outlook.hpp"
#include "sim/engine_resources.hpp"
#include "sim/engine_run.hpp"

namespace tritax::engine {

class SparseProducts {
 public:
  SparseProducts(Run& run, const SharedResources& resources, FluidClasses& classes, Outlook& outlook,
                 const Counters& counters)
      : run_(run),
        resources_(resources),
        classes_(classes),
        outlook_(outlook),
        counters_(counters),
        costs_(run.schedule, run.machine.gpu) {}

  [[gnu::noinline]] void begin(WorkgroupState& wg, std::uint32_t id, double now);

 private:
  Run& run_;
  const SharedResources& resources_;
  FluidClasses& classes_;
  Outlook& outlook_;
  const Counters& counters_;
  const SparseCosts costs_;
};

}  // namespace tritax::engine
