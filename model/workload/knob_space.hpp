// Which knobs a search may try for a pattern: independent axes, each a list of values.
//
// A choice is one value of every axis; composed, it gives the knobs of a run. Knobs that the pattern does not
// use, that the user has pinned, or that cannot matter (an XCD remap on one die, a peer order on one GPU)
// have exactly one value, so no two choices of a space build the same schedule on purpose.
//
// Searches go from coarse to fine: `coarse_choices` crosses the axes that decide most at the start of all
// others, `neighbours` varies one axis of a good choice at a time, `with_travelling` carries what is good for
// one pattern to another.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "model/workload/values.hpp"

namespace tritax {

struct AxisValue {
  std::vector<std::int64_t> id;  // tells the values of an axis apart, also between patterns
  int group = 0;
  // Puts the value into the knobs; false if it does not go with what is there already.
  std::function<bool(Values&)> apply;
};

struct Axis {
  enum class Near : std::uint8_t {
    all,      // every value is a neighbour of every other
    next,     // those before and behind it in the list
    grouped,  // those of its group
    none,     // nothing but what is tried at the end
  };

  std::string_view name;
  std::vector<AxisValue> values;    // at least one
  std::size_t start = 0;            // where a search begins
  std::vector<std::size_t> coarse;  // crossed with those of other axes at first; empty: the start only
  Near near = Near::all;
  bool relative = false;     // applied after the others, because it depends on them
  bool travels = false;      // what is best for one pattern is tried with the next
  bool must_travel = false;  // … and where the next does not have it, nothing is
};

// One column of the knobs, and an axis of such values, the first of which is the start.
AxisValue column_value(std::string_view column, std::int64_t value);
Axis column_axis(std::string_view column, const std::vector<std::int64_t>& values);

using KnobChoice = std::vector<std::uint16_t>;  // the number of a value for each axis

struct KnobSpace {
  Values base;                          // defaults and pins: everything that no axis covers
  std::vector<Axis> axes;               // in the order in which neighbours are tried
  std::function<void(Values&)> settle;  // last: brings equal orders into one form; may be empty
};

// The knobs of a choice; nothing if two of its values do not go together.
std::optional<Values> compose(const KnobSpace& space, const KnobChoice& choice);

KnobChoice start_of(const KnobSpace& space);

struct Option {
  KnobChoice choice;
  Values knobs;
};

// The start, then the coarse values of all axes crossed, the last axis fastest. No knobs twice.
std::vector<Option> coarse_choices(const KnobSpace& space);

// All that differ from `choice` in one axis, by a near value or by any. No knobs twice, and not those of
// `choice` itself.
enum class Reach : std::uint8_t { near, all };
std::vector<Option> neighbours(const KnobSpace& space, const KnobChoice& choice, Reach reach = Reach::near);

// `choice` with the travelling values of `other`, a choice of another pattern of the same workload. Empty if
// the space does not have them.
std::optional<Option> with_travelling(const KnobSpace& space, const KnobChoice& choice,
                                      const KnobSpace& others, const KnobChoice& other);

// Which of the grouped values a choice has: -1 if there is no such axis.
int group_of(const KnobSpace& space, const KnobChoice& choice);

}  // namespace tritax
