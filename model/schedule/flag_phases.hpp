// Finds the phases of counters that signals set: which signals and waits come between which settings.
// Internal to model/schedule.
//
// A counter to which signals only add never falls, so a wait for a value always ends. A counter that is set
// to a value may fall, and a signal or wait on the wrong side of the setting is lost: it needs order. *Phase*
// k of a counter has the operations on the counter from its k-th setting on; phase 0 has those before the
// first setting. One execution of the schedule without time, with settings as late as possible, finds the
// phases. They hold in every execution if, for any timing,
//
//  * each setting comes after the one before it;
//  * each signal of a phase comes after the setting that begins it, and before the one that ends it: by
//    order, or because a wait of the phase, which comes before the ending setting, cannot end without the
//    signal;
//  * each wait of a phase ends before the next setting that is relaxed or sets less than the awaited value,
//    and comes after the setting that begins its phase, or waits for more than the counter can reach in any
//    earlier phase.
//
// (Proof: take the first signal or wait of an execution that falls into another phase; all order before it
// held.) A violated condition is a race. Example: a consumer sets "ready" to 0 after its reads; the producer
// may signal "ready" again only after another flag has told it of the setting.
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

class SyncGraph;

// Whether a schedule sets any counter.
bool sets_flags(const Schedule& schedule);

FlagPhases find_phases(const Schedule& schedule);

// The races of a graph with these phases.
std::vector<FlagRace> find_races(const SyncGraph& graph, const FlagPhases& phases);

}  // namespace tritax
