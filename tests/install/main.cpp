// An outside program on the installed library: simulates one schedule, and makes a sweep of two
// points.
#include <cstdio>

#include "model/scenario/scenario.hpp"
#include "model/workloads/registry.hpp"
#include "sim/simulate.hpp"
#include "sim/study/sweep/sweep_plan.hpp"

int main() {
  const tritax::Machine machine = tritax::find_machine("h200-4");
  tritax::Problem problem = tritax::problem_of(*tritax::workloads().front());
  for (const char* field : {"m", "n", "k"}) problem.values.give(field, 512);
  tritax::Scenario scenario = tritax::scenario_of(problem);
  scenario.pattern = "fused-sequential";
  const tritax::SweepPlan plan = tritax::parse_sweep("[product]\nproblem.m = [1, 2]\n", "here", "here");
  std::printf("%.3f us, %zu points\n",
              tritax::simulate(tritax::build_scenario(scenario, machine), machine).makespan_ns / 1000,
              plan.count());
}
