// Counters that signals set: which of their signals and waits come between which settings. Internal to
// model/schedule.
//
// A counter to which signals only add never falls, so whoever waits for a value sees it sooner or later. One
// that is set to a value may fall, and a signal or wait that comes at the wrong side of that is lost: it
// needs order. *Phase* k of a counter is what happens to it from its k-th setting on, phase 0 what happens
// before the first. They are found by executing the schedule once without time, settings as late as can be,
// and hold in every execution if, whatever the timing,
//
//  * each setting comes after the one before it;
//  * each signal of a phase comes after the setting that begins it, and before the one that ends it: by
//    order, or because a wait of the phase that comes before that cannot end without it;
//  * each wait of a phase ends before the next setting to less than it waits for, or by a relaxed
//    signal, and comes after the one that begins its phase, or is for more than the counter can
//    reach in any phase before.
//
// (Take the first signal or wait of an execution that falls into another phase: all order up to there held.)
// What does not hold is a race. Example: a consumer sets "ready" to 0 once it has read; the producer may
// signal it again only after it has heard of that by another flag.
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

// Of signals to counters that are set somewhere, and waits for them; all else is in phase 0.
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

// A setting, and what nothing orders before or behind it.
struct FlagRace {
  OpPoint setting;
  OpPoint other;
};

class SyncGraph;

// Whether a schedule sets counters at all.
bool sets_flags(const Schedule& schedule);

FlagPhases find_phases(const Schedule& schedule);

// Of a graph with these phases.
std::vector<FlagRace> find_races(const SyncGraph& graph, const FlagPhases& phases);

}  // namespace tritax
