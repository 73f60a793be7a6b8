#include "model/scenario/scenario.hpp"

#include <fmt/format.h>

#include <utility>

#include "model/core/error.hpp"
#include "model/core/with_place.hpp"

namespace tritax {

Scenario scenario_of(Problem problem) {
  Scenario scenario;
  scenario.knobs = Values(problem.workload->knobs);
  scenario.pattern = problem.workload->usual_pattern;
  scenario.problem = std::move(problem);
  return scenario;
}

std::string place_of(const Scenario& scenario) {
  if (scenario.where.empty()) return "";
  return scenario.id.empty() ? scenario.where + ": "
                             : fmt::format("{}: scenario \"{}\": ", scenario.where, scenario.id);
}

Machine find_machine_of(const Scenario& scenario) {
  Machine machine = with_place(place_of(scenario), [&] { return find_machine(scenario.machine); });
  return changed(std::move(machine), scenario.changes);
}

Values resolved_knobs(const Scenario& scenario, const Machine& machine) {
  return resolved_knobs(scenario.problem, machine, scenario.knobs);
}

const Pattern& pattern_of(const Scenario& scenario) {
  return with_place(place_of(scenario), [&]() -> const Pattern& {
    if (scenario.pattern.empty()) {
      throw UserError("it has no 'pattern'; name one to run it, or let `tritax advise` choose");
    }
    return find_pattern(*scenario.problem.workload, scenario.pattern, "pattern");
  });
}

std::string scenario_key(const Scenario& scenario) {
  // A default of the machine and the same value given by a user are different.
  std::string given;
  for (std::size_t i = 0; i < scenario.knobs.columns(); ++i) given += scenario.knobs.given_at(i) ? '1' : '0';
  std::string machine = scenario.machine;
  for (const ParameterChange& change : scenario.changes) machine += ' ' + change.text;
  return fmt::format("{} | {} {} | {} | {} given {}", machine, scenario.problem.workload->name,
                     key_of(scenario.problem.values), scenario.pattern, key_of(scenario.knobs), given);
}

Schedule build_scenario(const Scenario& scenario, const Machine& machine) {
  const Pattern& pattern = pattern_of(scenario);
  return with_place(place_of(scenario), [&] {
    return build_schedule(pattern, scenario.problem, machine, resolved_knobs(scenario, machine));
  });
}

}  // namespace tritax
