#include "backend_hip/selection.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/core/error.hpp"

namespace tritax::gpu {

namespace {

// "a/b" selects "a/b" and "a/b/c", but not "a/bc".
bool chooses(const std::string& wanted, const std::string& id) {
  return id.starts_with(wanted) && (id.size() == wanted.size() || id[wanted.size()] == '/');
}

std::vector<Scenario> read_all(const std::vector<std::string>& files) {
  std::vector<Scenario> all;
  for (const std::string& file : files) {
    for (Scenario& scenario : read_scenarios(file)) {
      if (scenario.pattern.empty()) {
        throw UserError(
            fmt::format("{}: scenario '{}' has no pattern; name one to run it", scenario.where, scenario.id));
      }
      if (!pattern_of(scenario).vendor) all.push_back(std::move(scenario));
    }
  }
  return all;
}

void require_known(const std::vector<std::string>& ids, const std::vector<Scenario>& scenarios) {
  for (const std::string& wanted : ids) {
    const bool known = std::any_of(scenarios.begin(), scenarios.end(),
                                   [&](const Scenario& one) { return chooses(wanted, one.id); });
    if (known) continue;
    std::vector<std::string> names;
    for (const Scenario& scenario : scenarios) names.push_back(scenario.id);
    const std::string nearest = nearest_name(wanted, names);
    throw UserError(fmt::format("--id: no scenario has the id '{}'{}", wanted,
                                nearest.empty() ? "" : fmt::format(" (did you mean '{}'?)", nearest)));
  }
}

// The scenario on `count` GPUs.
Scenario on_gpus(Scenario scenario, int count) {
  if (scenario.problem.gpus() == count) return scenario;
  for (const Spec& field : scenario.problem.workload->fields) {
    if (!field.counts_gpus) continue;
    if (count < field.low || count > field.high) {
      throw UserError(fmt::format("--gpus: {} is out of range for scenario '{}'; {} runs on {} to {}", count,
                                  scenario.id, scenario.problem.workload->name, field.low, field.high));
    }
    scenario.problem.values.give(field.name, count);
  }
  if (scenario.problem.gpus() != count) {
    throw UserError(fmt::format("--gpus: {} is not allowed for scenario '{}', which runs on {}", count,
                                scenario.id, scenario.problem.gpus()));
  }
  complete_problem(scenario.problem, fmt::format("--gpus, scenario '{}'", scenario.id));
  return scenario;
}

}  // namespace

std::vector<Scenario> select_scenarios(const Selection& selection) {
  const std::vector<Scenario> all = read_all(selection.files);
  require_known(selection.ids, all);
  std::vector<Scenario> selected;
  for (Scenario scenario : all) {
    const bool chosen = std::any_of(selection.ids.begin(), selection.ids.end(),
                                    [&](const std::string& wanted) { return chooses(wanted, scenario.id); });
    if (!chosen && !selection.ids.empty()) continue;
    if (!selection.machine.empty()) scenario.machine = selection.machine;
    if (selection.gpus.empty()) selected.push_back(scenario);
    for (const int count : selection.gpus) selected.push_back(on_gpus(scenario, count));
  }
  return selected;
}

}  // namespace tritax::gpu
