// Laws of the search spaces and bounds of every workload.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "model/core/error.hpp"
#include "model/schedule/check.hpp"
#include "model/workloads/registry.hpp"

namespace tritax {
namespace {

// Rows enough for every height of a group of tiles; and few, where every schedule is looked through.
constexpr std::int64_t kSide = 1999;
constexpr std::int64_t kSmallSide = 120;

// Every field at its usual value, or at an odd one where there is none.
Problem small_problem(const Workload& workload, int gpus, std::int64_t side) {
  Problem problem = problem_of(workload);
  for (const Spec& field : workload.fields) {
    if (field.counts_gpus) {
      problem.values.give(field.name, gpus);
    } else if (field.required && field.kind == ValueKind::name) {
      problem.values.give(field.name, static_cast<std::int64_t>(field.names.size()) - 1);
    } else if (field.required) {
      problem.values.give(field.name, field.kind == ValueKind::bytes ? 1 << 16 : side);
    }
  }
  complete_problem(problem, "test");
  return problem;
}

template <typename Visit>
void for_each_case(std::int64_t side, const Visit& visit) {
  for (const Workload* workload : workloads()) {
    for (const Pattern& pattern : workload->patterns) {
      for (const auto& [name, gpus] : {std::pair{"mi300x-8", 2}, {"h200-4", 4}}) {
        SCOPED_TRACE(std::string(workload->name) + ", " + std::string(pattern.name) + " on " +
                     std::to_string(gpus) + " of " + name);
        visit(pattern, small_problem(*workload, gpus, side), find_machine(name));
      }
    }
  }
}

KnobSpace space_of(const Pattern& pattern, const Problem& problem, const Machine& machine,
                   const Values& pins = {}) {
  if (problem.workload->space != nullptr) return problem.workload->space(pattern, problem, machine, pins);
  KnobSpace space;
  space.base = resolved_knobs(problem, machine, pins);
  return space;
}

std::vector<Option> options_of(const KnobSpace& space) {
  std::vector<Option> options = coarse_choices(space);
  for (Option& option : neighbours(space, start_of(space))) options.push_back(std::move(option));
  return options;
}

TEST(EveryWorkloadsSpace, HoldsOnlyKnobsThatBuildSoundSchedules) {
  for_each_case(kSmallSide, [](const Pattern& pattern, const Problem& problem, const Machine& machine) {
    for (const Option& option : options_of(space_of(pattern, problem, machine))) {
      SCOPED_TRACE(key_of(option.knobs));
      Schedule schedule;
      ASSERT_NO_THROW(schedule = build_schedule(pattern, problem, machine, option.knobs));
      EXPECT_FALSE(schedule.ops.empty());
      EXPECT_NO_THROW(require_sound(check_schedule(schedule), "schedule"));
      EXPECT_NO_THROW(require_sound(check_schedule_on(schedule, machine), "schedule"));
    }
  });
}

TEST(EveryWorkloadsSpace, VariesNoKnobThatItsPatternDoesNotUse) {
  for_each_case(kSide, [](const Pattern& pattern, const Problem& problem, const Machine& machine) {
    const std::vector<Option> options = options_of(space_of(pattern, problem, machine));
    for (const Spec& knob : problem.workload->knobs) {
      if (pattern.uses(knob.name)) continue;
      for (const Option& option : options) {
        for (std::size_t part = 0; part < knob.columns(); ++part) {
          EXPECT_EQ(option.knobs[knob.column(part)], options.front().knobs[knob.column(part)]) << knob.name;
        }
      }
    }
  });
}

// One knob at a time, at the value of the last option.
TEST(EveryWorkloadsSpace, HoldsWhatIsGivenFixed) {
  for_each_case(kSide, [](const Pattern& pattern, const Problem& problem, const Machine& machine) {
    const Values last = options_of(space_of(pattern, problem, machine)).back().knobs;
    for (const Spec& knob : problem.workload->knobs) {
      if (!pattern.uses(knob.name)) continue;
      Values pins(problem.workload->knobs);
      bool possible = true;
      for (std::size_t part = 0; part < knob.columns(); ++part) {
        const std::int64_t value = last[knob.column(part)];
        possible = possible && (value >= knob.low || knob.kind != ValueKind::integer);
        pins.give(knob.column(part), value);
      }
      if (!possible) continue;  // the pattern decides
      for (const Option& option : options_of(space_of(pattern, problem, machine, pins))) {
        for (std::size_t part = 0; part < knob.columns(); ++part) {
          const std::string column = knob.column(part);
          EXPECT_EQ(option.knobs[column], pins[column]) << column;
        }
      }
    }
  });
}

}  // namespace
}  // namespace tritax
