#include "backend_hip/selection.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/core/error.hpp"

namespace tritax::gpu {

namespace {

// "a/b" chooses "a/b" and "a/b/c", but not "a/bc".
bool chooses(const std::string& wanted, const std::string& id) {
  return id.starts_with(wanted) && (id.size() == wanted.size() || id[wanted.size()] == '/');
}

std::vector<Scenario> read_all(const std::vector<std::string>& files) {
  std::vector<Scenario> all;
  for (const std::string& file : files) {
    for (Scenario& scenario : read_scenarios(file)) {
      if (!std::holds_alternative<GemmAllScatter>(scenario.workload) || scenario.pattern.empty()) {
        throw UserError(fmt::format("{}: scenario '{}' is not a GEMM + all-scatter with a pattern",
                                    scenario.where, scenario.id));
      }
      if (scenario.pattern != "library") all.push_back(std::move(scenario));
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
    auto& workload = std::get<GemmAllScatter>(scenario.workload);
    std::vector<int> counts = selection.gpus;
    if (counts.empty()) counts.push_back(workload.gpus);
    for (const int count : counts) {
      workload.gpus = count;
      selected.push_back(scenario);
    }
  }
  return selected;
}

}  // namespace tritax::gpu
