// Laws of the clocks of a prediction, and of floors, for every workload and pattern.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "model/core/error.hpp"
#include "model/machine/topology.hpp"
#include "model/select/bounds.hpp"
#include "model/workloads/registry.hpp"
#include "sim/simulate.hpp"
#include "sim/study/predict.hpp"

namespace tritax {
namespace {

constexpr std::int64_t kSide = 1024;
constexpr double kRounding = 1 + 1e-9;

Problem small_problem(const Workload& workload) {
  Problem problem = problem_of(workload);
  for (const Spec& field : workload.fields) {
    if (field.counts_gpus) {
      problem.values.give(field.name, 4);
    } else if (field.required && field.kind == ValueKind::name) {
      problem.values.give(field.name, static_cast<std::int64_t>(field.names.size()) - 1);
    } else if (field.required) {
      problem.values.give(field.name, field.kind == ValueKind::bytes ? 1 << 20 : kSide);
    }
  }
  complete_problem(problem, "test");
  return problem;
}

template <typename Visit>
void for_each_scenario(const Visit& visit) {
  for (const char* name : {"mi300x-8", "h200-4"}) {
    const Machine machine = find_machine(name);
    for (const Workload* workload : workloads()) {
      for (const Pattern& pattern : workload->patterns) {
        SCOPED_TRACE(std::string(workload->name) + ", " + std::string(pattern.name) + " on " + name);
        Scenario scenario = scenario_of(small_problem(*workload));
        scenario.pattern = pattern.name;
        if (pattern.uses("comm_cus")) scenario.knobs.give("comm_cus", 16);
        visit(scenario, machine);
      }
    }
  }
}

TEST(EveryPatternsClocks, AreInOrder) {
  for_each_scenario([](const Scenario& scenario, const Machine& machine) {
    const Prediction one = predict(scenario, machine);
    for (const RankTimes& rank : one.ranks) {
      EXPECT_LE(rank.all.kernels_ns, rank.all.busy_stream_ns * kRounding);
      EXPECT_LE(rank.gemm.kernels_ns, rank.gemm.busy_stream_ns * kRounding);
      EXPECT_LE(rank.comm.kernels_ns, rank.comm.busy_stream_ns * kRounding);
      EXPECT_GE(rank.all.kernels_ns * kRounding, std::max(rank.gemm.kernels_ns, rank.comm.kernels_ns));
      EXPECT_LE(rank.all.busy_stream_ns, one.time_ns(Clock::host) * kRounding);
    }
    EXPECT_LE(one.time_ns(Clock::kernel), one.time_ns(Clock::host) * kRounding);
  });
}

// An event on an idle stream sees the host time of a call; an event in a busy stream does not.
TEST(IdleStream, CountsTheHostTimeOfTheCallOfAnOwnKernel) {
  const Machine machine = find_machine("mi300x-8");
  Scenario scenario = scenario_of(small_problem(find_workload("all-reduce", "test")));
  scenario.pattern = "one-shot";
  const Prediction without = predict(scenario, machine);
  scenario.knobs.give("call_us", 50);
  const Prediction with = predict(scenario, machine);
  constexpr double kCallNs = 50e3;
  EXPECT_NEAR(with.time_ns(Clock::idle_stream) - without.time_ns(Clock::idle_stream), kCallNs, 1);
  EXPECT_NEAR(with.time_ns(Clock::busy_stream), without.time_ns(Clock::busy_stream), 1);
}

TEST(EveryPatternsFloor, IsBelowItsTime) {
  for_each_scenario([](const Scenario& scenario, const Machine& machine) {
    const Schedule schedule = build_scenario(scenario, machine);
    const TimeBound bound = time_bound(schedule, machine, build_topology(machine, schedule.ranks));
    const double simulated_ns = simulate(schedule, machine).makespan_ns;
    EXPECT_LE(bound.total_ns, simulated_ns * kRounding);
    EXPECT_LE(std::max({bound.computing_ns(), bound.memory_ns, bound.wire_ns}), simulated_ns * kRounding);
    EXPECT_LE(bound.operands_ns, bound.memory_ns * kRounding);
  });
}

}  // namespace
}  // namespace tritax
