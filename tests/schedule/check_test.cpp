#include "model/schedule/check.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "model/core/error.hpp"
#include "tests/schedule/expect_finding.hpp"
#include "tests/schedule/random_schedule.hpp"
#include "tests/schedule/small_schedules.hpp"

namespace tritax {
namespace {

TEST(Check, NoMoreFindingsThanAskedFor) {
  EXPECT_EQ(check_schedule(counted(3), 2).size(), 2U);
  EXPECT_EQ(check_schedule(producer_consumer(false), 1).size(), 1U);
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
