// Shared by tests that know fields and knobs by name: problems and knobs of what is
// given, what is wrong with a pattern's schedule, how long it takes, and why it is refused.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/core/error.hpp"
#include "model/schedule/check.hpp"
#include "model/workload/workload.hpp"
#include "sim/functional.hpp"
#include "sim/simulate.hpp"
#include "tests/workloads/repeated.hpp"

namespace tritax {

using Given = std::map<std::string, std::int64_t>;

inline Problem problem_with(const Workload& workload, const Given& given) {
  Problem problem = problem_of(workload);
  for (const auto& [field, value] : given) problem.values.give(field, value);
  complete_problem(problem, "test");
  return problem;
}

inline Values knobs_with(const Problem& problem, const Machine& machine, const Given& given) {
  Values knobs(problem.workload->knobs);
  for (const auto& [knob, value] : given) knobs.give(knob, value);
  return resolved_knobs(problem, machine, knobs);
}

inline Schedule schedule_with(std::string_view pattern, const Problem& problem, const Machine& machine,
                              const Given& given = {}) {
  return build_schedule(find_pattern(*problem.workload, pattern, "test"), problem, machine,
                        knobs_with(problem, machine, given));
}

inline double time_with(std::string_view pattern, const Problem& problem, const Machine& machine,
                        const Given& given = {}) {
  return simulate(schedule_with(pattern, problem, machine, given), machine, {}).makespan_ns;
}

// What is wrong with a few runs in a row, without a barrier between; nothing if all is right.
inline std::string what_is_wrong(const Pattern& pattern, const Problem& problem, const Machine& machine,
                                 const Values& knobs, int runs = 3, double allowed_error = 1e-6) {
  const Schedule schedule = repeated(build_schedule(pattern, problem, machine, knobs), runs);
  std::vector<Finding> findings = check_schedule(schedule);
  if (findings.empty()) findings = check_schedule_on(schedule, machine);
  if (!findings.empty()) return findings.front().where + ": " + findings.front().message;
  const FunctionalResult result = execute_functionally(schedule, machine, 7);
  if (!result.stale_reads.empty()) return result.stale_reads.front();
  if (result.max_relative_error < allowed_error) return {};
  return "relative error " + std::to_string(result.max_relative_error);
}

// What a UserError says, or "accepted".
template <typename Function>
std::string refusal_by(const Function& function) {
  try {
    function();
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace tritax
