// `tritax calibrate --grid-model`, and `advise` with the file that it writes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "tests/cli/run_tritax.hpp"

namespace tritax::test {
namespace {

using testing::HasSubstr;

constexpr const char* kTwoShapes = R"(
[defaults]
machine = "h100-4"
workload = "gemm"
dtype = "bf16"
pattern = "stream-k"
knobs = { tile = [128, 128, 64] }
[[scenario]]
id = "wide"
m = 256
n = 1024
k = 2048
[[scenario]]
id = "deep"
m = 128
n = 128
k = 8192
)";

TEST(CalibrateGrid, WritesModelsThatAdviseSelectsBy) {
  const ScratchDirectory folder;
  const std::string shapes = folder.write("shapes.toml", kTwoShapes), models = folder.path("grid.json");
  const Outcome fitted =
      run_tritax("calibrate --grid-model " + shapes + " --machine h100-4 -o " + models + " --json -");
  ASSERT_EQ(fitted.exit_code, 0) << fitted.err;
  EXPECT_EQ(fitted.out, read_file(models));
  const auto model = nlohmann::json::parse(fitted.out);
  EXPECT_EQ(model["schema"], "tritax.grid-model/1");
  EXPECT_EQ(model["models"][0]["option"], "stream-k tile=128x128x64");
  const Outcome advised =
      run_tritax("advise --workload gemm -M 384 -N 512 -K 4096 --dtype bf16 --machine h100-4 --selector " +
                 models + " --json -");
  ASSERT_EQ(advised.exit_code, 0) << advised.err;
  const auto advice = nlohmann::json::parse(advised.out);
  EXPECT_EQ(advice["selector"], "grid-model");
  EXPECT_EQ(advice["candidates"].size(), 2U);
  EXPECT_THAT(advice["choice"].get<std::string>(), HasSubstr("fitted to 20 runs on h100-4"));
}

TEST(CalibrateGrid, RefusesWhatItDoesNotUse) {
  const ScratchDirectory folder;
  const std::string shapes = folder.write("shapes.toml", kTwoShapes);
  const std::string output = " -o " + folder.path("grid.json");
  for (const auto& [arguments, message] : {std::pair<std::string, const char*>{"--name x", "--name: "},
                                           {"--commit abc", "--commit: "},
                                           {"--set gpu.cus_per_xcd=0", "gpu.cus_per_xcd"}}) {
    const Outcome outcome = run_tritax("calibrate --grid-model " + shapes + output + " " + arguments);
    EXPECT_EQ(outcome.exit_code, 2) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr(message));
  }
  const Outcome none = run_tritax("calibrate --grid-model no-such-file.csv" + output);
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("no-such-file.csv"));
}

TEST(TuneGrid, SaysHowGoodTheChosenGridsAre) {
  const ScratchDirectory folder;
  const std::string shapes = folder.write("shapes.toml", kTwoShapes), models = folder.path("grid.json");
  ASSERT_EQ(run_tritax("calibrate --grid-model " + shapes + " --machine h100-4 -o " + models).exit_code, 0);
  const Outcome tuned = run_tritax("tune " + shapes + " --selector " + models + " --json -");
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  const auto answer = nlohmann::json::parse(tuned.out);
  EXPECT_EQ(answer["problems"], 2);
  EXPECT_EQ(answer["without_model"], 0);
  ASSERT_EQ(answer["selectors"].size(), 5U);
  EXPECT_EQ(answer["selectors"][0]["selector"], "grid model");
  EXPECT_EQ(answer["selectors"][3]["selector"], "exhaustive");
  EXPECT_EQ(answer["selectors"][3]["mean_ratio"], 1);
  EXPECT_LT(answer["selectors"][0]["mean_ratio"].get<double>(),
            answer["selectors"][4]["mean_ratio"].get<double>())
      << "16 tiles and one of much depth are bad for whole tiles";
}

TEST(TuneGrid, RefusesWhatGridModelsDoNotHave) {
  const ScratchDirectory folder;
  const std::string shapes = folder.write("shapes.toml", kTwoShapes);
  const std::string models = folder.write(
      "grid.json", R"({"schema":"tritax.grid-model/1","workload":"gemm","machine":"h100-4","models":[
        {"option":"stream-k tile=128x128x64","dtype":"fp16","runs":4,"a_ns":1,"b_ns":1,"c_ns":1,"d_ns":1,
         "median_error":0,"worst_error":0}]})");
  for (const auto& [arguments, message] : {std::pair<std::string, std::string>{"--sieve x.json", "--sieve: "},
                                           {"--key-bits 3", "--key-bits: "},
                                           {"--depth 3", "--depth: "},
                                           {"", "grid.json: no model has the dtype"}}) {
    const Outcome outcome = run_tritax("tune " + shapes + " --selector " + models + " " + arguments);
    EXPECT_EQ(outcome.exit_code, 2) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr(message));
  }
  EXPECT_THAT(run_tritax("tune " + shapes + " --selector nowhere.json").err, HasSubstr("nowhere.json"));
}

}  // namespace
}  // namespace tritax::test
