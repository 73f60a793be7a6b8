// Random shares: the pace of matmuls, and the service on a full link. They depend on the seed and on the
// identity of the operation, so the order of events plays no part. Luck changes no state during a run.
#pragma once

#include <cstdint>
#include <vector>

#include "model/cost/service_weights.hpp"
#include "sim/engine_run.hpp"

namespace tritax::engine {

class Luck {
 public:
  explicit Luck(const Run& run);

  double spread_of(const WorkgroupState& wg, std::uint32_t op) const;
  double service_weight(const WorkgroupState& wg, std::uint32_t op) const;
  double pace_of(const WorkgroupState& wg) const;
  // Service weight on a full link, for a random share in [0, 1).
  double weight_at(double uniform) const { return weights_.at(uniform); }

  double unit_random(std::uint64_t what) const;
  std::uint64_t draw_of(std::uint32_t id, std::uint32_t op) const;
  // Number of signals and waits on free flags before this operation.
  std::uint32_t added_before(std::uint32_t op) const { return added_before_.empty() ? 0 : added_before_[op]; }

 private:
  // The workgroup whose random share all alike workgroups use.
  std::uint32_t lucky_workgroup(std::uint32_t id) const {
    return run_.alike.workgroup_of == nullptr ? id : (*run_.alike.workgroup_of)[id];
  }
  void index_items();
  void count_added();

  const Run& run_;
  const ServiceWeights weights_;
  std::vector<std::uint32_t> added_before_;  // by operation; empty without free flags
  std::vector<std::uint8_t> of_item_;        // by operation: 1 in an item; empty if no kernel has items
};

}  // namespace tritax::engine
