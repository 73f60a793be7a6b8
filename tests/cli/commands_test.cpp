// Commands without a test file of their own: valid JSON and CSV, equal numbers everywhere, accounts that add
// up.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "tests/cli/run_json.hpp"

namespace tritax {
namespace {

using nlohmann::json;
using test::kSmallProblem;
using test::Outcome;
using test::read_file;
using test::run_json;
using test::run_tritax;
using test::ScratchDirectory;

std::size_t line_count(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

double sum_of(const json& numbers) {
  double sum = 0;
  for (const json& number : numbers) {
    sum += number.get<double>();
  }
  return sum;
}

TEST(Simulate, PartsOfTheCriticalPathSumToTheTime) {
  const json run = run_json("simulate --pattern producer-consumer " + kSmallProblem).at("runs").at(0);
  const double time_us = run.at("time_us");
  EXPECT_NEAR(sum_of(run.at("critical_path")), time_us, 1e-6 * time_us);
  EXPECT_EQ(run.at("gpus").size(), 4U);
}

TEST(Simulate, CounterfactualTaxesAndRemainderSumToWhatAllThreeCost) {
  const json run = run_json("simulate --pattern bulk-synchronous " + kSmallProblem).at("runs").at(0);
  const json& taxes = run.at("taxes").at("counterfactual");
  const double time_us = run.at("time_us");
  EXPECT_NEAR(taxes.at("launch_us").get<double>() + taxes.at("bulk_synchronous_us").get<double>() +
                  taxes.at("locality_us").get<double>() + taxes.at("remainder_us").get<double>(),
              time_us - taxes.at("time_without_taxes_us").get<double>(), 1e-6 * time_us);
}

TEST(Simulate, SustainedLoadSlowsDownMachinesThatKnowTheirSustainedClock) {
  const auto time_us = [](const std::string& machine, const std::string& option) {
    return run_json(
               "simulate --pattern fused-sequential -M 8192 -N 8192 -K 16384 --dtype bf16 --gpus 2 "
               "--machine " +
               machine + option)
        .at("runs")
        .at(0)
        .at("time_us")
        .get<double>();
  };
  // A smaller product would rest enough, between one run and the next, to keep its clock.
  EXPECT_GT(time_us("h200-4", " --sustained"), 1.05 * time_us("h200-4", ""));
  EXPECT_EQ(time_us("mi300x-8", " --sustained"), time_us("mi300x-8", ""));
}

TEST(Simulate, LinksCarryWhatTheScatterSends) {
  const json run = run_json("simulate --pattern fused-sequential " + kSmallProblem).at("runs").at(0);
  double bytes = 0;
  for (const json& link : run.at("links")) {
    bytes += link.at("bytes").get<double>();
  }
  // Each of 4 GPUs sends its 1000 × 256 fp16 columns to 3 peers.
  EXPECT_NEAR(bytes, 4.0 * 1000 * 256 * 2 * 3, 1.0);
}

TEST(Simulate, CachesSayWhatServedEveryByteThatWasAskedFor) {
  const std::string run_input = "simulate --pattern producer-consumer " + kSmallProblem;
  const json caches = run_json(run_input).at("runs").at(0).at("caches");
  double asked_by_matmuls = 0;
  double hbm = 0;
  for (const json& row : caches.at("rows")) {
    const auto bytes = [&](const char* key) { return row.at(key).get<double>(); };
    EXPECT_EQ(bytes("asked"), bytes("l2_hit") + bytes("llc_hit") + bytes("hbm_read")) << row;
    if (row.at("operation") == "matmul") asked_by_matmuls += bytes("asked");
    hbm += bytes("hbm_read") + bytes("hbm_written");
  }
  EXPECT_GT(asked_by_matmuls, 0);
  EXPECT_EQ(caches.at("hbm_bytes").get<double>(), hbm);
  EXPECT_GT(caches.at("l2_hit").get<double>(), 0);
  EXPECT_LT(caches.at("l2_hit").get<double>(), 1);
  const std::string text = run_tritax(run_input + "--caches").out;
  EXPECT_NE(text.find("L2 hits (%)"), std::string::npos) << text;
  EXPECT_EQ(run_tritax(run_input).out.find("L2 hits (%)"), std::string::npos);
}

TEST(Simulate, CsvHasALineAGpuAndOneForTheNode) {
  const Outcome outcome = run_tritax("simulate --pattern library " + kSmallProblem + "--csv -");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out.rfind("id,gpu,time_us,", 0), 0U);
  EXPECT_EQ(line_count(outcome.out), 1U + 4U + 1U);
}

TEST(Simulate, RunsEveryScenarioOfAFileOrTheOneThatIsNamed) {
  const ScratchDirectory scratch;
  const std::string file = scratch.write("two.toml",
                                         "[defaults]\n"
                                         "machine = \"mi300x-8\"\nworkload = \"gemm-all-scatter\"\n"
                                         "m = 512\nn = 512\nk = 256\ndtype = \"fp16\"\ngpus = 2\n"
                                         "[[scenario]]\nid = \"first\"\npattern = \"fused-sequential\"\n"
                                         "[[scenario]]\nid = \"second\"\npattern = \"bulk-synchronous\"\n");
  EXPECT_EQ(run_json("simulate " + file).at("runs").size(), 2U);
  const json second = run_json("simulate " + file + " --id second").at("runs");
  ASSERT_EQ(second.size(), 1U);
  EXPECT_EQ(second.at(0).at("id"), "second");
  const Outcome wrong = run_tritax("simulate " + file + " --id secnd");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_NE(wrong.err.find("'second'"), std::string::npos) << wrong.err;
  for (const char* const command : {"simulate", "advise"}) {
    const Outcome without = run_tritax(std::string(command) + " --id first -M 512 -N 512 -K 256 --gpus 2" +
                                       (command[0] == 's' ? " --pattern library" : ""));
    EXPECT_EQ(without.exit_code, 2) << command;
    EXPECT_EQ(without.err, "tritax: --id: there is no scenario file to choose from\n") << command;
  }
  const Outcome several = run_tritax("trace " + file + " -o -");
  EXPECT_EQ(several.exit_code, 2);
  EXPECT_NE(several.err.find("--id"), std::string::npos) << several.err;
}

TEST(Simulate, AnotherWorkloadIsPredictedFromItsOptionsAsFromAFile) {
  const ScratchDirectory scratch;
  const std::string file = scratch.write("gather.toml",
                                         "[[scenario]]\nid = \"one\"\nmachine = \"h200-4\"\n"
                                         "workload = \"all-gather\"\nrows = 1024\ncols = 256\ngpus = 4\n"
                                         "pattern = [\"library\", \"push\"]\nknobs = { comm_cus = 16 }\n");
  const std::string gather = "simulate --workload all-gather --rows 1024 --cols 256 --machine h200-4 ";
  const auto time_us = [](const std::string& arguments) {
    return run_json(arguments).at("runs").at(0).at("time_us").get<double>();
  };
  const double library_us = time_us("simulate --id one/library " + file);
  EXPECT_EQ(time_us(gather + "--gpus 4 --pattern library"), library_us);
  EXPECT_EQ(time_us(gather + "--pattern library"), library_us);  // all GPUs of the machine
  // Without a pattern it is the usual one of the workload, as in files.
  EXPECT_EQ(time_us(gather + "--comm-cus 16"), time_us("simulate --id one/push " + file));
}

TEST(Simulate, SizesOfDataHaveUnits) {
  const std::string access =
      "simulate --workload remote-access --operation get --peers one --machine h200-4 --bytes ";
  const json run = run_json(access + "1MiB");
  EXPECT_EQ(run, run_json(access + "1048576"));
  EXPECT_EQ(run, run_json(access + "1024KiB"));
}

TEST(Trace, IsAListOfTraceEvents) {
  const ScratchDirectory scratch;
  const std::string file = scratch.path("t.json");
  const Outcome outcome = run_tritax("trace --pattern workgroup-specialised " + kSmallProblem + "-o " + file);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("perfetto"), std::string::npos);
  EXPECT_FALSE(json::parse(read_file(file)).at("traceEvents").empty());
  EXPECT_FALSE(run_json("trace --pattern fused-sequential " + kSmallProblem).at("traceEvents").empty());
}

TEST(Explain, NamesInputsWithAndWithoutEffect) {
  const json why = run_json("explain --pattern fused-sequential -M 4096 -N 4096 -K 4096 --machine mi300x-8");
  EXPECT_FALSE(why.at("sentences").empty());
  std::set<std::string> with_effect;
  std::set<std::string> without_effect;
  for (const json& input : why.at("with_effect")) {
    with_effect.insert(input.at("input").get<std::string>());
    EXPECT_NE(input.at("effect").get<double>(), 0);
  }
  for (const json& input : why.at("without_effect")) {
    without_effect.insert(input.at("input").get<std::string>());
  }
  EXPECT_EQ(with_effect.count("gpu.matrix.fp16.load_clock"), 1U);
  EXPECT_EQ(with_effect.count("knob tile_m"), 1U);
  // Nothing is called from the collective library here, and nothing is loaded from peers.
  EXPECT_EQ(without_effect.count("library.channel_bandwidth"), 1U);
  EXPECT_EQ(without_effect.count("fabric.load_efficiency"), 1U);
}

TEST(Explain, ValuesThatCannotBeRunHaveAHeadingAndAReason) {
  const std::string text =
      run_tritax("explain --pattern bulk-synchronous --tile 256x256x64 " + kSmallProblem).out;
  const std::size_t table = text.find("Inputs that change the time");
  const std::size_t impossible = text.find("Values that cannot be run");
  ASSERT_NE(table, std::string::npos) << text;
  ASSERT_NE(impossible, std::string::npos) << text;
  EXPECT_EQ(text.substr(0, impossible).find(" -\n"), std::string::npos) << text;
  const std::size_t tile = text.find("knob tile_n, 256 -> 512: ", impossible);
  ASSERT_NE(tile, std::string::npos) << text;
  EXPECT_NE(text.find("256x512x64", tile), std::string::npos) << text;
}

TEST(Explain, AnswersTheSameOnAnyNumberOfThreads) {
  const std::string command = "explain --pattern bulk-synchronous " + kSmallProblem;
  EXPECT_EQ(run_json(command + "--threads 1"), run_json(command + "--threads 2"));
}

// A published number in the form of docs/scenarios.md.
const char* const kPublished = R"([[entry]]
id = "short"
group = "mine"
metric = "time"
unit = "us"
value = 1.0
source = "a notebook"
confidence = "C"

[entry.scenario]
machine = "mi300x-8"
workload = "gemm-all-scatter"
m = 512
n = 512
k = 256
dtype = "fp16"
gpus = 2
pattern = "fused-sequential"
)";

TEST(Reproduce, PrintsPredictedPublishedAndErrorOfAFileFromElsewhere) {
  const ScratchDirectory scratch;
  const json table = run_json("reproduce " + scratch.write("mine.toml", kPublished));
  EXPECT_EQ(table.at("schema"), "tritax.reproduce/1");
  ASSERT_EQ(table.at("rows").size(), 1U);
  const json& row = table.at("rows").at(0);
  EXPECT_EQ(row.at("id"), "short");
  EXPECT_EQ(row.at("group"), "mine");
  EXPECT_EQ(row.at("unit"), "us");
  EXPECT_EQ(row.at("source"), "a notebook");
  EXPECT_EQ(row.at("calibration"), false);
  EXPECT_DOUBLE_EQ(row.at("published").get<double>(), 1.0);
  const double predicted = row.at("predicted");
  EXPECT_NEAR(row.at("error").get<double>(), (predicted - 1.0) / 1.0, 1e-12);
  const json run =
      run_json("simulate --pattern fused-sequential -M 512 -N 512 -K 256 --gpus 2 --machine mi300x-8");
  EXPECT_NEAR(predicted, run.at("runs").at(0).at("time_us").get<double>(), 1e-9 * predicted);
}

TEST(Reproduce, EndsWith2AndSaysWhyWhenANumberCannotBePredicted) {
  const ScratchDirectory scratch;
  const std::string usable = kPublished;
  std::string unusable = usable;
  unusable.replace(unusable.find("\"short\""), 7, "\"other\"");
  unusable += "knobs = { tile = [512, 512, 64] }\n";
  const std::string file = scratch.write("mine.toml", usable + unusable);
  const Outcome outcome = run_tritax("reproduce --json - " + file);
  EXPECT_EQ(outcome.exit_code, 2);
  for (const char* word : {"tritax: 'other'", "mine.toml:", "512x512x64", "1 of 2"}) {
    EXPECT_NE(outcome.err.find(word), std::string::npos) << outcome.err;
  }
  EXPECT_EQ(line_count(outcome.err), 1U);
  EXPECT_EQ(json::parse(outcome.out).at("rows").size(), 2U);  // what could be predicted is not lost
}

TEST(Reproduce, OnlyTheGroupThatIsNamed) {
  const ScratchDirectory scratch;
  const std::string file = scratch.write("mine.toml", kPublished);
  EXPECT_EQ(run_json("reproduce --group mine " + file).at("rows").size(), 1U);
  const Outcome outcome = run_tritax("reproduce --group mien " + file);
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.err.find("'mine'"), std::string::npos) << outcome.err;
}

TEST(Machines, ListsTheShippedOnesAndExplainsEveryParameter) {
  std::set<std::string> names;
  const json list = run_json("machines");
  for (const json& machine : list.at("machines")) {
    names.insert(machine.at("name").get<std::string>());
  }
  for (const char* name : {"mi300x-8", "mi325x-8", "mi355x-8", "h100-4", "h200-4", "h200-8"}) {
    EXPECT_EQ(names.count(name), 1U) << name;
    const json machine = run_json(std::string("machines show ") + name);
    EXPECT_FALSE(machine.at("parameters").empty());
    for (const json& parameter : machine.at("parameters")) {
      EXPECT_FALSE(parameter.at("source").get<std::string>().empty()) << parameter;
      EXPECT_FALSE(parameter.at("how").get<std::string>().empty()) << parameter;
    }
  }
}

TEST(Machines, CsvOfOneHasALineAParameter) {
  const json machine = run_json("machines show h200-4");
  const Outcome csv = run_tritax("machines show h200-4 --csv -");
  EXPECT_EQ(csv.out.rfind("key,value,unit,how,source,version,machine,", 0), 0U);
  EXPECT_EQ(line_count(csv.out), 1 + machine.at("parameters").size());
}

TEST(Patterns, ListsAllAndTheKnobsOfOne) {
  EXPECT_EQ(run_json("patterns").at("patterns").size(), 5U);
  std::set<std::string> knobs;
  const json pattern = run_json("patterns show producer-consumer");
  for (const json& knob : pattern.at("knobs")) {
    knobs.insert(knob.at("knob").get<std::string>());
  }
  EXPECT_EQ(knobs.count("comm_cus"), 1U);
  EXPECT_EQ(knobs.count("lock"), 1U);
}

TEST(Patterns, AreThoseOfTheWorkloadThatIsNamed) {
  const json list = run_json("patterns --workload all-gather");
  EXPECT_EQ(list.at("workload"), "all-gather");
  ASSERT_EQ(list.at("patterns").size(), 2U);
  EXPECT_EQ(list.at("patterns").at(1).at("name"), "push");
  const json usual = run_json("patterns");
  EXPECT_EQ(usual.at("workload"), "gemm-all-scatter");
  std::set<std::string> workloads;
  for (const json& workload : usual.at("workloads")) {
    workloads.insert(workload.at("name").get<std::string>());
  }
  EXPECT_EQ(workloads.count("gemm-all-scatter") + workloads.count("all-gather"), 2U);
  const json push = run_json("patterns show push --workload all-gather");
  EXPECT_EQ(push.at("workload"), "all-gather");
  EXPECT_EQ(push.at("knobs").at(0).at("option"), "--comm-tile MxN");
  const Outcome other = run_tritax("patterns show push");
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_NE(other.err.find("'push'"), std::string::npos) << other.err;
}

TEST(Patterns, ADefaultThatTheMachineDecidesIsNone) {
  std::set<std::string> by_machine;
  const json pattern = run_json("patterns show fused-sequential");
  for (const json& knob : pattern.at("knobs")) {
    if (knob.at("default").is_null()) by_machine.insert(knob.at("knob").get<std::string>());
  }
  EXPECT_EQ(by_machine, (std::set<std::string>{"tile", "gemm_cus"}));
}

TEST(Outputs, AFileAndStandardOutputHoldTheSameJson) {
  const ScratchDirectory scratch;
  const Outcome outcome = run_tritax("machines --json " + scratch.path("m.json"));
  EXPECT_NE(outcome.out.find("mi300x-8"), std::string::npos);  // the table is still for people
  EXPECT_EQ(json::parse(read_file(scratch.path("m.json"))), run_json("machines"));
  EXPECT_EQ(scratch.file_count(), 1U);
}

TEST(Outputs, ABareJsonOptionMeansStandardOutput) {
  EXPECT_EQ(json::parse(run_tritax("machines --json").out), run_json("machines"));
}

}  // namespace
}  // namespace tritax
