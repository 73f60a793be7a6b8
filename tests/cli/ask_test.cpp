// Questions of the command line: changed machines, several values, complete records.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "model/core/gzip.hpp"
#include "tests/cli/run_tritax.hpp"

namespace tritax::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kSmall = "--pattern fused-sequential -M 256 -N 512 -K 256 --machine mi300x-8 ";

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

double time_of(const std::string& arguments) {
  const Outcome outcome = run_tritax("simulate " + arguments + " --json -");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  return json::parse(outcome.out)["runs"][0]["time_us"];
}

TEST(Ask, AChangedMachineIsSimulatedAndTold) {
  EXPECT_GT(time_of(std::string(kSmall) + "--set fabric.link=4GB/s"), time_of(kSmall));
  EXPECT_EQ(time_of(std::string(kSmall) + "--set fabric.link=32GB/s"),
            time_of(std::string(kSmall) + "--scale fabric.link=0.5"));
  const Outcome outcome = run_tritax(std::string("simulate ") + kSmall + "--set fabric.link=4GB/s");
  EXPECT_THAT(outcome.out, HasSubstr("of mi300x-8 with fabric.link=4 GB/s"));
}

TEST(Ask, EveryCommandWithAMachineTakesChanges) {
  const std::string change = " --set fabric.link=4GB/s ";
  for (const std::string command : {"simulate", "explain", "check", "schedule --csv -"}) {
    const Outcome outcome = run_tritax(command + " " + kSmall + change);
    EXPECT_EQ(outcome.exit_code, 0) << command << outcome.err;
  }
  EXPECT_EQ(run_tritax("advise -M 64 -N 512 -K 256 --gpus 2 --machine mi300x-8" + change).exit_code, 0);
  EXPECT_THAT(run_tritax("machines show mi300x-8" + change).out, HasSubstr("--set fabric.link=4GB/s"));
}

// A line of nccl-tests: its size, and its two bandwidths.
TEST(Ask, CollectivesTakeTheBytesOfTheirMessage) {
  const std::string ask = "--workload all-reduce --pattern library --machine h200-8 --bytes ";
  const json run = json::parse(run_tritax("simulate " + ask + "64MiB --json -").out)["runs"][0];
  const double algbw = run["algbw_gb_per_s"], busbw = run["busbw_gb_per_s"], kernels_us = run["kernels_us"];
  EXPECT_NEAR(algbw, (64 << 20) / kernels_us / 1000, 1e-6 * algbw);
  EXPECT_NEAR(busbw / algbw, 2.0 * 7 / 8, 1e-9);
  EXPECT_THAT(run_tritax("simulate " + ask + "64MiB").out, HasSubstr("busbw"));
  EXPECT_THAT(
      run_tritax("advise --workload all-gather --gpus 4 --machine h200-8 --selector defaults --bytes 1MiB")
          .out,
      HasSubstr("algbw"));
  const auto refusal = [&](const std::string& bytes) {
    const Outcome outcome = run_tritax("simulate " + ask + bytes);
    EXPECT_EQ(outcome.exit_code, 2) << bytes;
    return outcome.err;
  };
  EXPECT_THAT(refusal("17"), HasSubstr("--bytes: 17 bytes are not 8 equal blocks of fp16 elements"));
  EXPECT_THAT(refusal("1MiB --rows 4"), HasSubstr("--bytes: --rows is given as well"));
  EXPECT_THAT(run_tritax("simulate --workload all-reduce --pattern library --machine h200-8").err,
              HasSubstr("(or --bytes)"));
}

TEST(Ask, BadChangesAreOneMessage) {
  const auto refusal = [](const std::string& change) {
    const Outcome outcome = run_tritax(std::string("simulate ") + kSmall + change);
    EXPECT_EQ(outcome.exit_code, 2) << change;
    return outcome.err;
  };
  EXPECT_THAT(
      refusal("--set fabric.lnk=4GB/s"),
      StartsWith("tritax: --set fabric.lnk=4GB/s: 'fabric.lnk' is no parameter of a machine (did you mean "
                 "'fabric.link'?)"));
  EXPECT_THAT(refusal("--set fabric.link=4"), HasSubstr("has no unit"));
  EXPECT_THAT(refusal("--scale fabric.link=-1"), HasSubstr("a factor is above 0"));
  EXPECT_THAT(refusal("--set fabric.link=4GB/s --scale fabric.link=2"), HasSubstr("changes it too"));
}

TEST(Ask, ShownMachinesReadBack) {
  const ScratchDirectory scratch;
  const Outcome shown = run_tritax("machines show h200-4 --set fabric.link=100GB/s --toml");
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  const std::string file = scratch.write("mine.toml", shown.out);
  const std::string problem = "--pattern fused-sequential -M 256 -N 512 -K 256 --machine ";
  EXPECT_EQ(time_of(problem + file), time_of(problem + "h200-4 --set fabric.link=100GB/s"));
}

TEST(Ask, SeveralValuesAreOneTableOfAll) {
  const Outcome outcome = run_tritax(
      "simulate --pattern fused-sequential,bulk-synchronous -M 256,512 -N 512 -K 256 --gpus 2,4 "
      "--machine mi300x-8 --set fabric.link=32GB/s,64GB/s --json -");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json all = json::parse(outcome.out);
  ASSERT_EQ(all["runs"].size(), 16U);
  std::set<std::string> different;
  for (const json& run : all["runs"]) {
    different.insert(run["workload"]["m"].dump() + run["workload"]["gpus"].dump() + run["pattern"].dump() +
                     run["machine_changes"].dump());
    const std::string one =
        "--pattern " + run["pattern"].get<std::string>() + " -N 512 -K 256 -M " +
        run["workload"]["m"].dump() + " --gpus " + run["workload"]["gpus"].dump() +
        " --machine mi300x-8 --set fabric.link=" + (!run["machine_changes"].empty() ? "32GB/s" : "64GB/s");
    if (different.size() % 5 == 1) {
      EXPECT_EQ(time_of(one), run["time_us"].get<double>());
    }
  }
  EXPECT_EQ(different.size(), 16U);
}

TEST(Ask, SeveralQuestionsAreOneTableOfAll) {
  const std::string command =
      "advise -M 64,128 -N 512 -K 256 --gpus 2,4 --machine mi300x-8 --selector defaults ";
  const Outcome outcome = run_tritax(command + "--json -");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  std::set<std::string> questions;
  std::size_t candidates = 0;
  const json all = json::parse(outcome.out);
  for (const json& question : all["questions"]) {
    questions.insert(question["workload"]["m"].dump() + " on " + question["workload"]["gpus"].dump());
    candidates += question["candidates"].size();
  }
  EXPECT_EQ(questions, (std::set<std::string>{"64 on 2", "64 on 4", "128 on 2", "128 on 4"}));
  EXPECT_EQ(lines_of(run_tritax(command + "--csv -").out).size(), 1 + candidates);
  EXPECT_THAT(
      run_tritax("advise -M 64,128 -N 512 -K 256 --gpus 2 --machine mi300x-8 --selector defaults").out,
      HasSubstr("2 questions, 2 GPUs of mi300x-8"));
}

TEST(Ask, BadSeveralValuesAreRefused) {
  const auto refusal = [](const std::string& command) {
    const Outcome outcome = run_tritax(command + " -N 512 -K 256 --machine mi300x-8");
    EXPECT_EQ(outcome.exit_code, 2) << command;
    return outcome.err;
  };
  EXPECT_THAT(refusal("advise -M 64,,8"), HasSubstr("-M: '64,,8' has an empty value"));
  EXPECT_THAT(refusal("advise -M 64,64"), HasSubstr("-M: '64,64' has 64 twice"));
  EXPECT_THAT(refusal("advise -M 64,x"), HasSubstr("-M: 'x' is not a whole number"));
  EXPECT_THAT(refusal("simulate --pattern fused-sequential -M 64,128 --gpus 2,9"),
              HasSubstr("M 64, gpus 9: --gpus: 9 is more"));
  EXPECT_THAT(refusal("explain --pattern fused-sequential -M 64,128"), HasSubstr("'explain' takes one"));
}

TEST(Ask, AFileIsOneQuestionForEveryProblem) {
  const ScratchDirectory scratch;
  const std::string file = scratch.write("two.toml", R"([defaults]
machine = "mi300x-8"
workload = "gemm-all-scatter"
dtype = "fp16"
gpus = 2
n = 512
k = 256
pattern = ["library", "fused-sequential"]
[[scenario]]
id = "first/small"
m = 64
[[scenario]]
id = "second/large"
m = 128
)");
  const Outcome outcome = run_tritax("advise " + file + " --json -");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json all = json::parse(outcome.out);
  ASSERT_EQ(all["questions"].size(), 2U);
  EXPECT_EQ(all["questions"][1]["workload"]["m"], 128);
  EXPECT_THAT(run_tritax("advise " + file).out, HasSubstr("second/large"));
  // A beginning that is unique is completed; one that is not lists the candidates.
  EXPECT_EQ(json::parse(run_tritax("simulate " + file + " --id sec --json -").out)["runs"].size(), 2U);
  EXPECT_THAT(run_tritax("simulate " + file + " --id first/small/l").out, StartsWith("first/small/library"));
  EXPECT_THAT(run_tritax("simulate " + file + " --id secnd/large").err,
              HasSubstr("did you mean 'second/large"));
}

TEST(Ask, ScenariosThatComeWithTheProgramAreListedAndTakenByName) {
  const Outcome outcome = run_tritax("scenarios list --json -");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json all = json::parse(outcome.out)["scenarios"];
  EXPECT_GT(all.size(), 20U);
  EXPECT_EQ(all[0]["file"], "16384-cubed");
  EXPECT_EQ(run_tritax("check iris-six-shapes --id 8192x3584x14336/library").exit_code, 0);
}

TEST(Records, HaveVersionMachineProblemAndKnobs) {
  const Outcome as_csv = run_tritax(std::string("simulate ") + kSmall + "--set fabric.link=4GB/s --csv -");
  const std::string header = lines_of(as_csv.out)[0];
  for (const std::string column :
       {"version", "machine", "machine_changes", "workload", "m", "n", "k", "dtype", "gpus", "pattern",
        "tile_m", "tile_n", "tile_k", "waves", "group_m", "peer_order"}) {
    EXPECT_THAT("," + header + ",", HasSubstr("," + column + ",")) << header;
  }
  EXPECT_THAT(as_csv.out, HasSubstr("fabric.link=4 GB/s (was 64 GB/s)"));
  for (const std::string command : {"simulate", "explain"}) {
    const Outcome outcome = run_tritax(command + " " + kSmall + "--json -");
    const json whole = json::parse(outcome.out);
    const json& record = whole.contains("runs") ? whole["runs"][0] : whole;
    EXPECT_TRUE(record.contains("version")) << command;
    EXPECT_EQ(record["machine"], "mi300x-8") << command;
    EXPECT_TRUE(record["machine_changes"].empty()) << command;
    EXPECT_EQ(record["workload"]["m"], 256) << command;
    EXPECT_EQ(record["pattern"], "fused-sequential") << command;
    EXPECT_TRUE(record["knobs"]["tile"].is_string()) << command;
  }
}

TEST(Records, TracesSayWhatTheyAreOf) {
  const Outcome outcome = run_tritax(std::string("trace ") + kSmall + "--scale fabric.link=0.5 -o -");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json about = json::parse(outcome.out)["otherData"];
  EXPECT_TRUE(about.contains("version"));
  EXPECT_EQ(about["machine"], "mi300x-8");
  EXPECT_EQ(about["machine_changes"][0], "fabric.link=32 GB/s (was 64 GB/s)");
  EXPECT_EQ(about["workload"]["k"], 256);
  EXPECT_EQ(about["pattern"], "fused-sequential");
}

TEST(Records, NamesThatEndInGzAreCompressedAndReadBack) {
  const ScratchDirectory scratch;
  const std::string schedule = scratch.path("s.json.gz");
  ASSERT_EQ(run_tritax(std::string("schedule ") + kSmall + "-o " + schedule).exit_code, 0);
  EXPECT_TRUE(is_gzip(read_file(schedule)));
  const Outcome plain = run_tritax(std::string("schedule ") + kSmall);
  EXPECT_EQ(gunzip(read_file(schedule), std::size_t{1} << 30), plain.out);
  EXPECT_EQ(run_tritax("check " + schedule + " --machine mi300x-8").exit_code, 0);
  for (const std::string option : {"--csv ", "--json "}) {
    const std::string file = scratch.path("out.gz");
    ASSERT_EQ(run_tritax(std::string("simulate ") + kSmall + option + file).exit_code, 0);
    EXPECT_TRUE(is_gzip(read_file(file)));
  }
}

TEST(Records, PlotsAreSvgOrRefused) {
  const Outcome outcome = run_tritax("validate --plot parity.png");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(
      outcome.err,
      HasSubstr("--plot: 'parity.png': the plot is drawn as SVG; give a name that ends in .svg or .svg.gz"));
}

}  // namespace
}  // namespace tritax::test
