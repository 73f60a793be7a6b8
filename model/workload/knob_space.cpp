#include "model/workload/knob_space.hpp"

#include <algorithm>
#include <utility>

#include "model/core/error.hpp"

namespace tritax {

namespace {

void add_new(std::vector<Option>& options, KnobChoice choice, std::optional<Values> knobs) {
  if (!knobs) return;
  const bool known =
      std::any_of(options.begin(), options.end(), [&](const Option& o) { return o.knobs == *knobs; });
  if (!known) options.push_back({std::move(choice), std::move(*knobs)});
}

bool is_near(const Axis& axis, std::size_t here, std::size_t there) {
  switch (axis.near) {
    case Axis::Near::all:
      return true;
    case Axis::Near::next:
      return (here > there ? here - there : there - here) <= 1;
    case Axis::Near::grouped:
      return axis.values[here].group == axis.values[there].group;
    case Axis::Near::none:
      break;
  }
  return false;
}

// The value of the same name and id in another space.
std::optional<std::uint16_t> find_value(const Axis& axis, const std::vector<std::int64_t>& id) {
  for (std::size_t i = 0; i < axis.values.size(); ++i) {
    if (axis.values[i].id == id) return static_cast<std::uint16_t>(i);
  }
  return std::nullopt;
}

const AxisValue* value_of(const KnobSpace& space, const KnobChoice& choice, std::string_view axis) {
  for (std::size_t a = 0; a < space.axes.size(); ++a) {
    if (space.axes[a].name == axis) return &space.axes[a].values[choice[a]];
  }
  return nullptr;
}

}  // namespace

AxisValue column_value(std::string_view column, std::int64_t value) {
  return {{value}, 0, [column, value](Values& knobs) {
            knobs.assume(column, value);
            return true;
          }};
}

Axis column_axis(std::string_view column, const std::vector<std::int64_t>& values) {
  Axis axis;
  axis.name = column;
  for (const std::int64_t value : values) axis.values.push_back(column_value(column, value));
  return axis;
}

std::optional<Values> compose(const KnobSpace& space, const KnobChoice& choice) {
  Values knobs = space.base;
  for (const bool relative : {false, true}) {
    for (std::size_t a = 0; a < space.axes.size(); ++a) {
      if (space.axes[a].relative != relative) continue;
      if (!space.axes[a].values[choice[a]].apply(knobs)) return std::nullopt;
    }
  }
  if (space.settle) space.settle(knobs);
  return knobs;
}

KnobChoice start_of(const KnobSpace& space) {
  KnobChoice choice;
  for (const Axis& axis : space.axes) choice.push_back(static_cast<std::uint16_t>(axis.start));
  return choice;
}

std::vector<Option> coarse_choices(const KnobSpace& space) {
  std::vector<Option> options;
  std::vector<KnobChoice> choices{start_of(space)};
  add_new(options, choices.front(), compose(space, choices.front()));
  for (std::size_t a = 0; a < space.axes.size(); ++a) {
    if (space.axes[a].coarse.empty()) continue;
    std::vector<KnobChoice> crossed;
    for (const KnobChoice& choice : choices) {
      for (const std::size_t value : space.axes[a].coarse) {
        crossed.push_back(choice);
        crossed.back()[a] = static_cast<std::uint16_t>(value);
      }
    }
    choices = std::move(crossed);
  }
  for (KnobChoice& choice : choices) {
    std::optional<Values> knobs = compose(space, choice);
    add_new(options, std::move(choice), std::move(knobs));
  }
  return options;
}

std::vector<Option> neighbours(const KnobSpace& space, const KnobChoice& choice, Reach reach) {
  const std::optional<Values> own = compose(space, choice);
  TRITAX_ASSERT(own.has_value(), "neighbours of a choice that cannot be");
  std::vector<Option> options;
  for (std::size_t a = 0; a < space.axes.size(); ++a) {
    for (std::size_t value = 0; value < space.axes[a].values.size(); ++value) {
      if (value == choice[a]) continue;
      if (reach == Reach::near && !is_near(space.axes[a], choice[a], value)) continue;
      KnobChoice other = choice;
      other[a] = static_cast<std::uint16_t>(value);
      std::optional<Values> knobs = compose(space, other);
      if (knobs && !(*knobs == *own)) add_new(options, std::move(other), std::move(knobs));
    }
  }
  return options;
}

std::optional<Option> with_travelling(const KnobSpace& space, const KnobChoice& choice,
                                      const KnobSpace& others, const KnobChoice& other) {
  KnobChoice changed = choice;
  for (std::size_t a = 0; a < space.axes.size(); ++a) {
    const Axis& axis = space.axes[a];
    if (!axis.travels) continue;
    const AxisValue* theirs = value_of(others, other, axis.name);
    const auto same = theirs == nullptr ? std::nullopt : find_value(axis, theirs->id);
    if (same) changed[a] = *same;
    if (!same && axis.must_travel) return std::nullopt;
  }
  std::optional<Values> knobs = compose(space, changed);
  for (std::size_t a = 0; !knobs && a < space.axes.size(); ++a) {
    if (!space.axes[a].relative) continue;
    changed[a] = static_cast<std::uint16_t>(space.axes[a].start);
    knobs = compose(space, changed);
  }
  if (!knobs) return std::nullopt;
  return Option{std::move(changed), std::move(*knobs)};
}

int group_of(const KnobSpace& space, const KnobChoice& choice) {
  for (std::size_t a = 0; a < space.axes.size(); ++a) {
    if (space.axes[a].near == Axis::Near::grouped) return space.axes[a].values[choice[a]].group;
  }
  return -1;
}

}  // namespace tritax
