// Runs a schedule without time: what can happen does, until nothing more can. Internal to model/schedule.
//
// Counters only grow, so the order does not matter: what is not reached in one such execution is reached in
// none.
#pragma once

#include <cstdint>
#include <vector>

#include "model/schedule/sync_graph.hpp"

namespace tritax {

// Which vertices are reached. `resident[run]` workgroups of a run have a place at once, dispatched in order,
// the next one when one ends; an empty vector: all have one. Operations behind a claim are taken to be
// executed.
std::vector<char> reached_vertices(const SyncGraph& graph, const std::vector<std::uint64_t>& resident);

}  // namespace tritax
