// Builds the counterfactual of the bulk-synchronous tax: a schedule without kernel and host boundaries that
// order more than the data needs.
//
// Stream order, host synchronisation and host barriers order whole kernels, although only the write of each
// tile must precede its reads. In the new schedule every kernel has its own stream, and synchronisation and
// host barriers between launches are removed (barriers of a harness remain, harness.hpp). Each pair of
// operations that touch the same data and that only a removed boundary ordered gets a flag: a signal after
// the first, a wait before the second (system scope across ranks, else gpu scope). The order of reads after
// writes, writes after reads and writes after writes is kept; two atomic additions commute. Pairs that other
// flags already order get no new flag. The flags are a new FlagArray "tile-dependences".
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "model/schedule/schedule.hpp"

namespace tritax {

// Name of the added flags. They cost nothing in the simulator, because they represent order and not a
// protocol.
inline constexpr std::string_view kTileDependences = "tile-dependences";

// The kernel of every launch, rank by rank, in the order of its host program.
std::vector<std::uint32_t> kernels_by_launch(const Schedule& schedule);

// Whether flags cannot replace the boundaries of a schedule. A copy engine knows no flags, so only streams,
// events and hosts order its copies. If signals set flags, a boundary may prevent the loss of a signal. Such
// a schedule does not change.
bool keeps_boundaries(const Schedule& schedule);

// The schedule without boundaries. Its kernels have the order of kernels_by_launch(), one per launch; each
// rank ends with one device synchronisation if it had any after its last launch. Sound schedules stay sound
// (check.hpp). Throws UserError for references out of range.
Schedule with_tile_dependences(const Schedule& schedule);

}  // namespace tritax
