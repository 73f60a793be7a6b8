#include "model/select/selector.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "model/core/error.hpp"
#include "model/select/selectors.hpp"
#include "model/workload/kernel_class.hpp"
#include "model/workload/launching.hpp"

namespace tritax {

namespace {

const std::array<Selector, 3> kSelectors{{
    {"search", "coarse values of all knobs, then neighbours of the best until none is faster",
     select_by_search},
    {"bounds", "the few choices per pattern with the lowest lower bounds, and its default knobs",
     select_by_bound},
    {"defaults", "the default knobs of every pattern", select_defaults},
}};

KnobSpace space_of(const Pattern& pattern, const Problem& problem, const Machine& machine,
                   const Values& pins) {
  const Workload& workload = *problem.workload;
  KnobSpace space;
  if (workload.space == nullptr) {
    space.base = resolved_knobs(problem, machine, pins);
    return space;
  }
  space = workload.space(pattern, problem, machine, pins);
  // These knobs apply to every pattern.
  for (const std::string_view knob : {kFormKnob, kEngineKnob, kCallKnob, kKernelsKnob}) {
    if (pins.has(knob) && pins.given(knob)) space.base.give(knob, pins[knob]);
  }
  return space;
}

}  // namespace

Choices choices_of(const Problem& problem, const Machine& machine, const Values& given) {
  Values pins = given.columns() > 0 ? given : Values(problem.workload->knobs);
  pins = with_class(in_mode(pins, launch_mode_of(problem, pins), machine), machine);
  Choices choices;
  choices.problem = &problem;
  choices.machine = &machine;
  for (const Pattern& pattern : problem.workload->patterns) {
    PatternChoices& row = choices.patterns.emplace_back();
    row.pattern = &pattern;
    try {
      row.space = space_of(pattern, problem, machine, pins);
    } catch (const UserError& error) {
      row.refusal = error.what();
    }
  }
  return choices;
}

std::span<const Selector> selectors() { return kSelectors; }

const Selector& find_selector(std::string_view name, const std::string& where) {
  std::vector<std::string_view> names;
  for (const Selector& selector : kSelectors) {
    if (selector.name == name) return selector;
    names.push_back(selector.name);
  }
  const std::string nearest = nearest_name(std::string(name), names);
  throw UserError(fmt::format("{}: unknown selector '{}'{}; the selectors are {}", where, name,
                              nearest.empty() ? "" : fmt::format(", did you mean '{}'?", nearest),
                              fmt::join(names, ", ")));
}

}  // namespace tritax
