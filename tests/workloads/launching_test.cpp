// Laws of the forms in which libraries are called, over all workloads.
#include "model/workload/launching.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "model/core/error.hpp"
#include "model/machine/machine.hpp"
#include "model/select/selector.hpp"
#include "model/workloads/registry.hpp"
#include "model/workloads/remote_access/workload.hpp"
#include "sim/simulate.hpp"

namespace tritax {
namespace {

bool has(const Schedule& schedule, HostOpKind kind) {
  for (const auto& program : schedule.host) {
    for (const HostOp& op : program) {
      if (op.kind == kind) return true;
    }
  }
  return false;
}

struct AnyProblem {
  Problem problem;
  Machine machine = find_machine("mi300x-8");
  Values knobs;
};

// Of four GPUs, 512 of whatever has to be given.
AnyProblem any_problem(const Workload& workload) {
  AnyProblem any;
  any.problem = problem_of(workload);
  any.knobs = Values(workload.knobs);
  if (workload.name == "all-gather") any.knobs.give("comm_cus", 16);  // it asks for them
  for (const Spec& field : workload.fields) {
    if (field.counts_gpus) {
      any.problem.values.give(field.name, std::min<std::int64_t>(4, field.high));
      continue;
    }
    if (!field.required) continue;
    any.problem.values.give(field.name,
                            field.kind == ValueKind::name ? 0 : std::min<std::int64_t>(512, field.high));
  }
  if (workload.name == "remote-access") {
    any.problem.values.give("peers", static_cast<std::int64_t>(Peers::all));
    any.problem.values.give("bytes", 1024);
  }
  complete_problem(any.problem, "test");
  return any;
}

class Form : public testing::TestWithParam<const Workload*> {};

TEST_P(Form, EveryLibraryHasItAndGraphsAreOneLaunchWithoutCalls) {
  const Workload& workload = *GetParam();
  if (find_spec(workload.knobs, kFormKnob) == nullptr) return;
  const AnyProblem any = any_problem(workload);
  for (const Pattern& pattern : workload.patterns) {
    if (pattern.vendor) {
      EXPECT_TRUE(pattern.uses(kFormKnob)) << pattern.name;
    }
    if (!pattern.uses(kFormKnob)) continue;
    Values knobs = resolved_knobs(any.problem, any.machine, any.knobs);
    const auto in_form = [&](CallForm form) {
      knobs.give(kFormKnob, static_cast<std::int64_t>(form));
      return build_schedule(pattern, any.problem, any.machine, knobs);
    };
    const double eager_ns = simulate(in_form(CallForm::eager), any.machine).makespan_ns;
    const Schedule stream = in_form(CallForm::stream);
    const double stream_ns = simulate(stream, any.machine).makespan_ns;
    EXPECT_LE(stream_ns, eager_ns * (1 + 1e-9)) << pattern.name;
    if (has(stream, HostOpKind::event_wait)) {
      EXPECT_THROW(in_form(CallForm::graph), UserError) << pattern.name;
      continue;
    }
    const Schedule graph = in_form(CallForm::graph);
    EXPECT_FALSE(has(graph, HostOpKind::launch)) << pattern.name;
    EXPECT_FALSE(has(graph, HostOpKind::host_work)) << pattern.name;
    EXPECT_EQ(graph.kernels.size(), stream.kernels.size());
    std::size_t nodes = 0;
    for (const Graph& one : graph.graphs) nodes += one.size();
    EXPECT_EQ(nodes, graph.kernels.size()) << pattern.name;
  }
}

// One mode for all patterns of a question, whichever of its two names was given.
TEST_P(Form, AQuestionComparesAllInOneMode) {
  const Workload& workload = *GetParam();
  if (find_spec(workload.knobs, kFormKnob) == nullptr) return;
  const AnyProblem any = any_problem(workload);
  for (const LaunchMode mode : {LaunchMode::stream, LaunchMode::graph}) {
    Values pins(workload.knobs);
    const bool graph = mode == LaunchMode::graph;
    pins.give(kFormKnob, static_cast<std::int64_t>(graph ? CallForm::graph : CallForm::stream));
    EXPECT_EQ(launch_mode_of(any.problem, pins), mode);
    for (const PatternChoices& row : choices_of(any.problem, any.machine, pins).patterns) {
      if (!row.space) continue;
      EXPECT_EQ(row.space->base[kFormKnob], pins[kFormKnob]) << row.pattern->name;
      if (!row.pattern->uses(kLaunchKnob)) continue;
      EXPECT_EQ(row.space->base[kLaunchKnob], static_cast<std::int64_t>(mode)) << row.pattern->name;
    }
  }
}

// One process per GPU is the default; measurements without the column had one process for all GPUs.
TEST_P(Form, ProcessesAreOnePerGpuUnlessTheKnobSaysOne) {
  const Workload& workload = *GetParam();
  const Spec* knob = find_spec(workload.knobs, kProcessesKnob);
  EXPECT_EQ(knob != nullptr,
            find_spec(workload.fields, "gpus") != nullptr && workload.name != "remote-access");
  if (knob == nullptr) return;
  EXPECT_EQ(knob->value_if_column_missing, 1);
  const AnyProblem any = any_problem(workload);
  for (const std::int64_t one : {0, 1}) {
    Values knobs = resolved_knobs(any.problem, any.machine, any.knobs);
    knobs.give(kProcessesKnob, one);
    EXPECT_EQ(build_schedule(workload.patterns.front(), any.problem, any.machine, knobs).one_process,
              one == 1);
  }
}

// Host time of a launch, as often as there are launches, on the path of the agent that waits for it.
TEST_P(Form, CallsOfOwnPatternsTakeTheirTime) {
  const Workload& workload = *GetParam();
  const bool has_own = std::any_of(workload.patterns.begin(), workload.patterns.end(),
                                   [](const Pattern& pattern) { return !pattern.vendor; });
  const Spec* knob = find_spec(workload.knobs, kCallKnob);
  EXPECT_EQ(knob != nullptr, has_own);
  if (knob == nullptr) return;
  EXPECT_EQ(knob->help, call_knob().help);
  const AnyProblem any = any_problem(workload);
  for (const Pattern& pattern : workload.patterns) {
    if (is_there(pattern, workload)) continue;
    Values knobs = resolved_knobs(any.problem, any.machine, any.knobs);
    const double without_ns =
        simulate(build_schedule(pattern, any.problem, any.machine, knobs), any.machine).makespan_ns;
    knobs.give(kCallKnob, 1000);
    const double with_ns =
        simulate(build_schedule(pattern, any.problem, any.machine, knobs), any.machine).makespan_ns;
    EXPECT_GE(with_ns, without_ns + 0.99e6) << pattern.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Workloads, Form, testing::ValuesIn(workloads().begin(), workloads().end()),
                         [](const auto& tested) {
                           std::string name(tested.param->name);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace tritax
