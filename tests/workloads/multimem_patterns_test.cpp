// Every pattern that has a form in the switch (multimem) ends with what it must, three runs in a row.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "model/core/error.hpp"
#include "model/workloads/registry.hpp"
#include "tests/workloads/partial_sums.hpp"

namespace tritax {
namespace {

namespace sums = partial_sums_test;

Machine small_h200() {
  Machine machine = find_machine("h200-8");
  machine.gpu.cus_per_xcd = 8;
  return machine;
}

// Fields of any of the workloads, of ragged sizes.
Problem question(const Workload& workload, DType dtype, int gpus) {
  Problem problem = problem_of(workload);
  const auto give = [&](std::string_view field, std::int64_t value) {
    if (problem.values.has(field)) problem.values.give(field, value);
  };
  give("rows", 35);
  give("cols", 50);
  give("m", 70);
  give("n", 50);
  give("k", 90);
  give("dtype", static_cast<std::int64_t>(dtype));
  give("gpus", gpus);
  complete_problem(problem, "test");
  return problem;
}

struct SwitchForm {
  std::string_view knob;
  std::int64_t value;
};

constexpr std::array<SwitchForm, 2> kSwitchForms{{{"transport", 2}, {"through", 1}}};

// The value of the knob, where this pattern of the workload has it.
bool has_form(const Workload& workload, const Pattern& pattern, const SwitchForm& form) {
  const Spec* spec = find_spec(workload.knobs, form.knob);
  return spec != nullptr && pattern.uses(form.knob) &&
         static_cast<std::int64_t>(spec->names.size()) > form.value && spec->names.back() == "multimem";
}

TEST(MultimemPatterns, AreRightOnOneToEightRanksWithAllTypesThreeTimesInARow) {
  const Machine machine = small_h200();
  int forms = 0;
  for (const Workload* workload : workloads()) {
    for (const Pattern& pattern : workload->patterns) {
      for (const SwitchForm& form : kSwitchForms) {
        if (!has_form(*workload, pattern, form)) continue;
        ++forms;
        for (const int gpus : {1, 2, 3, 5, 8}) {
          if (gpus == 1 && workload->name == "all-gather") continue;
          for (const DType dtype : {DType::fp32, DType::fp16, DType::bf16}) {
            const Problem asked = question(*workload, dtype, gpus);
            Values knobs(workload->knobs);
            if (knobs.has("tile_m")) knobs = sums::small_tiles(*workload);
            if (knobs.has("comm_cus")) knobs.give("comm_cus", 2);
            if (knobs.has("gemm_cus")) knobs.give("gemm_cus", 4);
            if (knobs.has("comm_tile_m") && !knobs.has("tile_m")) {
              knobs.give("comm_tile_m", 16);
              knobs.give("comm_tile_n", 16);
            }
            knobs.give(form.knob, form.value);
            const Schedule schedule = sums::built(pattern, asked, machine, knobs);
            EXPECT_EQ(std::any_of(schedule.ops.begin(), schedule.ops.end(),
                                  [](const Op& op) { return op.multimem; }),
                      gpus > 1)
                << workload->name << " " << pattern.name;
            EXPECT_EQ(sums::what_is_wrong(pattern, asked, machine, knobs), "")
                << workload->name << " on " << gpus;
          }
        }
      }
    }
  }
  EXPECT_GE(forms, 12);
}

// A machine whose switch does not multicast says so, and never has the form in its search.
TEST(MultimemPatterns, AreRefusedAndNotSearchedWithoutASwitchThatMulticasts) {
  const Machine machine = find_machine("mi300x-8");
  for (const Workload* workload : workloads()) {
    for (const Pattern& pattern : workload->patterns) {
      for (const SwitchForm& form : kSwitchForms) {
        if (!has_form(*workload, pattern, form)) continue;
        const Problem asked = question(*workload, DType::bf16, 4);
        Values knobs(workload->knobs);
        if (knobs.has("comm_cus")) knobs.give("comm_cus", 2);
        knobs.give(form.knob, form.value);
        EXPECT_THROW(sums::built(pattern, asked, machine, knobs), UserError) << workload->name;
        for (const Axis& axis : workload->space(pattern, asked, machine, Values(workload->knobs)).axes)
          EXPECT_FALSE(axis.name == form.knob && static_cast<std::int64_t>(axis.values.size()) > form.value)
              << workload->name;
      }
    }
  }
}

}  // namespace
}  // namespace tritax
