// `tritax schedule` and `tritax check`: schedules are read back, and faults are found.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/run_json.hpp"

namespace tritax {
namespace {

using nlohmann::json;
using test::kSmallProblem;
using test::Outcome;
using test::run_json;
using test::run_tritax;
using test::ScratchDirectory;

TEST(Schedule, WrittenAndReadBackRunsInTheSameTimeAndIsSound) {
  const ScratchDirectory scratch;
  for (const std::string pattern :
       {"library", "bulk-synchronous", "producer-consumer", "fused-sequential", "workgroup-specialised"}) {
    const std::string file = scratch.path(pattern + (pattern == "fused-sequential" ? ".JSON" : ".json"));
    const std::string arguments = "--pattern " + pattern + " " + kSmallProblem;
    EXPECT_EQ(run_tritax("schedule " + arguments + "-o " + file).exit_code, 0);
    EXPECT_EQ(run_json("simulate " + file + " --machine mi300x-8").at("runs").at(0).at("time_us"),
              run_json("simulate " + arguments).at("runs").at(0).at("time_us"));
    const Outcome check = run_tritax("check " + file + " --machine mi300x-8");
    EXPECT_EQ(check.exit_code, 0) << check.out;
  }
}

TEST(Schedule, GoesToStandardOutputWhenNoFileIsGiven) {
  const Outcome outcome = run_tritax("schedule --pattern fused-sequential " + kSmallProblem);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(json::parse(outcome.out).at("schema"), "tritax.schedule/1");
}

// Makes every wait of a schedule ask for more than is ever signalled.
void spoil_waits(json& node) {
  if (node.is_object() && node.value("op", json()) == "wait") {
    node["value"] = 1000000;
  }
  if (node.is_structured()) {
    for (json& child : node) {
      spoil_waits(child);
    }
  }
}

// Makes every product stop in the middle of K.
void halve_products(json& node) {
  if (node.is_object() && node.value("op", json()) == "matmul") {
    json& k = node.at("k");
    k.at(1) = (k.at(0).get<int>() + k.at(1).get<int>()) / 2;
  }
  if (node.is_structured()) {
    for (json& child : node) halve_products(child);
  }
}

TEST(Check, ExecutesAScheduleAndFindsAWrongResult) {
  const ScratchDirectory scratch;
  json schedule = json::parse(run_tritax("schedule --pattern fused-sequential " + kSmallProblem).out);
  const std::string right = scratch.write("right.json", schedule.dump());
  const Outcome sound = run_tritax("check " + right + " --machine mi300x-8 --execute");
  EXPECT_EQ(sound.exit_code, 0) << sound.err;
  EXPECT_NE(sound.out.find("sound, and its results are right"), std::string::npos) << sound.out;

  halve_products(schedule);
  const std::string wrong = scratch.write("wrong.json", schedule.dump());
  EXPECT_EQ(run_tritax("check " + wrong + " --machine mi300x-8").exit_code, 0);  // it only is in good order
  const Outcome executed = run_tritax("check " + wrong + " --machine mi300x-8 --execute --seed 3 --json -");
  EXPECT_EQ(executed.exit_code, 2);
  const json findings = json::parse(executed.out).at("schedules").at(0).at("findings");
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings.at(0).at("kind"), "wrong-result");
  EXPECT_EQ(findings.at(0).at("where"), "rank 0");
}

TEST(Check, ExecutesNothingWithoutAMachineOrThatTakesMinutes) {
  const ScratchDirectory scratch;
  const std::string file =
      scratch.write("s.json", run_tritax("schedule --pattern fused-sequential " + kSmallProblem).out);
  const auto refusal = [](const std::string& arguments) {
    const Outcome outcome = run_tritax("check " + arguments);
    EXPECT_EQ(outcome.exit_code, 2) << outcome.out;
    return outcome.err;
  };
  EXPECT_NE(refusal(file + " --execute").find("--machine"), std::string::npos);
  EXPECT_NE(refusal(file + " --machine mi300x-8 --seed 2").find("--execute"), std::string::npos);
  EXPECT_NE(
      refusal("--pattern library -M 16384 -N 16384 -K 16384 --machine mi300x-8 --execute").find("allowed"),
      std::string::npos);
}

TEST(Check, NamesTheWaitThatNothingSatisfiesAndEndsWith2) {
  const ScratchDirectory scratch;
  const Outcome written = run_tritax("schedule --pattern producer-consumer " + kSmallProblem);
  json schedule = json::parse(written.out);
  const json before = schedule;
  spoil_waits(schedule);
  ASSERT_NE(schedule, before);
  const std::string file = scratch.write("spoilt.json", schedule.dump());
  const Outcome outcome = run_tritax("check " + file + " --json -");
  EXPECT_EQ(outcome.exit_code, 2);
  const json findings = json::parse(outcome.out).at("schedules").at(0).at("findings");
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings.at(0).at("kind"), "unsatisfiable-wait");
  EXPECT_NE(findings.at(0).at("where").get<std::string>().find("workgroup"), std::string::npos);
  // Nothing runs it either.
  const Outcome simulated = run_tritax("simulate " + file + " --machine mi300x-8");
  EXPECT_EQ(simulated.exit_code, 2);
  EXPECT_NE(simulated.err.find("spoilt.json"), std::string::npos) << simulated.err;
}

}  // namespace
}  // namespace tritax
