// Which neighbours of a program may change places, as far as the two decide themselves, and what moves as
// one. The cheap part of the mask of the tile board; what it leaves open is for the law
// (model/schedule/same_result.hpp).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/schedule/schedule.hpp"
#include "model/select/game/board.hpp"

namespace tritax {

enum class Passing : std::uint8_t {
  refused,  // data or accumulator go from one to the other, or one is a barrier or claim
  free,     // no order between workgroups changes: what comes between two signals or waits still does
  ask,      // a signal or wait is passed; others may count on it
};

// `first` stands before `second` in a program of `own_rank`. `whole`: both belong to units that leave the
// accumulator to nobody, as tiles do.
//  * Data: neither writes what the other reads or writes.
//  * Accumulator: products (or sums, or merges) into one accumulator commute, and so do two ways to write it
//    out; nothing else does.
Passing may_pass(const Op& first, const Op& second, std::int32_t own_rank, bool whole);

// At each place of a program, and behind its last operation: whether whoever uses the accumulator next begins
// with one of his own, and all that was put into it before is written out. What stands between two such
// places is a unit in the sense of `whole`.
std::vector<char> begins_anew(std::span<const Op> program);

// Where the units of a program begin; the first is 0. A *step* begins with the waits in front of an
// operation, and ends with the signals behind it. A *tile* begins where the accumulator is written out or
// empty and is filled anew, at waits before that, or at a copy from another source: it can change places with
// any other that it shares no data with.
std::vector<std::uint32_t> unit_starts(std::span<const Op> program, Grain grain);

}  // namespace tritax
