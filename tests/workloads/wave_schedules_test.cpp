// Every workload with products, or with attention, takes the wave schedules.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "model/core/error.hpp"
#include "model/schedule/check.hpp"
#include "model/schedule/json.hpp"
#include "model/workloads/registry.hpp"
#include "sim/simulate.hpp"

namespace tritax {
namespace {

Problem problem_with_waves(const Workload& workload) {
  Problem problem = problem_of(workload);
  for (const Spec& field : workload.fields) {
    if (field.counts_gpus) {
      problem.values.give(field.name, 2);
    } else if (field.required && field.kind != ValueKind::name) {
      problem.values.give(field.name, 256);
    }
  }
  complete_problem(problem, "test");
  return problem;
}

Values knobs_with_waves(const Problem& problem, const Machine& machine, Pipeline pipeline, int waves) {
  Values given(problem.workload->knobs);
  given.give("pipeline", static_cast<std::int64_t>(pipeline));
  given.give("waves", waves);
  if (given.has("tile_m")) {
    given.give("tile_m", 128);
    given.give("tile_n", 128);
    given.give("tile_k", 64);
  }
  return resolved_knobs(problem, machine, given);
}

// The first one whose kernels are not a library's; null where all are.
const Pattern* pattern_with_waves(const Workload& workload) {
  for (const Pattern& pattern : workload.patterns) {
    if (pattern.uses("pipeline") && pattern.uses("waves") && pattern.name != "library") return &pattern;
  }
  return nullptr;
}

bool has_pipeline(const Schedule& schedule, Pipeline pipeline) {
  return std::any_of(schedule.kernels.begin(), schedule.kernels.end(),
                     [&](const Kernel& kernel) { return kernel.tile.pipeline == pipeline; });
}

TEST(WaveSchedules, AreTakenByEveryWorkloadWithPipelines) {
  const Machine machine = find_machine("mi355x-8");
  int taken = 0;
  for (const Workload* workload : workloads()) {
    const Pattern* const found = pattern_with_waves(*workload);
    if (found == nullptr) continue;
    const Pattern& pattern = *found;
    const Problem problem = problem_with_waves(*workload);
    ++taken;
    for (const auto& [pipeline, waves] :
         {std::pair{Pipeline::ping_pong, 8}, {Pipeline::interleaved, 4}, {Pipeline::producer_consumer, 4}}) {
      SCOPED_TRACE(std::string(workload->name) + " " +
                   std::string(kPipelineNames[static_cast<std::size_t>(pipeline)]));
      const Values knobs = knobs_with_waves(problem, machine, pipeline, waves);
      const Schedule schedule = build_schedule(pattern, problem, machine, knobs);
      EXPECT_TRUE(has_pipeline(schedule, pipeline));
      require_sound(check_schedule(schedule), "schedule");
      require_sound(check_schedule_on(schedule, machine), "schedule");
      if (pipeline == Pipeline::producer_consumer && workload->bound_ns != nullptr) {
        EXPECT_LE(workload->bound_ns(pattern, problem, machine, knobs),
                  simulate(schedule, machine).makespan_ns);
      }
      const Values others = knobs_with_waves(problem, machine, pipeline, 2);
      if (pipeline != Pipeline::producer_consumer) {
        EXPECT_THROW(build_schedule(pattern, problem, machine, others), UserError);
      }
    }
  }
  EXPECT_GE(taken, 10);
}

// A file may say what no pattern would.
TEST(WaveSchedules, ThatAMachineCannotHaveAreFoundInSchedules) {
  Problem problem = problem_with_waves(find_workload("gemm", "test"));
  const Machine machine = find_machine("mi355x-8");
  const Pattern& pattern = *pattern_with_waves(*problem.workload);
  Schedule schedule =
      build_schedule(pattern, problem, machine, knobs_with_waves(problem, machine, Pipeline::ping_pong, 8));
  for (Kernel& kernel : schedule.kernels) kernel.tile.waves = 4;
  EXPECT_THROW(require_sound(check_schedule_on(schedule, machine), "schedule"), UserError);
  for (Kernel& kernel : schedule.kernels) kernel.tile.producers = 4;
  EXPECT_THROW(require_sound(check_schedule(schedule), "schedule"), UserError);  // of ping-pong waves
  for (Kernel& kernel : schedule.kernels) kernel.tile.pipeline = Pipeline::producer_consumer;
  require_sound(check_schedule_on(schedule, machine), "schedule");
  const Schedule again = schedule_from_json(schedule_to_json(schedule), "again");
  EXPECT_EQ(again.kernels.front().tile, schedule.kernels.front().tile);
}

}  // namespace
}  // namespace tritax
