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

#include <vector>

#include "model/schedule/flag_phases.hpp"
#include "model/schedule/schedule.hpp"
#include "model/schedule/sync_graph.hpp"

namespace tritax {

// Whether a schedule sets any counter.
bool sets_flags(const Schedule& schedule);

// The graph of a schedule, with the phases of its counters. The schedule must have passed check_ranges and
// outlive the graph.
SyncGraph sync_graph_of(const Schedule& schedule);

// The races of the counters that are set.
std::vector<FlagRace> find_races(const SyncGraph& graph);

}  // namespace tritax
