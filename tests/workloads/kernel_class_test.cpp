// Laws of how well own kernels are written, over all workloads.
#include "model/workload/kernel_class.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "model/core/error.hpp"
#include "model/machine/machine.hpp"
#include "model/workload/launching.hpp"
#include "model/workloads/registry.hpp"
#include "sim/simulate.hpp"

namespace tritax {
namespace {

Problem small_problem(const Workload& workload) {
  Problem problem = problem_of(workload);
  for (const Spec& field : workload.fields) {
    if (field.counts_gpus) {
      problem.values.give(field.name, std::min<std::int64_t>(4, field.high));
    } else if (field.required) {
      const bool name = field.kind == ValueKind::name;
      problem.values.give(field.name, name ? 0 : std::min<std::int64_t>(512, field.high));
    }
  }
  complete_problem(problem, "test");
  return problem;
}

Values with_kernels(const Workload& workload, KernelClass kernels) {
  Values knobs(workload.knobs);
  knobs.give(kKernelsKnob, static_cast<std::int64_t>(kernels));
  if (workload.name == "all-gather") knobs.give("comm_cus", 16);  // it asks for them
  return knobs;
}

class Kernels : public testing::TestWithParam<const Workload*> {};

TEST_P(Kernels, OfOwnPatternsHaveTheCostsOfTheirClassAndLibrariesKeepTheirs) {
  const Workload& workload = *GetParam();
  if (find_spec(workload.knobs, kKernelsKnob) == nullptr) return;
  const Machine machine = find_machine("h200-4");
  const Problem problem = small_problem(workload);
  for (const Pattern& pattern : workload.patterns) {
    EXPECT_NE(pattern.uses(kKernelsKnob), pattern.vendor) << pattern.name;
    const auto built = [&](KernelClass kernels) {
      const Values knobs = resolved_knobs(problem, machine, with_kernels(workload, kernels));
      return build_schedule(pattern, problem, machine, knobs);
    };
    const Schedule own = built(KernelClass::own), vendor = built(KernelClass::vendor);
    ASSERT_EQ(own.kernels.size(), vendor.kernels.size()) << pattern.name;
    for (std::size_t k = 0; k < own.kernels.size(); ++k) {
      const KernelProfile before = own.kernels[k].profile;
      const bool changes =
          !pattern.vendor && (before == KernelProfile::interpreter || before == KernelProfile::triton);
      EXPECT_EQ(vendor.kernels[k].profile, changes ? KernelProfile::vendor : before) << pattern.name;
    }
    if (pattern.vendor) {
      EXPECT_EQ(simulate(vendor, machine).makespan_ns, simulate(own, machine).makespan_ns) << pattern.name;
    }
  }
}

TEST_P(Kernels, AreBoundedByTheCostsOfTheirClass) {
  const Workload& workload = *GetParam();
  if (find_spec(workload.knobs, kKernelsKnob) == nullptr) return;
  const Machine machine = find_machine("h200-4");
  const Problem problem = small_problem(workload);
  for (const KernelClass kernels : {KernelClass::triton, KernelClass::vendor}) {
    for (const Pattern& pattern : workload.patterns) {
      const Values knobs = resolved_knobs(problem, machine, with_kernels(workload, kernels));
      const double ns = simulate(build_schedule(pattern, problem, machine, knobs), machine).makespan_ns;
      EXPECT_LE(least_time_ns(pattern, problem, machine, knobs), ns) << pattern.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Workloads, Kernels, testing::ValuesIn(workloads().begin(), workloads().end()),
                         [](const auto& tested) {
                           std::string name(tested.param->name);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// Iris' kernels on MI300X keep the step on its way in registers; TMA needs none.
TEST(KernelClass, OfTritonHoldsPipelinePeersAndCallUnlessTheyAreGiven) {
  const Workload& workload = find_workload("gemm-all-scatter", "test");
  const Values asked = with_kernels(workload, KernelClass::triton);
  const Values amd = with_class(asked, find_machine("mi300x-8"));
  EXPECT_EQ(amd["pipeline"], static_cast<std::int64_t>(Pipeline::serial));
  EXPECT_EQ(text_of(amd, static_cast<std::size_t>(find_spec(amd.specs(), "peer_order") - amd.specs().data())),
            "fixed");
  EXPECT_GT(amd[kCallKnob], 0);
  EXPECT_FALSE(with_class(asked, find_machine("h200-4")).given("pipeline"));
  Values held = asked;
  held.give("pipeline", static_cast<std::int64_t>(Pipeline::overlapped));
  EXPECT_EQ(with_class(held, find_machine("mi300x-8"))["pipeline"],
            static_cast<std::int64_t>(Pipeline::overlapped));
}

// What only an interpreter has takes time.
TEST(KernelClass, ThatIsCompiledIsNoSlowerThanTheInterpreter) {
  const Workload& workload = find_workload("all-reduce", "test");
  const Machine machine = find_machine("h200-8");
  const Problem problem = small_problem(workload);
  const Pattern& pattern = find_pattern(workload, "one-shot", "test");
  const auto ns = [&](KernelClass kernels) {
    Values given = with_kernels(workload, kernels);
    given.give(kCallKnob, 0);
    return simulate(build_schedule(pattern, problem, machine, resolved_knobs(problem, machine, given)),
                    machine)
        .makespan_ns;
  };
  EXPECT_LT(ns(KernelClass::triton), ns(KernelClass::own));
  EXPECT_LT(ns(KernelClass::vendor), ns(KernelClass::own));
}

}  // namespace
}  // namespace tritax
