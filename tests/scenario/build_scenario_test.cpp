#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "model/core/error.hpp"
#include "model/scenario/scenario.hpp"
#include "tests/workloads/gemm_all_scatter.hpp"
#include "tests/workloads/problems.hpp"

namespace tritax {
namespace {

RemoteAccess access(RemoteOperation operation, Peers peers, std::int64_t bytes, int gpus) {
  RemoteAccess workload;
  workload.operation = operation;
  workload.peers = peers;
  workload.bytes = bytes;
  workload.gpus = gpus;
  return workload;
}

TEST(BuildScenario, NeedsAWindowToCompareWhatIsPostedWith) {
  AllGather workload;
  workload.rows = workload.cols = 128;
  workload.gpus = 2;
  workload.posted_bytes_per_peer = 2048;
  Scenario scenario = scenario_of(problem_of(workload));
  scenario.knobs.give("comm_cus", 1);
  scenario.where = "file.toml:3";
  Machine machine = find_machine("mi355x-8");
  EXPECT_NO_THROW(build_scenario(scenario, machine));
  machine.gpu.post_ns = 0;
  try {
    build_scenario(scenario, machine);
    FAIL() << "built without gpu.post_time";
  } catch (const UserError& error) {
    const std::string message = error.what();
    for (const char* part : {"file.toml:3", "posted_bytes_per_peer", "gpu.post_time", "mi355x-8"}) {
      EXPECT_NE(message.find(part), std::string::npos) << message;
    }
  }
}

TEST(BuildScenario, RefusesMoreGpusThanTheMachineHas) {
  Scenario scenario = scenario_of(problem_of(access(RemoteOperation::load, Peers::all, 1 << 20, 9)));
  scenario.where = "file.toml:3";
  try {
    build_scenario(scenario, find_machine("mi300x-8"));
    FAIL() << "accepted";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("file.toml:3: gpus = 9"), std::string::npos) << error.what();
  }
}

// The message of the UserError of building; empty if it is accepted.
std::string message_of(const Problem& problem, const GemmKnobs& knobs = {}) {
  Scenario scenario = scenario_of(problem);
  scenario.where = "file.toml:3";
  give(scenario.knobs, knobs);
  try {
    build_scenario(scenario, find_machine("mi300x-8"));
  } catch (const UserError& error) {
    return error.what();
  }
  return {};
}

TEST(BuildScenario, RefusesWhatTheMemoryDoesNotHold) {
  const auto most = std::int64_t{19} << 30;  // nine times 19 GiB fit 192 GB
  EXPECT_EQ(message_of(problem_of(access(RemoteOperation::load, Peers::all, most, 8))), "");
  EXPECT_NE(message_of(problem_of(access(RemoteOperation::load, Peers::all, most * 2, 8))).find("GB"),
            std::string::npos);
  AllGather gather;
  gather.rows = gather.cols = 1 << 18;
  GemmKnobs knobs;
  knobs.comm_cus = 1;
  EXPECT_NE(message_of(problem_of(gather), knobs).find("GB"), std::string::npos);
}

TEST(BuildScenario, RefusesTilesTooSmallToSchedule) {
  AllGather gather;
  gather.rows = gather.cols = 8192;
  GemmKnobs knobs;
  knobs.comm_cus = 1;
  knobs.comm_tile_m = knobs.comm_tile_n = 1;
  EXPECT_NE(message_of(problem_of(gather), knobs).find("comm_tile"), std::string::npos);
}

TEST(BuildScenario, AsksForAPatternWhereThereIsNone) {
  const Scenario scenario = scenario_of(problem_of(GemmAllScatter{256, 256, 256, DType::fp16, 2}));
  EXPECT_THROW(build_scenario(scenario, find_machine("mi300x-8")), UserError);
}

TEST(BuildScenario, TakesTheTileOfTheMachineWhereTheFileGivesNone) {
  Scenario scenario = scenario_of(problem_of(GemmAllScatter{512, 512, 512, DType::fp16, 2}));
  scenario.pattern = "fused-sequential";
  const Machine machine = find_machine("h200-4");
  EXPECT_EQ(resolved_knobs(scenario, machine)["tile_m"], default_gemm_knobs(machine, DType::fp16).tile_m);
  scenario.knobs.give("tile_m", 64);
  EXPECT_EQ(resolved_knobs(scenario, machine)["tile_m"], 64);
}

TEST(ShippedScenarios, AllParseAndBuild) {
  std::size_t files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(TRITAX_SOURCE_DIR) + "/scenarios")) {
    if (entry.path().extension() != ".toml") continue;
    ++files;
    for (const Scenario& scenario : read_scenarios(entry.path().string())) {
      EXPECT_NO_THROW({
        const Schedule schedule = build_scenario(scenario, find_machine(scenario.machine));
        EXPECT_FALSE(schedule.ops.empty()) << scenario.id;
      }) << scenario.where;
    }
  }
  EXPECT_GE(files, 3u);
}

TEST(BuildScenario, RefusesAllGathersOfKernelsThatDoNotExist) {
  const auto message = [](const std::string& keys) -> std::string {
    const std::string file = R"([[scenario]]
id = "gather"
machine = "mi355x-8"
workload = "all-gather"
rows = 64
cols = 64
gpus = 2
)";
    const Scenario scenario = parse_scenarios(file + keys, "f.toml").at(0);
    try {
      build_scenario(scenario, find_machine_of(scenario));
    } catch (const UserError& error) {
      return error.what();
    }
    return "accepted";
  };
  const std::string place = "f.toml:1: scenario \"gather\": ";
  EXPECT_EQ(message("knobs = { comm_cus = 3 }\n"), "accepted");
  EXPECT_EQ(message("library = true\n"), "accepted");
  EXPECT_EQ(message("pattern = \"library\"\n"), "accepted");
  EXPECT_EQ(message("").rfind(place + "an all-gather needs knobs.comm_cus", 0), 0u) << message("");
  const std::string posted = message("library = true\nposted_bytes_per_peer = 2048\n");
  EXPECT_EQ(posted.rfind(place + "posted_bytes_per_peer and the library's kernel", 0), 0u) << posted;
}

TEST(BuildScenario, NamesThePlaceOfWhatTheMachineDoesNotAllow) {
  const std::string file = R"([[scenario]]
id = "one"
machine = "mi300x-8"
workload = "gemm-all-scatter"
m = 1024
n = 1024
k = 256
gpus = 2
pattern = "producer-consumer"
knobs = { )";
  const auto message = [](Scenario scenario, const std::string& where) -> std::string {
    scenario.where = where;
    try {
      build_scenario(scenario, find_machine("mi300x-8"));
    } catch (const UserError& error) {
      return error.what();
    }
    return "accepted";
  };
  for (const std::string knobs :
       {"tile = [512, 512, 64]", "comm_cus = 999", "gemm_cus = 200, comm_cus = 200"}) {
    const Scenario scenario = parse_scenarios(file + knobs + " }\n", "f.toml").at(0);
    EXPECT_EQ(message(scenario, scenario.where).rfind("f.toml:1: scenario \"one\": ", 0), 0u) << knobs;
    // What comes from no file has no place, and says the same.
    EXPECT_EQ("f.toml:1: scenario \"one\": " + message(scenario, ""), message(scenario, scenario.where));
  }
}

}  // namespace
}  // namespace tritax
