// The phases of counters that signals set; find_phases.hpp has their law. Internal to model/schedule.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "model/schedule/schedule.hpp"

namespace tritax {

// A place in an execution: operation `op` of a workgroup run.
struct OpPoint {
  std::uint32_t workgroup_run = 0;
  std::uint32_t op = 0;
};

// Phases of signals to counters that are set somewhere, and of waits for them; other operations are in phase
// 0.
class FlagPhases {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  void give(OpPoint point, std::uint32_t phase) { phases_[key(point)] = phase; }
  std::uint32_t of(OpPoint point) const {
    if (phases_.empty()) return 0;
    const auto found = phases_.find(key(point));
    return found == phases_.end() ? 0 : found->second;
  }

 private:
  static std::uint64_t key(OpPoint point) { return std::uint64_t{point.workgroup_run} << 32 | point.op; }
  std::unordered_map<std::uint64_t, std::uint32_t> phases_;
};

// A setting, and an operation that nothing orders before or after the setting.
struct FlagRace {
  OpPoint setting;
  OpPoint other;
};

}  // namespace tritax
