// Commands around measurements, as far as they go without a GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/run_tritax.hpp"

namespace tritax {
namespace {

using nlohmann::json;
using test::Outcome;
using test::read_file;
using test::run_tritax;
using test::ScratchDirectory;

const std::string kScenario = R"(
[[scenario]]
id = "tiny/fused-sequential"
machine = "h200-4"
workload = "gemm-all-scatter"
m = 512
n = 1024
k = 256
dtype = "bf16"
gpus = 2
pattern = "fused-sequential"
knobs = { tile = [128, 128, 64] }
)";
const std::string kOps =
    "# 2026-11-21, NVIDIA H200 x 2\n"
    "id,pattern,gpus,kernel,operation,side,size,count,median_us,p10_us,p90_us,sum_us,device_us,stamped_"
    "device_us\n"
    "tiny/fused-sequential,fused-sequential,2,gemm_scatter,matmul,local,128x128x256,32,3.5,3,4,112,20,21\n"
    "tiny/fused-sequential,fused-sequential,2,gemm_scatter,store,remote,128x128,32,2.5,2,3,80,20,21\n";

TEST(Measure, WithoutABackendSaysHowToBuildOneAndWritesNothing) {
  const ScratchDirectory scratch;
  const std::string scenario = scratch.write("s.toml", kScenario);
  const Outcome outcome =
      run_tritax("measure " + scenario + " -o " + scratch.path("rows.csv"), "env CUDA_VISIBLE_DEVICES=-1");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(scratch.file_count(), 1u);
#if defined(TRITAX_WITH_GPU)
  EXPECT_NE(outcome.err.find("no GPU"), std::string::npos) << outcome.err;
#else
  EXPECT_NE(outcome.err.find("-DTRITAX_GPU=amd"), std::string::npos) << outcome.err;
#endif
}

TEST(Calibrate, NeedsMicrobenchmarksWhereThereIsNoBackend) {
  const ScratchDirectory scratch;
  const Outcome outcome =
      run_tritax("calibrate -o " + scratch.path("mine.toml"), "env CUDA_VISIBLE_DEVICES=-1");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(scratch.file_count(), 0u);
#if defined(TRITAX_WITH_GPU)
  EXPECT_NE(outcome.err.find("no GPU"), std::string::npos) << outcome.err;
#else
  EXPECT_NE(outcome.err.find("--microbench"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("-DTRITAX_GPU=amd"), std::string::npos) << outcome.err;
#endif
}

const std::string kMicrobench =
    "# 2026-11-21, NVIDIA H200 x 4\n"
    "group,name,parameters,value,unit,time_us,time_p10_us,time_p90_us,runs\n"
    "barrier,host barrier,ranks=4,0.6443,us,644.290,614.095,691.019,10\n";

TEST(Calibrate, WritesAMachineThatOtherCommandsTake) {
  const ScratchDirectory scratch;
  const std::string mine = scratch.path("mine.toml");
  const Outcome outcome = run_tritax("calibrate --name mine -o " + mine + " --microbench " +
                                     scratch.write("micro.csv", kMicrobench) + " --csv " +
                                     scratch.path("parameters.csv") + " --json -");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json result = json::parse(outcome.out);
  EXPECT_EQ(result["schema"], "tritax.calibrate/1");
  EXPECT_EQ(result["machine"], "mine");
  ASSERT_EQ(result["rows"].size(), 1u);
  EXPECT_TRUE(result["rows"][0]["fitted"]);
  const std::string csv = read_file(scratch.path("parameters.csv"));
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 1 + std::ssize(result["parameters"]));
  EXPECT_NE(csv.find(",determined,version,machine,"), std::string::npos) << csv;
  const json shown = json::parse(run_tritax("machines show " + mine + " --json -").out);
  EXPECT_NE(shown.dump().find("tritax calibrate, 2026-11-21, NVIDIA H200 x 4"), std::string::npos);
}

TEST(Calibrate, NamesPlaceAndValueOfBadRowsAndLeavesNoFile) {
  const ScratchDirectory scratch;
  const std::string rows =
      scratch.write("micro.csv", kMicrobench + "barrier,host barrier,ranks=3,1,us,1,1,1,1\n");
  const Outcome outcome = run_tritax("calibrate -o " + scratch.path("mine.toml") + " --microbench " + rows);
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.err.find("micro.csv:4"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("'ranks=3'"), std::string::npos) << outcome.err;
  EXPECT_EQ(scratch.file_count(), 1u);
}

TEST(Calibrate, WritesTheMachineToStandardOutputAndNothingElseThere) {
  const ScratchDirectory scratch;
  const std::string rows = " --microbench " + scratch.write("micro.csv", kMicrobench);
  const std::string there = "cd '" + scratch.path("") + "' &&";
  const Outcome outcome = run_tritax("calibrate --name mine -o -" + rows, there);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(scratch.file_count(), 1u);  // none that is called "-"
  const std::string machine = scratch.write("mine.toml", outcome.out);
  EXPECT_EQ(run_tritax("machines show " + machine).exit_code, 0);
  EXPECT_EQ(run_tritax("calibrate --name mine -o -" + rows + " --json -").exit_code, 2);
  const Outcome unmeasured = run_tritax("calibrate -o -", there);
  EXPECT_EQ(unmeasured.exit_code, 2);
  EXPECT_NE(unmeasured.err.find("--microbench"), std::string::npos) << unmeasured.err;
}

TEST(Measure, ExplainsItselfInEveryBuild) {
  const Outcome outcome = run_tritax("measure --help");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_NE(outcome.out.find("Examples:\n  tritax measure"), std::string::npos);
  const Outcome incomplete = run_tritax("measure s.toml");
  EXPECT_EQ(incomplete.exit_code, 2);
  EXPECT_NE(incomplete.err.find("--output"), std::string::npos) << incomplete.err;
}

TEST(Measure, RefusesNumbersWithTheirRealLimitsAndTakesNoStandardOutput) {
  const auto refused = [](const std::string& arguments, const std::string& words) {
    const Outcome outcome = run_tritax("measure s.toml " + arguments);
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_NE(outcome.err.find(words), std::string::npos) << outcome.err;
  };
  for (const std::string option : {"--seed", "--flush", "--pace"}) {
    refused("-o rows.csv " + option + " -1", option + ": '-1' is not allowed; give a number from 0 on");
  }
  refused("-o -", "--output: standard output shows the progress");
  refused("-o rows.csv --ops -", "--ops: standard output shows the progress");
}

TEST(ValidateOps, PrintsResidualsByKindAndTheSameAsJson) {
  const ScratchDirectory scratch;
  const std::string files =
      "validate --ops " + scratch.write("ops.csv", kOps) + " " + scratch.write("s.toml", kScenario);
  const Outcome text = run_tritax(files);
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_NE(text.out.find("NVIDIA H200 x 2"), std::string::npos);
  EXPECT_NE(text.out.find("5.0 % longer"), std::string::npos) << text.out;
  const Outcome machine_readable = run_tritax(files + " --json -");
  const json result = json::parse(machine_readable.out);
  EXPECT_EQ(result["schema"], "tritax.validate-ops/1");
  ASSERT_EQ(result["operations"].size(), 2u);
  EXPECT_EQ(result["operations"][0]["operation"], "matmul");
  EXPECT_EQ(result["operations"][0]["count"], 32);
  EXPECT_DOUBLE_EQ(result["operations"][0]["measured_median_us"], 3.5);
  const json& row = result["rows"][1];
  EXPECT_EQ(row["side"], "remote");
  EXPECT_EQ(row["predicted"]["count"], 32);
  EXPECT_NEAR(row["error"], row["predicted"]["median_us"].get<double>() / 2.5 - 1, 1e-12);
}

// A GEMM on one GPU has no field for how many there are.
TEST(ValidateOps, KnowsAWorkloadOfOneGpu) {
  const ScratchDirectory scratch;
  const std::string scenario = scratch.write(
      "s.toml",
      "[[scenario]]\nid = \"one\"\nmachine = \"h200-4\"\nworkload = \"gemm\"\npattern = \"data-parallel\"\n"
      "dtype = \"bf16\"\nm = 512\nn = 512\nk = 256\nknobs = { tile = [128, 128, 64] }\n");
  const auto validated = [&](const std::string& gpus) {
    const std::string ops = scratch.write(
        "ops.csv",
        "# 2026-11-21, NVIDIA H200\n"
        "id,pattern,gpus,kernel,operation,side,size,count,median_us,p10_us,p90_us,sum_us,device_us,"
        "stamped_device_us\none,data-parallel," +
            gpus + ",gemm,matmul,local,128x128x256,16,3.5,3,4,56,20,21\n");
    return run_tritax("validate --ops " + ops + " " + scenario + " --json -");
  };
  const Outcome one = validated("1");
  ASSERT_EQ(one.exit_code, 0) << one.err;
  const json operations = json::parse(one.out)["operations"];
  ASSERT_EQ(operations.size(), 1u);
  EXPECT_EQ(operations[0]["operation"], "matmul");
  EXPECT_GT(operations[0]["predicted_median_us"].get<double>(), 0);
  const Outcome two = validated("2");
  EXPECT_EQ(two.exit_code, 2);
  EXPECT_NE(two.err.find("ops.csv:3: gpus = 2, but gemm of scenario 'one'"), std::string::npos) << two.err;
}

TEST(ValidateOps, RefusesWhatDoesNotGoTogether) {
  const ScratchDirectory scratch;
  const std::string ops = scratch.write("ops.csv", kOps);
  const Outcome plot = run_tritax("validate --ops " + ops + " --plot " + scratch.path("p.svg"));
  EXPECT_EQ(plot.exit_code, 2);
  EXPECT_NE(plot.err.find("--ops"), std::string::npos);
  const Outcome clock = run_tritax("validate --ops " + ops + " --clock wall");
  EXPECT_EQ(clock.exit_code, 2);
  EXPECT_NE(clock.err.find("--clock"), std::string::npos) << clock.err;
  const Outcome unknown = run_tritax("validate --ops " + ops);  // not one of the shipped scenarios
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_NE(unknown.err.find("tiny/fused-sequential"), std::string::npos) << unknown.err;
}

TEST(TraceMeasured, RefusesWhatIsNoMeasuredTimelineBeforeTheWork) {
  const ScratchDirectory scratch;
  const std::string scenario = scratch.write("s.toml", kScenario);
  const std::string out = scratch.path("both.json");
  EXPECT_EQ(run_tritax("trace " + scenario + " -o " + scratch.path("sim.json")).exit_code, 0);
  for (const std::string& measured : {scratch.path("missing.json"), scenario}) {
    const Outcome outcome = run_tritax("trace " + scenario + " --measured " + measured + " -o " + out);
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_NE(outcome.err.find(measured), std::string::npos) << outcome.err;
  }
  EXPECT_EQ(scratch.file_count(), 2u);
}

TEST(TraceMeasured, PutsBothSidesInOneFile) {
  const ScratchDirectory scratch;
  const std::string scenario = scratch.write("s.toml", kScenario);
  // A simulated timeline has the same form, so that it can stand for a measured one here.
  ASSERT_EQ(run_tritax("trace " + scenario + " -o " + scratch.path("sim.json")).exit_code, 0);
  json measured = json::parse(read_file(scratch.path("sim.json")));
  json kept = json::array();
  for (const json& event : measured["traceEvents"]) {
    if (event["ph"] != "C" && event["pid"] < 2) kept.push_back(event);
  }
  measured["traceEvents"] = kept;
  const std::string file = scratch.write("measured.json", measured.dump());
  const Outcome outcome =
      run_tritax("trace " + scenario + " --measured " + file + " -o " + scratch.path("both.json"));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::string both = read_file(scratch.path("both.json"));
  EXPECT_TRUE(json::accept(both));
  for (const std::string name : {"GPU 0 simulated", "GPU 0 measured", "GPU 1 simulated", "GPU 1 measured"}) {
    EXPECT_NE(both.find(name), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace tritax
