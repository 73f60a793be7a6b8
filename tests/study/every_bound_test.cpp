// Laws of bounds and early ends, for every workload with a search: neither may lose an answer.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

#include "model/machine/topology.hpp"
#include "model/select/bounds.hpp"
#include "model/select/selector.hpp"
#include "model/workloads/registry.hpp"
#include "sim/simulate.hpp"

namespace tritax {
namespace {

struct AnyCandidate {
  Machine machine;
  Problem problem;
  const Pattern* pattern = nullptr;
  Values knobs;
  SimulationOptions options;
  Schedule schedule;
};

Problem any_problem(const Workload& workload, int gpus) {
  Problem problem = problem_of(workload);
  for (const Spec& field : workload.fields) {
    if (field.counts_gpus) {
      problem.values.give(field.name, gpus);
    } else if (field.required && field.kind == ValueKind::name) {
      problem.values.give(field.name, *rc::gen::inRange<std::int64_t>(0, field.names.size()));
    } else if (field.required) {
      problem.values.give(field.name, *rc::gen::inRange<std::int64_t>(gpus, 1500));
    }
  }
  complete_problem(problem, "test");
  return problem;
}

// Of the workloads that have a bound of their own: those with a GEMM.
AnyCandidate any_candidate() {
  std::vector<const Workload*> bounded;
  for (const Workload* workload : workloads()) {
    if (workload->bound_ns != nullptr) bounded.push_back(workload);
  }
  AnyCandidate any;
  any.machine = find_machine(*rc::gen::element("mi300x-8", "h100-4", "h200-8", "mi355x-8"));
  const Workload& workload = **rc::gen::elementOf(bounded);
  any.problem = any_problem(workload, *rc::gen::inRange(2, any.machine.gpu_count() + 1));
  const Choices choices = choices_of(any.problem, any.machine, Values(workload.knobs));
  const PatternChoices row = *rc::gen::elementOf(choices.patterns);
  RC_PRE(row.space.has_value());
  any.pattern = row.pattern;
  any.knobs = (*rc::gen::elementOf(coarse_choices(*row.space))).knobs;
  any.options.seed = *rc::gen::inRange<std::uint64_t>(1, 100);
  any.schedule = build_schedule(*any.pattern, any.problem, any.machine, any.knobs);
  RC_LOG() << workload.name << " by " << any.pattern->name << ", " << any.problem.gpus() << " of "
           << any.machine.name << ", " << key_of(any.knobs) << '\n';
  return any;
}

RC_GTEST_PROP(EveryWorkloadsBoundLaw, NeverExceedsTheSimulatedTime, ()) {
  const AnyCandidate any = any_candidate();
  const double bound_ns =
      time_bound(any.schedule, any.machine, build_topology(any.machine, any.problem.gpus())).total_ns;
  const double unbuilt_ns = any.problem.workload->bound_ns(*any.pattern, any.problem, any.machine, any.knobs);
  const double simulated_ns = simulate(any.schedule, any.machine, any.options).makespan_ns;
  RC_LOG() << "bound " << bound_ns << ", unbuilt " << unbuilt_ns << ", simulated " << simulated_ns << '\n';
  RC_ASSERT(bound_ns <= simulated_ns * (1 + 1e-9));
  RC_ASSERT(unbuilt_ns <= simulated_ns * (1 + 1e-9));
}

RC_GTEST_PROP(EveryWorkloadsGiveUpLaw, OnlyWhatMissesTheLimitGivesUp, ()) {
  AnyCandidate any = any_candidate();
  const double simulated_ns = simulate(any.schedule, any.machine, any.options).makespan_ns;
  any.options.give_up_after_ns = simulated_ns * (1 + 1e-9);
  const SimulationResult met = simulate(any.schedule, any.machine, any.options);
  RC_LOG() << "simulated " << simulated_ns << ", gave up at " << met.makespan_ns << '\n';
  RC_ASSERT(!met.gave_up);
  RC_ASSERT(met.makespan_ns == simulated_ns);
}

}  // namespace
}  // namespace tritax
