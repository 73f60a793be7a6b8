// `tritax compare` on files that the program wrote.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/run_tritax.hpp"

namespace tritax {
namespace {

using nlohmann::ordered_json;
using ::testing::HasSubstr;

constexpr const char* kSmall =
    "simulate --pattern fused-sequential -M 512 -N 1024 -K 512 --gpus 2 --machine mi300x-8 ";

// Half the links: slower by their time, and nothing else differs.
TEST(CompareCommand, FindsSlowerLinks) {
  const test::ScratchDirectory folder;
  const std::string a = folder.path("a.json");
  const std::string b = folder.path("b.json");
  ASSERT_EQ(test::run_tritax(kSmall + ("--json " + a)).exit_code, 0);
  ASSERT_EQ(test::run_tritax(kSmall + ("--scale fabric.link=0.5 --json " + b)).exit_code, 0);
  const auto outcome = test::run_tritax("compare " + a + " " + b + " --json -");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const ordered_json row = ordered_json::parse(outcome.out)["rows"][0];
  EXPECT_GT(row["change"], 0);
  EXPECT_EQ(row["parts"][0]["part"], "wire");
  double sum = 0;
  for (const ordered_json& part : row["parts"]) sum += part["change_us"].get<double>();
  EXPECT_NEAR(sum, row["after_us"].get<double>() - row["before_us"].get<double>(), 1e-6);
  ASSERT_EQ(row["differences"].size(), 1u);
  EXPECT_EQ(row["differences"][0]["name"], "machine_changes");
}

TEST(CompareCommand, FindsNothingInAFileBesideItself) {
  const test::ScratchDirectory folder;
  const std::string a = folder.path("a.json");
  ASSERT_EQ(test::run_tritax(
                "advise -M 64 -N 512 -K 512 --gpus 2 --machine mi300x-8 --selector defaults --json " + a)
                .exit_code,
            0);
  const std::string copy = folder.write("b.json", test::read_file(a));
  EXPECT_THAT(test::run_tritax("compare " + a + " " + copy).out, HasSubstr("0 got slower, 0 got faster"));
}

TEST(CompareCommand, RefusesWhatIsNoResult) {
  const test::ScratchDirectory folder;
  const std::string machine = folder.path("machine.json");
  ASSERT_EQ(test::run_tritax("machines show mi300x-8 --json " + machine).exit_code, 0);
  const auto outcome = test::run_tritax("compare " + machine + " " + machine);
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("schema 'tritax.machine/1' cannot be compared"));
  EXPECT_EQ(test::run_tritax("compare " + machine).exit_code, 2);
}

}  // namespace
}  // namespace tritax
