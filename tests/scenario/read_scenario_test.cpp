#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "model/core/error.hpp"
#include "model/scenario/scenario.hpp"
#include "model/workloads/remote_access/workload.hpp"
#include "tests/workloads/gemm_all_scatter.hpp"

namespace tritax {
namespace {

const std::string kGood = R"(
[[scenario]]
id = "one"
machine = "mi300x-8"
workload = "gemm-all-scatter"
m = 8192
n = 4608
k = 36864
dtype = "fp16"
gpus = 8
pattern = "fused-sequential"
)";

// The message of the UserError that `text` causes; empty if it is accepted.
std::string message_of(const std::string& text) {
  try {
    parse_scenarios(text, "file.toml");
  } catch (const UserError& error) {
    return error.what();
  }
  return {};
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

void expect_refused(const std::string& text, const std::vector<std::string>& words) {
  const std::string message = message_of(text);
  EXPECT_FALSE(message.empty()) << text;
  for (const std::string& word : words)
    EXPECT_NE(message.find(word), std::string::npos) << message << "\nlacks " << word;
}

TEST(ReadScenario, TakesEveryKeyOfAGemmAllScatter) {
  const auto scenarios = parse_scenarios(kGood + R"(title = "a title"
[scenario.knobs]
tile = [128, 64, 32]
waves = 4
pipeline = "overlapped"
comm_tile = [16, 32]
gemm_cus = 256
comm_cus = 48
group_m = 2
xcd_remap = false
peer_order = "rotated"
lock = "exchange"
launch = "graph"
host_barriers = false
)",
                                         "file.toml");
  ASSERT_EQ(scenarios.size(), 1u);
  const Scenario& scenario = scenarios[0];
  EXPECT_EQ(scenario.id, "one");
  EXPECT_EQ(scenario.title, "a title");
  EXPECT_EQ(scenario.machine, "mi300x-8");
  EXPECT_EQ(scenario.pattern, "fused-sequential");
  ASSERT_EQ(scenario.problem.workload, &gemm_all_scatter());
  const GemmAllScatter workload = gemm_all_scatter_of(scenario.problem);
  EXPECT_EQ(workload.m, 8192);
  EXPECT_EQ(workload.n, 4608);
  EXPECT_EQ(workload.k, 36864);
  EXPECT_EQ(workload.dtype, DType::fp16);
  EXPECT_EQ(workload.gpus, 8);
  GemmKnobs knobs;
  knobs.tile_m = 128;
  knobs.tile_n = 64;
  knobs.tile_k = 32;
  knobs.waves = 4;
  knobs.pipeline = Pipeline::overlapped;
  knobs.comm_tile_m = 16;
  knobs.comm_tile_n = 32;
  knobs.gemm_cus = 256;
  knobs.comm_cus = 48;
  knobs.group_m = 2;
  knobs.xcd_remap = false;
  knobs.peer_order = PeerOrder::rotated;
  knobs.lock = LockProtocol::exchange;
  knobs.launch = LaunchMode::graph;
  knobs.host_barriers = false;
  EXPECT_EQ(gemm_knobs_of(scenario.knobs), knobs);
}

TEST(ReadScenario, MergesDefaultsUnderEachScenarioKnobByKnob) {
  const auto scenarios = parse_scenarios(R"(
[defaults]
machine = "mi300x-8"
workload = "gemm-all-scatter"
m = 1024
n = 1024
k = 1024
gpus = 2
pattern = "fused-sequential"
knobs = { tile = [128, 128, 64], group_m = 2 }
[[scenario]]
id = "a"
[[scenario]]
id = "b"
m = 2048
knobs = { group_m = 8 }
)",
                                         "file.toml");
  ASSERT_EQ(scenarios.size(), 2u);
  EXPECT_EQ(scenarios[0].problem["m"], 1024);
  EXPECT_EQ(scenarios[0].knobs["group_m"], 2);
  EXPECT_EQ(scenarios[1].problem["m"], 2048);
  EXPECT_EQ(scenarios[1].knobs["group_m"], 8);
  EXPECT_EQ(scenarios[1].knobs["tile_m"], 128);
}

TEST(ReadScenario, MakesOneScenarioAPatternOfAList) {
  const auto scenarios = parse_scenarios(
      replaced(kGood, R"("fused-sequential")", R"(["library", "producer-consumer"])"), "file.toml");
  ASSERT_EQ(scenarios.size(), 2u);
  EXPECT_EQ(scenarios[0].id, "one/library");
  EXPECT_EQ(scenarios[1].id, "one/producer-consumer");
  EXPECT_EQ(scenarios[1].pattern, "producer-consumer");
}

TEST(ReadScenario, ReadsSizesWithBinaryUnits) {
  const std::string text = R"(
[[scenario]]
id = "p2p"
machine = "mi300x-8"
workload = "remote-access"
operation = "atomic-add"
peers = "all"
gpus = 4
bytes = "64 MiB"
block_bytes = 4096
)";
  const auto scenarios = parse_scenarios(text, "file.toml");
  const Problem& problem = scenarios.at(0).problem;
  EXPECT_EQ(static_cast<RemoteOperation>(problem["operation"]), RemoteOperation::atomic_add);
  EXPECT_EQ(problem["bytes"], 64 << 20);
  EXPECT_EQ(problem["block_bytes"], 4096);
  EXPECT_EQ(work_of(problem).bytes_per_gpu, 3.0 * (64 << 20));
  expect_refused(replaced(text, "64 MiB", "64 MB"), {"file.toml:9", "64 MB", "MiB"});
  expect_refused(replaced(text, "\"64 MiB\"", "5000"), {"file.toml:9", "5000", "multiple"});
  expect_refused(replaced(text, "64 MiB", "99999999999 GiB"), {"file.toml:9", "99999999999 GiB"});
}

const std::string kGemm = R"(
[[scenario]]
id = "gemm"
machine = "mi325x-8"
workload = "library-gemm"
m = 2048
n = 2048
k = 2048
)";

TEST(ReadScenario, TakesTheCallerAndTheTileOfALibraryGemm) {
  const auto gemm = [](const std::string& keys) {
    return parse_scenarios(kGemm + keys, "file.toml").at(0).problem;
  };
  const auto caller = [&](const std::string& keys) {
    const Problem problem = gemm(keys);
    return std::pair(problem["framework"], problem["binding"]);
  };
  EXPECT_EQ(caller(""), (std::pair<std::int64_t, std::int64_t>(1, 0)));
  EXPECT_EQ(gemm("")["tile_m"], 0);
  EXPECT_EQ(caller("framework = false\n"), (std::pair<std::int64_t, std::int64_t>(0, 0)));
  EXPECT_EQ(caller("binding = true\n"), (std::pair<std::int64_t, std::int64_t>(0, 1)));
  const Problem tiled = gemm("tile = [128, 64, 32]\nwaves = 4\n");
  EXPECT_EQ(tiled["tile_m"], 128);
  EXPECT_EQ(tiled["tile_n"], 64);
  EXPECT_EQ(tiled["tile_k"], 32);
  EXPECT_EQ(tiled["waves"], 4);
  EXPECT_EQ(tiled["xcd_remap"], 1);
  EXPECT_EQ(gemm("tile = [128, 64, 32]\ngroup_m = 1\nxcd_remap = false\n")["xcd_remap"], 0);
  expect_refused(kGemm + "binding = true\nframework = true\n", {"file.toml:9", "binding", "framework"});
  expect_refused(kGemm + "waves = 4\n", {"file.toml:9", "waves", "'tile'"});
  expect_refused(kGemm + "group_m = 4\n", {"file.toml:9", "group_m", "'tile'"});
  expect_refused(kGemm + "tile = [128, 64]\n", {"file.toml:9", "tile"});
}

TEST(ReadScenario, OffersTheNearestNameForAnUnknownKeyAndNamesItsLine) {
  expect_refused(kGood + "gpu = 8\n", {"file.toml:12", "'gpu'", "did you mean 'gpus'"});
  expect_refused(kGood + "knobs = { comm_cu = 3 }\n",
                 {"file.toml:12", "'comm_cu'", "did you mean 'comm_cus'"});
  expect_refused(replaced(kGood, "fused-sequential", "fused-sequental"),
                 {"file.toml:11", "fused-sequential"});
  expect_refused(replaced(kGood, "gemm-all-scatter", "gemm-all-scater"), {"file.toml:5", "gemm-all-scatter"});
}

TEST(ReadScenario, OffersTheKeyThatIsMeantToBeAMissingOne) {
  expect_refused(replaced(kGood, "m = 8192", "M = 8192"), {"file.toml:2", "no 'm'", "'M'"});
  expect_refused(replaced(kGood, "k = 36864", "K = 36864"), {"no 'k'", "'K'"});
  expect_refused(replaced(kGood, "machine =", "machin ="), {"no 'machine'", "'machin'"});
  // Not one of the other sizes, which are one letter away.
  EXPECT_EQ(message_of(replaced(kGood, "m = 8192\n", "")), "file.toml:2: this scenario has no 'm'");
}

TEST(ReadScenario, StatesTheLimitsThatKnobsReallyHave) {
  const auto refused = [](const std::string& knob, const std::string& allowed) {
    expect_refused(kGood + "knobs = { " + knob + " }\n", {"file.toml:12", allowed});
  };
  for (const std::string waves : {"0", "-1", "32"}) refused("waves = " + waves, "1, 2, 4, 8 or 16");
  for (const std::string cus : {"-1", "70000"}) {
    refused("gemm_cus = " + cus, "at least 1 and at most the compute units of the machine");
    refused("comm_cus = " + cus, "at least 1 and at most the compute units of the machine");
  }
  for (const std::string side : {"0", "-16", "1024"}) {
    refused("tile = [" + side + ", 64, 64]", "multiples of 16 up to 512");
  }
}

// As `tritax advise` writes knobs in JSON.
TEST(ReadScenario, TakesShapesAsTextAndZeroForWhatIsLeftOut) {
  const auto knobs_of = [](const std::string& knobs) {
    return parse_scenarios(kGood + "knobs = { " + knobs + " }\n", "file.toml").at(0).knobs;
  };
  const Values knobs = knobs_of("tile = \"128x64x32\", comm_tile = \"0x0\", gemm_cus = 0, comm_cus = 0");
  EXPECT_EQ(knobs["tile_m"], 128);
  EXPECT_EQ(knobs["tile_n"], 64);
  EXPECT_EQ(knobs["tile_k"], 32);
  for (const char* left_out : {"comm_tile_m", "comm_tile_n", "gemm_cus", "comm_cus"}) {
    EXPECT_EQ(knobs[left_out], 0) << left_out;
  }
  EXPECT_EQ(knobs_of("comm_tile = [0, 0]")["comm_tile_n"], 0);
  for (const std::string shape :
       {"\"128x64\"", "\"128x64x32x\"", "\"axb\"", "\"\"", "\"0x0x0\"", "\"128x64x1024\"", "[0, 0, 0]"}) {
    expect_refused(kGood + "knobs = { tile = " + shape + " }\n",
                   {"file.toml:12", "multiples of 16 up to 512"});
  }
  for (const std::string shape : {"\"0x32\"", "[32, 0]"}) {
    expect_refused(kGood + "knobs = { comm_tile = " + shape + " }\n", {"file.toml:12", "multiples of 16"});
  }
}

TEST(ReadScenario, TakesAByteOrderMark) { EXPECT_EQ(message_of("\xEF\xBB\xBF" + kGood), ""); }

TEST(ReadScenario, RefusesSizesThatAreZeroNegativeOrTooLarge) {
  expect_refused(replaced(kGood, "m = 8192", "m = 0"), {"file.toml:6", "m = 0"});
  expect_refused(replaced(kGood, "k = 36864", "k = -1"), {"file.toml:8", "k = -1"});
  expect_refused(replaced(kGood, "n = 4608", "n = 9000000000000"), {"file.toml:7", "9000000000000"});
  expect_refused(replaced(kGood, "n = 4608", "n = 4"), {"fewer columns"});
  EXPECT_EQ(message_of(replaced(kGood, "k = 36864", "k = 1048577")),
            "file.toml:8: k = 1048577 is not allowed; it must be between 1 and 1048576");
  EXPECT_EQ(message_of(replaced(kGood, "k = 36864", "k = 1048576")), "");
  expect_refused(replaced(kGood, "m = 8192", "m = 8192.0"), {"file.toml:6", "whole number"});
  expect_refused(replaced(kGood, "m = 8192", "m = \"8192\""), {"file.toml:6", "whole number"});
  expect_refused(replaced(kGood, "m = 8192\n", ""), {"file.toml:2", "'m'"});
}

TEST(ReadScenario, RefusesGpuCountsThatMakeNoSense) {
  for (const std::string gpus : {"0", "-1", "1025"}) {
    expect_refused(replaced(kGood, "gpus = 8", "gpus = " + gpus),
                   {"file.toml:10", "gpus = " + gpus, "1 and 1024"});
  }
}

TEST(ReadScenario, RefusesKnobsThatAWorkloadDoesNotHave) {
  const std::string gather = R"(
[[scenario]]
id = "gather"
machine = "mi355x-8"
workload = "all-gather"
rows = 64
cols = 64
gpus = 2
)";
  EXPECT_EQ(message_of(gather + "knobs = { comm_cus = 3 }\n"), "");
  expect_refused(gather + "knobs = { comm_cus = 3, tile = [16, 16, 16] }\n", {"'tile'"});
  expect_refused(gather + "pattern = \"bulk-synchronous\"\n", {"file.toml:9", "bulk-synchronous", "push"});
}

TEST(ReadScenario, ReadsWhatAnAllGatherPostsToEachPeer) {
  const std::string gather = R"(
[[scenario]]
id = "gather"
machine = "mi355x-8"
workload = "all-gather"
rows = 64
cols = 64
gpus = 2
knobs = { comm_cus = 3 }
)";
  const auto posted = [](const Scenario& scenario) { return scenario.problem["posted_bytes_per_peer"]; };
  const auto without = parse_scenarios(gather, "file.toml").at(0);
  EXPECT_EQ(posted(without), 0);
  const auto text = parse_scenarios(gather + "posted_bytes_per_peer = \"2 KiB\"\n", "file.toml").at(0);
  EXPECT_EQ(posted(text), 2048);
  EXPECT_EQ(posted(parse_scenarios(gather + "posted_bytes_per_peer = 100\n", "file.toml").at(0)), 100);
  EXPECT_NE(scenario_key(without), scenario_key(text));
  for (const std::string value : {"0", "-1", "\"0 KiB\"", "\"2 GiB\""}) {
    expect_refused(gather + "posted_bytes_per_peer = " + value + "\n",
                   {"file.toml:10", "posted_bytes_per_peer", value, "between 1 and 1073741824"});
  }
  expect_refused(gather + "posted_bytes_per_peer = 2.5\n", {"file.toml:10", "posted_bytes_per_peer"});
  expect_refused(replaced(kGood, "m = 8192", "m = 8192\nposted_bytes_per_peer = 2048"),
                 {"posted_bytes_per_peer"});
}

TEST(ReadScenario, RefusesBrokenFilesWithThePlace) {
  expect_refused(kGood + "x = \n", {"file.toml:12"});
  expect_refused(kGood.substr(0, kGood.size() - 5), {"file.toml:11"});
  expect_refused("", {"[[scenario]]"});
  expect_refused("[scenario]\nid = 3\n", {"[[scenario]]"});
  expect_refused(kGood + kGood, {"already used", "file.toml:2"});
  for (const std::string id : {"'a,b'", "'a\"b'", "'#a'"}) {
    expect_refused(replaced(kGood, "\"one\"", id), {"file.toml:2", id, "no commas"});
  }
  EXPECT_THROW(read_scenarios("/no/such/file.toml"), UserError);
}

TEST(ReadScenario, TreatsScenariosThatDifferInNameOnlyAsEqual) {
  const auto a = parse_scenarios(kGood, "a.toml").at(0);
  const auto b = parse_scenarios(replaced(kGood, "\"one\"", "\"two\""), "b.toml").at(0);
  const auto c = parse_scenarios(kGood + "knobs = { group_m = 3 }\n", "c.toml").at(0);
  EXPECT_EQ(scenario_key(a), scenario_key(b));
  EXPECT_NE(scenario_key(a), scenario_key(c));
}

}  // namespace
}  // namespace tritax
