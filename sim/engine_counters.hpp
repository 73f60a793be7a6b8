// Reports to the counters of a timeline, if an observer records them.
//
// Counters owns the clocks that it told last. It reads the state of the run and changes nothing of it.
#pragma once

#include <cstdint>
#include <vector>

#include "model/cost/sparse_cost.hpp"
#include "sim/counter_observer.hpp"
#include "sim/engine_clock.hpp"
#include "sim/engine_run.hpp"
#include "sim/engine_traffic.hpp"

namespace tritax::engine {

class Counters {
 public:
  Counters(const Run& run, const Clock& clock, const DataTraffic& traffic);

  // Whether counters are recorded; call the functions below only then.
  bool any() const { return observer_ != nullptr; }
  void tell_clocks(double now);
  void tell_operands(const WorkgroupState& wg, const MatmulShape& shape, const Missed& missed) const;
  void tell_sparse(const WorkgroupState& wg, const SparseCost& cost) const;
  void tell_transfer(const WorkgroupState& wg, std::uint32_t op, const DataPath& path) const;
  // A copy engine of `rank` moves the data of `op`, which the operation `host_op` has posted.
  void tell_copy(std::int32_t rank, std::uint32_t host_op, const Op& op, const DataPath& path) const;

 private:
  const Run& run_;
  const Clock& clock_;
  const DataTraffic& traffic_;
  CounterObserver* const observer_;
  std::vector<double> told_clock_ghz_;  // by rank
};

}  // namespace tritax::engine
