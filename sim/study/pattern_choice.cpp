#include "sim/study/pattern_choice.hpp"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "model/core/error.hpp"
#include "model/machine/topology.hpp"
#include "model/select/bounds.hpp"
#include "model/select/selector.hpp"
#include "sim/simulate.hpp"

namespace tritax {

namespace {

double since_ns(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
}

struct TriedProblem {
  std::vector<double> time_ns;
  std::size_t by_bound = 0;
  double simulation_ns = 0;
  double bound_ns = 0;
};

TriedProblem tried(const Scenario& scenario, const std::vector<PatternOption>& options,
                   const Machine& machine) {
  TriedProblem result;
  double least_bound_ns = kNever;
  const Topology topology = build_topology(machine, scenario.problem.gpus());
  for (std::size_t p = 0; p < options.size(); ++p) {
    result.time_ns.push_back(kNever);
    try {
      const Values knobs = resolved_knobs(scenario.problem, machine, scenario.knobs.with(options[p].knobs));
      const auto begin = std::chrono::steady_clock::now();
      const Schedule schedule = build_schedule(*options[p].pattern, scenario.problem, machine, knobs);
      const double bound_ns = time_bound(schedule, machine, topology).total_ns;
      result.bound_ns += since_ns(begin);
      const auto simulated = std::chrono::steady_clock::now();
      result.time_ns.back() = simulate(schedule, machine).makespan_ns;
      result.simulation_ns += since_ns(simulated);
      if (bound_ns >= least_bound_ns) continue;
      least_bound_ns = bound_ns;
      result.by_bound = p;
    } catch (const UserError&) {  // this pattern cannot run the problem
    }
  }
  return result;
}

std::vector<std::int64_t> numbers_of_problem(const Problem& problem) {
  std::vector<std::int64_t> numbers;
  for (std::size_t i = 0; i < problem.values.columns(); ++i) {
    numbers.push_back(std::max<std::int64_t>(0, problem.values.at(i)));
  }
  return numbers;
}

// If several patterns form one scenario in a file, keeps the first only.
std::vector<Scenario> problems_of(const std::vector<Scenario>& scenarios) {
  std::vector<Scenario> problems;
  for (const Scenario& scenario : scenarios) {
    if (scenario.problem.workload != scenarios.front().problem.workload) {
      throw UserError(fmt::format("{}workload: {} beside {}; a sieve has one workload", place_of(scenario),
                                  scenario.problem.workload->name, scenarios.front().problem.workload->name));
    }
    if (scenario.machine != scenarios.front().machine) {
      throw UserError(fmt::format("{}machine: {} beside {}; a sieve has one machine", place_of(scenario),
                                  scenario.machine, scenarios.front().machine));
    }
    const bool known = std::any_of(problems.begin(), problems.end(), [&](const Scenario& other) {
      return other.problem == scenario.problem && other.knobs == scenario.knobs;
    });
    if (!known) problems.push_back(scenario);
  }
  return problems;
}

}  // namespace

std::vector<PatternOption> pattern_options(const Workload& workload) {
  std::vector<PatternOption> options;
  for (const Pattern& pattern : workload.patterns) {
    if (pattern.vendor || options.size() == kMostSievedPolicies) continue;
    options.push_back({&pattern, Values(workload.knobs)});
  }
  return options;
}

PatternTable pattern_table(const std::vector<Scenario>& scenarios, const Machine& machine) {
  return pattern_table(scenarios, machine, pattern_options(*scenarios.front().problem.workload));
}

PatternTable pattern_table(const std::vector<Scenario>& scenarios, const Machine& machine,
                           const std::vector<PatternOption>& options) {
  TRITAX_ASSERT(options.size() <= kMostSievedPolicies, "more options than a table may have");
  const std::vector<Scenario> problems = problems_of(scenarios);
  const Workload& workload = *problems.front().problem.workload;
  PatternTable result;
  for (const PatternOption& option : options) result.table.options.push_back(option.name());
  for (std::size_t i = 0; i < workload.fields.size(); ++i) {
    for (std::size_t part = 0; part < workload.fields[i].columns(); ++part) {
      result.table.numbers.push_back(workload.fields[i].column(part));
    }
  }
  std::vector<TriedProblem> all(problems.size());
  tbb::parallel_for(std::size_t{0}, problems.size(),
                    [&](std::size_t i) { all[i] = tried(problems[i], options, machine); });
  for (std::size_t i = 0; i < problems.size(); ++i) {
    if (*std::min_element(all[i].time_ns.begin(), all[i].time_ns.end()) == kNever) continue;
    result.scenarios.push_back(problems[i]);
    result.table.problems.push_back(numbers_of_problem(problems[i].problem));
    result.table.time_ns.push_back(all[i].time_ns);
    result.by_bound.push_back(all[i].by_bound);
    result.simulation_ns += all[i].simulation_ns;
    result.bound_ns += all[i].bound_ns;
  }
  if (result.table.problems.empty()) throw UserError("no pattern can run any of these problems");
  const auto count = static_cast<double>(result.table.problems.size());
  result.simulation_ns /= count;
  result.bound_ns /= count;
  return result;
}

}  // namespace tritax
