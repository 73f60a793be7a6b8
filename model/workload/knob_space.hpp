// Describes the knobs that a search may try for a pattern: independent axes, each a list of values.
//
// A choice is one value per axis; compose() turns a choice into the knobs of a run. Knobs that the pattern
// does not use, that the user has pinned, or that have no effect (an XCD remap on one die, a peer order on
// one GPU) have exactly one value, so that different choices usually build different schedules.
//
// Searches go from coarse to fine: `coarse_choices` crosses the most important axes with the other axes at
// their start, `neighbours` varies one axis of a good choice at a time, `with_travelling` carries good values
// of one pattern to another pattern.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "model/workload/values.hpp"

namespace tritax {

struct AxisValue {
  std::vector<std::int64_t> id;  // identifies the value within its axis, also across patterns
  int group = 0;
  // Sets the value in the knobs; false if the value conflicts with other knobs.
  std::function<bool(Values&)> apply;
};

struct Axis {
  enum class Near : std::uint8_t {
    all,      // every value is a neighbour of every other
    next,     // the values before and after it in the list
    grouped,  // the values of its group
    none,     // no neighbours, except at the end of a search
  };

  std::string_view name;
  std::vector<AxisValue> values;    // at least one
  std::size_t start = 0;            // where a search begins
  std::vector<std::size_t> coarse;  // first crossed with those of other axes; empty: only the start
  Near near = Near::all;
  bool relative = false;     // applied after other axes, because it depends on them
  bool travels = false;      // the best value of one pattern is tried with the next
  bool must_travel = false;  // … and if the next does not have the value, nothing is tried
};

// A value of one column of the knobs, and an axis of such values; the first is the start.
AxisValue column_value(std::string_view column, std::int64_t value);
Axis column_axis(std::string_view column, const std::vector<std::int64_t>& values);

using KnobChoice = std::vector<std::uint16_t>;  // index of the value, per axis

struct KnobSpace {
  Values base;                          // defaults and pins: everything that no axis covers
  std::vector<Axis> axes;               // in the order in which neighbours are tried
  std::function<void(Values&)> settle;  // runs last: brings equivalent orders into one form; may be empty
};

// The knobs of a choice; nothing if two values conflict.
std::optional<Values> compose(const KnobSpace& space, const KnobChoice& choice);

KnobChoice start_of(const KnobSpace& space);

struct Option {
  KnobChoice choice;
  Values knobs;
};

// The start, then the coarse values of all axes crossed, the last axis fastest. No knobs twice.
std::vector<Option> coarse_choices(const KnobSpace& space);

// All choices that differ from `choice` in one axis, by a near value or by any value. No knobs twice, and not
// the knobs of `choice`.
enum class Reach : std::uint8_t { near, all };
std::vector<Option> neighbours(const KnobSpace& space, const KnobChoice& choice, Reach reach = Reach::near);

// `choice` with the travelling values of `other`, a choice of another pattern of the same workload. Empty if
// the space does not have them.
std::optional<Option> with_travelling(const KnobSpace& space, const KnobChoice& choice,
                                      const KnobSpace& others, const KnobChoice& other);

// Group of a choice's value on the grouped axis; -1 if there is no such axis.
int group_of(const KnobSpace& space, const KnobChoice& choice);

}  // namespace tritax
