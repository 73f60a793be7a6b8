// The counterfactual of the bulk-synchronous tax: a schedule without the boundaries that make everybody wait.
//
// Stream order, host synchronisation and host barriers order whole kernels, although what is needed is that
// each tile is written before it is read. Here every kernel gets a stream of its own, synchronisation between
// launches and host barriers between them vanish (those of a harness stay, harness.hpp), and each pair of
// operations that touch the same data and that only a dropped boundary had ordered gets a flag: signal after
// the first, wait before the second (system scope across ranks, else gpu scope). Reads after writes, writes
// after reads and writes after writes are kept; two atomic additions commute. Pairs that the remaining flags
// order already get none. The flags are a new FlagArray "tile-dependences".
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "model/schedule/schedule.hpp"

namespace tritax {

// Name of the added flags. The simulator lets them cost nothing: they stand for order, not for a protocol.
inline constexpr std::string_view kTileDependences = "tile-dependences";

// The kernel of every launch, rank by rank, in the order of its host program.
std::vector<std::uint32_t> kernels_by_launch(const Schedule& schedule);

// Whether nothing can stand for the boundaries of a schedule: a copy engine knows no flags, so what it copies
// is ordered by streams, events and hosts alone; and where flags are set, a boundary may be what keeps a
// signal from being lost. Such a schedule stays as it is.
bool keeps_boundaries(const Schedule& schedule);

// Kernels come in that order, one for every launch; each rank ends with one device synchronisation if it
// had any after its last launch. Sound schedules stay sound (check.hpp). Throws UserError for references out
// of range.
Schedule with_tile_dependences(const Schedule& schedule);

}  // namespace tritax
