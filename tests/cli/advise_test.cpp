// `tritax advise`: candidates, selectors, given knobs, and the command of each row.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "tests/cli/run_json.hpp"

namespace tritax {
namespace {

using nlohmann::json;
using test::kSmallSearch;
using test::Outcome;
using test::run_json;
using test::run_tritax;

TEST(Advise, HasOneCandidateAPatternBestFirst) {
  const json advice = run_json("advise --workload gemm-all-scatter --dtype fp16 " + kSmallSearch);
  EXPECT_EQ(advice.at("schema"), "tritax.advise/1");
  EXPECT_EQ(advice.at("machine"), "mi300x-8");
  EXPECT_EQ(advice.at("workload").at("m"), 500);
  EXPECT_EQ(advice.at("workload").at("gpus"), 2);
  EXPECT_GT(advice.at("evaluated").get<int>(), 0);
  std::set<std::string> patterns;
  double last_us = 0;
  for (const json& candidate : advice.at("candidates")) {
    EXPECT_TRUE(patterns.insert(candidate.at("pattern").get<std::string>()).second);
    EXPECT_GE(candidate.at("time_us").get<double>(), last_us);
    last_us = candidate.at("time_us");
    EXPECT_GT(candidate.at("speedup").get<double>(), 0);
    for (const char* tax : {"launch_us", "bulk_synchronous_us", "locality_us"}) {
      EXPECT_GE(candidate.at("taxes").at(tax).get<double>(), 0);
    }
    EXPECT_TRUE(candidate.at("knobs").contains("tile"));
  }
  EXPECT_EQ(patterns, (std::set<std::string>{"library", "bulk-synchronous", "producer-consumer",
                                             "fused-sequential", "workgroup-specialised"}));
}

TEST(Advise, SpeedupIsOverTheLibraryBaseline) {
  const json advice = run_json("advise " + kSmallSearch);
  double library_us = 0;
  for (const json& candidate : advice.at("candidates")) {
    library_us = candidate.at("pattern") == "library" ? candidate.at("time_us").get<double>() : library_us;
  }
  for (const json& candidate : advice.at("candidates")) {
    EXPECT_DOUBLE_EQ(candidate.at("speedup").get<double>(),
                     library_us / candidate.at("time_us").get<double>());
  }
}

TEST(Advise, AnswersTheSameOnAnyNumberOfThreads) {
  EXPECT_EQ(run_json("advise " + kSmallSearch + "--threads 1"),
            run_json("advise " + kSmallSearch + "--threads 2"));
}

TEST(Advise, TriesWhatTheSelectorProposes) {
  const json usual = run_json("advise " + kSmallSearch);
  EXPECT_EQ(usual.at("selector"), "search");
  EXPECT_EQ(run_json("advise " + kSmallSearch + "--selector search"), usual);
  const json defaults = run_json("advise " + kSmallSearch + "--selector defaults");
  EXPECT_EQ(defaults.at("selector"), "defaults");
  EXPECT_EQ(defaults.at("evaluated"), defaults.at("candidates").size());
  const json bounds = run_json("advise " + kSmallSearch + "--selector bounds");
  EXPECT_LT(bounds.at("evaluated").get<int>(), usual.at("evaluated").get<int>());
  const auto best_us = [](const json& advice) {
    return advice.at("candidates").at(0).at("time_us").get<double>();
  };
  EXPECT_LE(best_us(bounds), best_us(defaults));
  EXPECT_LE(best_us(usual), best_us(bounds));
}

TEST(Advise, RefusesAnUnknownSelectorWithTheList) {
  const Outcome outcome = run_tritax("advise " + kSmallSearch + "--selector serch");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.err,
            "tritax: --selector: unknown selector 'serch', did you mean 'search'?; the selectors are search, "
            "bounds, defaults\n");
}

TEST(Advise, HoldsTheKnobsThatAreGiven) {
  const json advice = run_json("advise " + kSmallSearch + "--tile 128x128x64 --launch graph");
  for (const json& candidate : advice.at("candidates")) {
    if (candidate.at("pattern") != "library") {
      EXPECT_EQ(candidate.at("knobs").at("tile"), "128x128x64");
      EXPECT_EQ(candidate.at("knobs").at("launch"), "graph");
    }
  }
}

TEST(Advise, TheWinnerCanBeSimulatedWithItsKnobsToTheSameTime) {
  const json winner = run_json("advise " + kSmallSearch + "--lock load-store").at("candidates").at(0);
  const json& knobs = winner.at("knobs");
  std::string arguments = "simulate " + kSmallSearch + "--pattern " + winner.at("pattern").get<std::string>();
  for (const auto& [knob, option] :
       {std::pair{"tile", "--tile"}, std::pair{"pipeline", "--pipeline"},
        std::pair{"peer_order", "--peer-order"}, std::pair{"launch", "--launch"}}) {
    arguments += std::string(" ") + option + " " + knobs.at(knob).get<std::string>();
  }
  arguments += knobs.at("xcd_remap").get<bool>() ? " --xcd-remap on" : " --xcd-remap off";
  for (const auto& [knob, option] : {std::pair{"waves", "--waves"}, std::pair{"gemm_cus", "--gemm-cus"},
                                     std::pair{"comm_cus", "--comm-cus"}, std::pair{"group_m", "--group-m"},
                                     std::pair{"xcd_chunk", "--xcd-chunk"}}) {
    if (!knobs.at(knob).is_null() && knobs.at(knob).get<int>() > 0) {
      arguments += std::string(" ") + option + " " + knobs.at(knob).dump();
    }
  }
  if (!knobs.at("comm_tile").is_null() && knobs.at("comm_tile") != "0x0") {
    arguments += " --comm-tile " + knobs.at("comm_tile").get<std::string>();
  }
  EXPECT_EQ(run_json(arguments).at("runs").at(0).at("time_us"), winner.at("time_us"));
}

// Without its first word, the name of the program.
std::string arguments_of(const json& candidate) {
  const std::string command = candidate.at("command");
  return command.substr(command.find(' ') + 1);
}

TEST(Advise, TheCommandOfEveryRowMakesItAgain) {
  for (const std::string more : {"", "--host-barriers --group-m 2", "--workload all-gather-gemm"}) {
    const json advice = run_json("advise " + kSmallSearch + more);
    for (const json& candidate : advice.at("candidates")) {
      const json again = run_json(arguments_of(candidate)).at("runs").at(0);
      EXPECT_EQ(again.at("time_us"), candidate.at("time_us")) << arguments_of(candidate);
    }
  }
}

TEST(Advise, SavesItsRowsAsScenariosThatTakeAsLong) {
  const std::string file = testing::TempDir() + "advised.toml";
  const json advice = run_json("advise " + kSmallSearch + "--save-scenario " + file);
  const json runs = run_json("simulate " + file).at("runs");
  ASSERT_EQ(runs.size(), advice.at("candidates").size());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    EXPECT_EQ(runs[i].at("id"), advice.at("candidates")[i].at("pattern"));
    EXPECT_EQ(runs[i].at("time_us"), advice.at("candidates")[i].at("time_us"));
  }
}

TEST(Advise, ItsKnobsInJsonAreKnobsOfAScenario) {
  const json candidate = run_json("advise " + kSmallSearch).at("candidates").at(0);
  const std::string file = testing::TempDir() + "knobs.toml";
  std::ofstream toml(file);
  toml << "[[scenario]]\nid = 'one'\nmachine = 'mi300x-8'\nworkload = 'gemm-all-scatter'\nm = 500\nn = "
          "512\nk = 256\n"
          "gpus = 2\npattern = "
       << candidate.at("pattern") << "\n[scenario.knobs]\n";
  for (const auto& [knob, value] : candidate.at("knobs").items()) {
    if (!value.is_null()) toml << knob << " = " << value << '\n';
  }
  toml.close();
  EXPECT_EQ(run_json("simulate " + file).at("runs").at(0).at("time_us"), candidate.at("time_us"));
}

TEST(Advise, HoldsTheKnobsOfAScenario) {
  const std::string file = testing::TempDir() + "held.toml";
  std::ofstream(file)
      << "[[scenario]]\nid = 'one'\nmachine = 'mi300x-8'\nworkload = 'gemm-all-scatter'\nm = 500\n"
         "n = 512\nk = 256\ngpus = 2\n"
         "knobs = { tile = [64, 64, 64], waves = 4, gemm_cus = 200, host_barriers = true }\n";
  const json advice = run_json("advise " + file);
  for (const json& candidate : advice.at("candidates")) {
    const json& knobs = candidate.at("knobs");
    EXPECT_EQ(knobs.at("host_barriers"), true);
    EXPECT_GT(candidate.at("critical_path").at("harness_us").get<double>(), 0);
    if (candidate.at("pattern") == "library") continue;
    EXPECT_EQ(knobs.at("tile"), "64x64x64");
    EXPECT_EQ(knobs.at("waves"), 4);
    EXPECT_EQ(knobs.at("gemm_cus"), 200);
  }
  EXPECT_EQ(run_json("advise " + file + " --waves 8").at("candidates").at(0).at("knobs").at("waves"), 8);
}

TEST(Advise, KnobsOfACandidateAreThoseThatItsPatternHas) {
  const json advice = run_json("advise " + kSmallSearch);
  for (const json& candidate : advice.at("candidates")) {
    const std::string pattern = candidate.at("pattern");
    const json listed = run_json("patterns show " + pattern).at("knobs");
    std::set<std::string> has{"host_barriers", "processes"};
    for (const json& knob : listed) has.insert(knob.at("knob").get<std::string>());
    if (pattern == "library") has.insert({"tile", "waves", "pipeline"});  // it chooses them
    for (const auto& [knob, value] : candidate.at("knobs").items()) {
      EXPECT_EQ(value.is_null(), has.count(knob) == 0) << pattern << ' ' << knob;
    }
  }
}

TEST(Advise, TheTileOfTheLibraryIsTheOneOfItsSchedule) {
  const std::string problem = "-M 64 -N 64 -K 100000 --machine mi300x-8 --gpus 2";
  const json schedule = json::parse(run_tritax("schedule --pattern library " + problem).out);
  const json advice = run_json("advise " + problem);
  for (const json& candidate : advice.at("candidates")) {
    if (candidate.at("pattern") != "library") continue;
    const json& tile = schedule.at("kernels").at(0).at("tile");
    const json& knobs = candidate.at("knobs");
    EXPECT_EQ(knobs.at("tile"), tile.at("m").dump() + 'x' + tile.at("n").dump() + 'x' + tile.at("k").dump());
    EXPECT_EQ(knobs.at("waves"), tile.at("waves"));
    EXPECT_EQ(knobs.at("pipeline"), tile.at("pipeline"));
    EXPECT_GT(candidate.at("parts_of_k").get<int>(), 1);
  }
}

TEST(Advise, AnotherWorkloadIsSearchedWithItsPatternsAndKnobs) {
  const json advice = run_json(
      "advise --workload all-gather --rows 512 --cols 256 --machine h200-4 --gpus 2 --peer-order rotated");
  EXPECT_EQ(advice.at("workload"),
            json::parse(R"({"name": "all-gather", "rows": 512, "cols": 256, "dtype": "fp16",
                                                   "gpus": 2, "posted_bytes_per_peer": 0})"));
  std::set<std::string> patterns;
  for (const json& candidate : advice.at("candidates")) {
    patterns.insert(candidate.at("pattern").get<std::string>());
    const json& knobs = candidate.at("knobs");
    EXPECT_EQ(knobs.at("peer_order"), candidate.at("pattern") == "push" ? json("rotated") : json());
    EXPECT_FALSE(knobs.contains("tile"));
  }
  EXPECT_EQ(patterns, (std::set<std::string>{"library", "push"}));
}

}  // namespace
}  // namespace tritax
