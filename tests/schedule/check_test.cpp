#include "model/schedule/check.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "model/core/error.hpp"
#include "tests/schedule/expect_finding.hpp"
#include "tests/schedule/random_schedule.hpp"
#include "tests/schedule/small_schedules.hpp"

namespace tritax {
namespace {

// One that nobody launches.
void add_kernel(Schedule& schedule, const std::string& name) {
  Kernel& kernel = schedule.kernels.emplace_back();
  kernel.name = name;
  kernel.workgroups.push_back({static_cast<std::uint32_t>(schedule.ops.size()), 0});
}

TEST(Check, NoMoreFindingsThanAskedFor) {
  Schedule schedule = producer_consumer();
  for (const char* name : {"k", "l", "m", "n"}) add_kernel(schedule, name);
  EXPECT_EQ(check_schedule(schedule).size(), 4U);
  EXPECT_EQ(check_schedule(schedule, 2).size(), 2U);
  EXPECT_EQ(check_schedule(producer_consumer(false), 1).size(), 1U);
}

TEST(Check, WhatDiffersInNumbersAloneIsOneFindingThatIsCounted) {
  const auto findings = check_schedule(producer_consumer(false));
  ASSERT_EQ(findings.size(), 1U) << text_of(findings);  // four workgroups wait for four flags
  EXPECT_EQ(findings[0].where, "kernel 'scatter' rank 0 workgroup 0 operation 0 (wait)");
  EXPECT_EQ(findings[0].count, 4U);
  EXPECT_TRUE(with_count(findings[0].message, findings[0].count)
                  .ends_with("flag (… and 3 more places with the same cause)"))
      << with_count(findings[0].message, findings[0].count);
  EXPECT_EQ(places_of(check_schedule(producer_consumer(true, false))), 4U);
}

TEST(Check, WhatDiffersInNamesHasAnotherCauseThoughTheNamesDifferInNumbers) {
  Schedule schedule = producer_consumer();
  for (const char* name : {"stage-2", "stage-3", "stage-3"}) add_kernel(schedule, name);
  const auto findings = check_schedule(schedule);
  ASSERT_EQ(findings.size(), 2U) << text_of(findings);
  EXPECT_EQ(findings[0].count, 1U);
  EXPECT_EQ(findings[1].count, 2U);
  EXPECT_EQ(with_count(findings[0].message, findings[0].count), findings[0].message);
}

TEST(Check, RequireSoundNamesOriginAndFindings) {
  require_sound({}, "nothing");
  try {
    require_sound(check_schedule(producer_consumer(true, false)), "small.json");
    FAIL();
  } catch (const UserError& error) {
    const std::string message = error.what();
    EXPECT_TRUE(message.starts_with("small.json: the schedule is not sound:\n  kernel 'scatter'")) << message;
    EXPECT_NE(message.find("operation 0 (copy)"), std::string::npos);
  }
}

RC_GTEST_PROP(Check, AnyWellFormedScheduleIsCheckedWithoutACrash, ()) {
  const auto findings = check_schedule(*random_schedule());
  RC_ASSERT(findings.size() <= 20U);
}

}  // namespace
}  // namespace tritax
