// Laws of the critical path of simulated runs.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "model/timeline/causes.hpp"
#include "sim/simulate.hpp"
#include "sim/timeline.hpp"
#include "tests/sim/any_run.hpp"

namespace tritax {
namespace {

struct Recorded {
  Schedule schedule;
  Timeline timeline;
  double makespan_ns = 0;
};

Recorded recorded(const AnyRun& run) {
  Recorded one;
  one.schedule = run.schedule();
  TimelineRecorder recorder(one.schedule);
  SimulationOptions options;
  options.observer = &recorder;
  one.makespan_ns = simulate(one.schedule, run.machine, options).makespan_ns;
  one.timeline = recorder.take();
  return one;
}

RC_GTEST_PROP(CriticalPath, FillsTheRunWithoutAGap, ()) {
  const Recorded run = recorded(any_run());
  const auto releases = releases_of(run.timeline, run.schedule);
  double until_ns = 0;
  for (const PathStep& step : critical_path_of(run.timeline, run.schedule, releases)) {
    RC_ASSERT(step.begin_ns == until_ns);
    RC_ASSERT(step.end_ns > step.begin_ns);
    until_ns = step.end_ns;
  }
  RC_ASSERT(std::abs(until_ns - run.makespan_ns) <= 1e-9 * run.makespan_ns);
}

// What waits for a flag longer than at once was let go by a signal of that flag.
RC_GTEST_PROP(CriticalPath, KnowsWhoLetEveryWaitGo, ()) {
  const Recorded run = recorded(any_run());
  const auto releases = releases_of(run.timeline, run.schedule);
  const auto op_of = [&](const OpInterval& interval) -> const Op& {
    const Kernel& kernel = run.schedule.kernels[interval.place.kernel];
    return run.schedule.ops[kernel.workgroups[interval.place.workgroup].first_op + interval.place.op];
  };
  for (std::size_t i = 0; i < releases.size(); ++i) {
    const OpInterval& wait = run.timeline.ops[i];
    if (wait.kind != OpKind::wait) continue;
    RC_ASSERT(releases[i] != kNoCause);
    const OpInterval& signal = run.timeline.ops[releases[i]];
    RC_ASSERT(signal.kind == OpKind::signal);
    RC_ASSERT(op_of(signal).flag == op_of(wait).flag);
    RC_ASSERT(op_of(signal).index == op_of(wait).index);
    RC_ASSERT(op_of(signal).rank == wait.place.rank);
    RC_ASSERT(signal.end_ns <= wait.end_ns);
  }
}

}  // namespace
}  // namespace tritax
