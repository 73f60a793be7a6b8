// `tritax import`: other commands read its output, and mistakes have messages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/run_tritax.hpp"

namespace tritax {
namespace {

using ::testing::HasSubstr;

std::string sample(const std::string& name) { return TRITAX_SOURCE_DIR "/tests/imports/data/" + name; }

TEST(ImportCommand, WritesScenariosThatAreSimulated) {
  const test::ScratchDirectory folder;
  const std::string file = folder.path("run.toml");
  const auto imported = test::run_tritax("import trace " + sample("kineto.json") + " --machine h200-8 -o " +
                                         file + " --json -");
  ASSERT_EQ(imported.exit_code, 0) << imported.err;
  const auto answer = nlohmann::json::parse(imported.out);
  EXPECT_EQ(answer["form"], "Kineto");
  EXPECT_EQ(answer["problems"].size(), 6u);
  EXPECT_EQ(answer["left_out"].size(), 3u);
  const auto listed = test::run_tritax("scenarios list " + file);
  EXPECT_EQ(listed.exit_code, 0) << listed.err;
  EXPECT_THAT(listed.out, HasSubstr("gemm-all-reduce/2"));
  const auto run =
      test::run_tritax("simulate " + file + " --id gemm-all-reduce/1 --pattern bulk-synchronous");
  EXPECT_EQ(run.exit_code, 0) << run.err;
}

TEST(ImportCommand, WritesAMachineThatIsSimulated) {
  const test::ScratchDirectory folder;
  const std::string file = folder.path("hgx.toml");
  const auto imported =
      test::run_tritax("import topology " + sample("network.yml") + " --machine h200-8 -o " + file);
  ASSERT_EQ(imported.exit_code, 0) << imported.err;
  EXPECT_THAT(imported.out, HasSubstr("fabric.link"));
  EXPECT_THAT(imported.out, HasSubstr("network.yml:4: bandwidth[0]"));
  const auto run =
      test::run_tritax("simulate --pattern fused-sequential -M 512 -N 1024 -K 512 --machine " + file);
  EXPECT_EQ(run.exit_code, 0) << run.err;
}

TEST(ImportCommand, RefusesWhatIsNoSuchFile) {
  const test::ScratchDirectory folder;
  const auto trace = test::run_tritax("import trace " + sample("network.yml") + " --machine h200-8 -o " +
                                      folder.path("a.toml"));
  EXPECT_EQ(trace.exit_code, 2);
  EXPECT_THAT(trace.err, HasSubstr("network.yml: not valid JSON: "));
  const auto topology = test::run_tritax("import topology " + sample("kineto.json") +
                                         " --machine h200-8 -o " + folder.path("b.toml"));
  EXPECT_EQ(topology.exit_code, 2);
  EXPECT_THAT(topology.err, HasSubstr("kineto.json: not a topology: "));
  const auto group = test::run_tritax("import trace " + sample("chakra.json") + " --machine h200-8 -o " +
                                      folder.path("c.toml"));
  EXPECT_EQ(group.exit_code, 2);
  EXPECT_THAT(group.err, HasSubstr("give --gpus"));
  EXPECT_EQ(folder.file_count(), 0u);
}

}  // namespace
}  // namespace tritax
