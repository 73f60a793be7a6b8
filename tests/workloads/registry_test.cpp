// Laws that the tables of all workloads keep, so that code may loop over them.
#include "model/workloads/registry.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <string>

#include "model/core/error.hpp"

namespace tritax {
namespace {

class EveryWorkload : public testing::TestWithParam<const Workload*> {
 protected:
  const Workload& workload() const { return *GetParam(); }

  template <typename Visit>
  void for_each_spec(const Visit& visit) const {
    for (const Spec& field : workload().fields) visit(field);
    for (const Spec& knob : workload().knobs) visit(knob);
  }

  bool has_pattern(std::string_view name) const {
    return std::any_of(workload().patterns.begin(), workload().patterns.end(),
                       [&](const Pattern& pattern) { return pattern.name == name; });
  }
};

TEST_P(EveryWorkload, IsFoundByItsName) { EXPECT_EQ(&find_workload(workload().name, "test"), &workload()); }

TEST_P(EveryWorkload, SaysWhatItIs) {
  EXPECT_FALSE(workload().name.empty());
  EXPECT_FALSE(workload().title.empty());
  EXPECT_FALSE(workload().summary.empty());
  EXPECT_NE(workload().size_text, nullptr);
  EXPECT_FALSE(workload().fields.empty());
  EXPECT_FALSE(workload().patterns.empty());
}

TEST_P(EveryWorkload, HasPatternsOfDifferentNamesThatBuildAndSayWhatTheyDo) {
  std::set<std::string_view> names;
  for (const Pattern& pattern : workload().patterns) {
    EXPECT_TRUE(names.insert(pattern.name).second) << pattern.name;
    EXPECT_FALSE(pattern.summary.empty()) << pattern.name;
    EXPECT_NE(pattern.build, nullptr) << pattern.name;
    EXPECT_EQ(&find_pattern(workload(), pattern.name, "test"), &pattern);
  }
}

TEST_P(EveryWorkload, HasItsBaselineAndItsUsualPattern) {
  if (workload().baseline.empty()) {
    EXPECT_EQ(baseline_of(workload()), nullptr);
  } else {
    EXPECT_TRUE(has_pattern(workload().baseline)) << workload().baseline;
  }
  EXPECT_TRUE(workload().usual_pattern.empty() || has_pattern(workload().usual_pattern));
  EXPECT_TRUE(workload().library_key.empty() || has_pattern(workload().library_key));
}

TEST_P(EveryWorkload, HasEveryKnobThatAPatternUsesAndUsesEveryKnob) {
  for (const Pattern& pattern : workload().patterns) {
    for (const std::string_view knob : pattern.knobs) {
      EXPECT_NE(find_spec(workload().knobs, knob), nullptr) << pattern.name << " uses " << knob;
      EXPECT_TRUE(pattern.uses(knob));
    }
  }
  for (const Spec& knob : workload().knobs) {
    const bool is_used = std::any_of(workload().patterns.begin(), workload().patterns.end(),
                                     [&](const Pattern& pattern) { return pattern.uses(knob.name); });
    EXPECT_TRUE(knob.of_every_run || is_used) << knob.name << " is used by no pattern";
  }
}

TEST_P(EveryWorkload, ExplainsItsValuesInAPhrase) {
  for_each_spec([](const Spec& spec) {
    EXPECT_FALSE(spec.help.empty()) << spec.name;
    EXPECT_FALSE(spec.help.ends_with('.')) << spec.name;
  });
}

TEST_P(EveryWorkload, HasValuesWhoseRangeAndNamesMakeSense) {
  for_each_spec([](const Spec& spec) {
    EXPECT_FALSE(spec.name.empty());
    EXPECT_EQ(spec.kind == ValueKind::name, !spec.names.empty()) << spec.name;
    EXPECT_LE(spec.low, spec.high) << spec.name;
    EXPECT_GE(spec.step, 1) << spec.name;
    EXPECT_TRUE(spec.columns() == 1 || spec.kind == ValueKind::integer) << spec.name;
    for (const char letter : spec.name) EXPECT_TRUE(std::islower(letter) || letter == '_') << spec.name;
  });
}

// The number of GPUs is that of the machine where a command line does not say.
TEST_P(EveryWorkload, HasNoUsualValueOfARequiredSizeThatWouldPass) {
  for_each_spec([](const Spec& spec) {
    const bool size = spec.kind == ValueKind::integer || spec.kind == ValueKind::bytes;
    if (!spec.required || !size || spec.counts_gpus) return;
    for (std::size_t part = 0; part < spec.columns(); ++part) {
      EXPECT_TRUE(spec.usual[part] < spec.low || spec.usual[part] > spec.high) << spec.name;
    }
  });
}

TEST_P(EveryWorkload, HasOnlyOneValueOfEachNameAmongFieldsAndKnobs) {
  std::set<std::string> columns;
  std::set<std::string> options;
  for_each_spec([&](const Spec& spec) {
    for (std::size_t part = 0; part < spec.columns(); ++part) {
      EXPECT_TRUE(columns.insert(spec.column(part)).second) << spec.column(part);
    }
    EXPECT_TRUE(options.insert(spec.option_name()).second) << spec.option_name();
  });
}

// With four GPUs and 1024 for every size that has no usual value.
TEST_P(EveryWorkload, HasKernelsOfAVendorInThePatternsThatStandForOneAndNoOthers) {
  const Machine machine = find_machine("h200-4");
  Problem problem = problem_of(workload());
  for (const Spec& field : workload().fields) {
    const bool size = field.kind == ValueKind::integer || field.kind == ValueKind::bytes;
    if (field.counts_gpus) problem.values.give(std::string(field.name), 4);
    if (!field.required || !size || field.counts_gpus) continue;
    for (std::size_t part = 0; part < field.columns(); ++part) problem.values.give(field.column(part), 1024);
  }
  const auto stands_for_one = [](const Pattern& pattern) { return pattern.vendor; };
  if (std::none_of(workload().patterns.begin(), workload().patterns.end(), stands_for_one)) return;
  complete_problem(problem, "test");
  Values knobs(workload().knobs);
  for (const Spec& knob : workload().knobs) {
    if (knob.name == "comm_cus") knobs.give(std::string(knob.name), 8);  // of which some have no usual value
  }
  for (const Pattern& pattern : workload().patterns) {
    const Schedule schedule =
        build_schedule(pattern, problem, machine, resolved_knobs(problem, machine, knobs));
    for (const Kernel& kernel : schedule.kernels) {
      EXPECT_EQ(kernel.profile == KernelProfile::vendor, pattern.vendor)
          << pattern.name << ": " << kernel.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryWorkload, testing::ValuesIn(workloads().begin(), workloads().end()),
                         [](const auto& workload) {
                           std::string name(workload.param->name);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(Workloads, HaveDifferentNames) {
  std::set<std::string_view> names;
  for (const Workload* workload : workloads()) {
    EXPECT_TRUE(names.insert(workload->name).second) << workload->name;
    if (workload->former_name.empty()) continue;
    EXPECT_TRUE(names.insert(workload->former_name).second) << workload->former_name;
  }
  EXPECT_GE(names.size(), 4u);
}

TEST(FindWorkload, KnowsFormerNames) {
  const Workload& workload = find_workload("gemm-beside-all-gather", "--workload");
  EXPECT_EQ(workload.name, "gemm-beside-collective");
  EXPECT_EQ(workload_named(""), nullptr);
}

TEST(FindWorkload, OffersTheNearestNameAndListsAll) {
  try {
    find_workload("all-gathr", "--workload");
    FAIL() << "found";
  } catch (const UserError& error) {
    const std::string message = error.what();
    EXPECT_EQ(message.rfind("--workload: unknown workload 'all-gathr', did you mean 'all-gather'?", 0), 0u)
        << message;
    for (const Workload* workload : workloads()) {
      EXPECT_NE(message.find(workload->name), std::string::npos) << message;
    }
  }
}

}  // namespace
}  // namespace tritax
