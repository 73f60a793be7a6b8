// Decides from two neighbours of a program alone whether they may change places, and which operations move as
// one unit. This is the cheap part of the mask of the tile board; the law (model/schedule/same_result.hpp)
// decides open cases.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/schedule/schedule.hpp"
#include "model/select/game/board.hpp"

namespace tritax {

enum class Passing : std::uint8_t {
  refused,  // data or accumulator pass from one to the other, or one is a barrier or claim
  free,     // no order between workgroups changes: no signal or wait is passed
  ask,      // a signal or wait is passed; other workgroups may depend on it
};

// `first` is before `second` in a program of `own_rank`. `whole`: both belong to units, such as tiles, that
// pass the accumulator to no later unit.
//  * Data: neither writes data that the other reads or writes.
//  * Accumulator: products (or sums, or merges) into one accumulator commute, and two operations that write
//    it out commute; other pairs do not.
Passing may_pass(const Op& first, const Op& second, std::int32_t own_rank, bool whole);

// At each place of a program, and after its last operation: whether the next use of the accumulator begins
// anew, and everything put into the accumulator before is written out. The operations between two such places
// are a unit in the sense of `whole`.
std::vector<char> begins_anew(std::span<const Op> program);

// Where the units of a program begin; the first is 0. A *step* begins with the waits before an operation, and
// ends with the signals after it. A *tile* begins where the accumulator, written out or empty, is filled
// anew, at waits before that, or at a copy from another source. A tile can change places with any other tile
// if the two share no data.
std::vector<std::uint32_t> unit_starts(std::span<const Op> program, Grain grain);

}  // namespace tritax
