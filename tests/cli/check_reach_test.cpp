// For which launch orders "sound" holds, and how findings of one cause are shown.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/run_tritax.hpp"

namespace tritax {
namespace {

using nlohmann::json;
using test::Outcome;
using test::run_tritax;
using test::ScratchDirectory;

const std::string kTwoGpuProblem = "-M 512 -N 512 -K 256 --gpus 2 --machine mi300x-8";

TEST(CheckReach, SaysInWhichOrdersOfItsStreamsAScheduleIsSound) {
  const Outcome text = run_tritax("check --pattern producer-consumer " + kTwoGpuProblem);
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_NE(text.out.find("sound in whatever order its streams start\n"), std::string::npos) << text.out;
  for (const auto& [pattern, orders] :
       {std::pair{"producer-consumer", "every"}, {"bulk-synchronous", "one"}}) {
    const Outcome outcome =
        run_tritax("check --pattern " + std::string(pattern) + " --json - " + kTwoGpuProblem);
    EXPECT_EQ(json::parse(outcome.out).at("schedules").at(0).at("launch_orders"), orders) << pattern;
  }
}

TEST(CheckReach, CountsThePlacesOfOneCause) {
  const ScratchDirectory scratch;
  json schedule = json::parse(run_tritax("schedule --pattern producer-consumer " + kTwoGpuProblem).out);
  for (json& kernel : schedule.at("kernels")) {
    for (json& workgroup : kernel.at("workgroups")) {
      json& ops = workgroup.at("ops");
      for (std::size_t i = ops.size(); i-- > 0;) {
        if (ops[i].at("op") == "signal") ops.erase(i);
      }
    }
  }
  const std::string file = scratch.write("silent.json", schedule.dump());
  const json checked = json::parse(run_tritax("check --json - " + file).out).at("schedules").at(0);
  EXPECT_FALSE(checked.contains("launch_orders"));
  const json& findings = checked.at("findings");
  ASSERT_EQ(findings.size(), 1U) << findings;
  EXPECT_GT(findings.at(0).at("count"), 1);
  EXPECT_EQ(findings.at(0).at("message").get<std::string>().find("more places"), std::string::npos);
  EXPECT_NE(run_tritax("check " + file).out.find("more places with the same cause)"), std::string::npos);
}

}  // namespace
}  // namespace tritax
