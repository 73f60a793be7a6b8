// tritax play: its result is saved, sound and repeatable; the K step; refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <string>

#include "tests/cli/run_tritax.hpp"

namespace tritax::test {
namespace {

using testing::HasSubstr;

// Products that end together and send together: which tile comes first decides when the link is idle.
constexpr const char* kPlayed =
    "--workload gemm-all-scatter --pattern fused-sequential -M 2048 -N 2048 -K 512 --machine h100-4 --gpus 2 "
    "--tile 128x64x64 --gemm-cus 16 ";

TEST(Play, SavesASoundScheduleAndTheMovesThatLeadToIt) {
  const ScratchDirectory folder;
  const std::string moves = folder.path("moves.json"), found = folder.path("found.json");
  const Outcome outcome = run_tritax(std::string("play ") + kPlayed + "--moves 60 --draws 2 --json " + moves +
                                     " --save " + found);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("greedy evaluated 60 moves"));
  const auto result = nlohmann::json::parse(read_file(moves));
  EXPECT_EQ(result["schema"], "tritax.play/1");
  EXPECT_LE(result["found_us"].get<double>(), result["start_us"].get<double>());
  EXPECT_EQ(run_tritax("check " + found + " --machine h100-4").exit_code, 0);
  const Outcome again = run_tritax(std::string("play ") + kPlayed + "--draws 2 --json - --replay " + moves);
  ASSERT_EQ(again.exit_code, 0) << again.err;
  const auto replayed = nlohmann::json::parse(again.out);
  EXPECT_EQ(replayed["found_us"], result["found_us"]);
  EXPECT_EQ(replayed["found_mean_us"], result["found_mean_us"]);
  EXPECT_EQ(replayed["moves"], result["moves"]);
}

// The table of names, scenarios and ids in docs/play.md: the moves are lawful, and put the same operations
// elsewhere.
TEST(Play, MakesTheMeasuredSchedulesAgain) {
  static const std::regex row("\\| `([a-z0-9-]+)` \\| `([a-z0-9-]+\\.toml)` \\| `([^`]+)` \\|");
  const std::string measured = TRITAX_SOURCE_DIR "/scenarios/measured/";
  const std::string page = read_file(TRITAX_SOURCE_DIR "/docs/play.md");
  int rows = 0;
  for (std::sregex_iterator at(page.begin(), page.end(), row), end; at != end; ++at, ++rows) {
    const std::string moves = measured + "play/" + at->str(1) + ".json";
    const Outcome outcome = run_tritax("play " + measured + at->str(2) + " --id " + at->str(3) +
                                       " --replay " + moves + " --draws 0 --json -");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const auto replayed = nlohmann::json::parse(outcome.out);
    EXPECT_EQ(replayed["order"], nlohmann::json::parse(read_file(moves))["order"]) << at->str(1);
    EXPECT_LT(replayed["found_us"].get<double>(), replayed["start_us"].get<double>()) << at->str(1);
  }
  EXPECT_EQ(rows, 13);
}

TEST(Play, ExecutesEveryPositionOfASmallProblem) {
  const Outcome outcome = run_tritax(
      "play " TRITAX_SOURCE_DIR
      "/scenarios/handwritten.json --machine mi300x-8 --player random --moves 20 --execute --draws 0");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("No faster order was found"));
}

TEST(Play, PlaysOnTheKStepOfAKernel) {
  const Outcome outcome = run_tritax(
      "play --workload gemm --pattern data-parallel -M 512 -N 512 -K 512 --machine mi300x-8 --tile "
      "128x128x64 "
      "--waves 4 --level instruction --moves 200 --json -");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto result = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(result["schema"], "tritax.play-step/1");
  const auto& kernel = result["kernels"][0];
  EXPECT_LE(kernel["found_cycles"].get<double>(), kernel["start_cycles"].get<double>());
  EXPECT_GE(kernel["found_cycles"].get<double>(), kernel["least_cycles"].get<double>());
}

TEST(Play, RefusesWhatDoesNotGoTogether) {
  const auto message = [](const std::string& arguments) {
    const Outcome outcome = run_tritax(std::string("play ") + kPlayed + arguments);
    EXPECT_EQ(outcome.exit_code, 2) << arguments;
    return outcome.err;
  };
  EXPECT_THAT(message("--player annael"), HasSubstr("anneal"));
  EXPECT_THAT(message("--player ppo"), HasSubstr("tritax.play(schedule, machine, player=\"ppo\")"));
  EXPECT_THAT(message("--moves 0"), HasSubstr("--moves"));
  EXPECT_THAT(message("--replay x.json --moves 3"), HasSubstr("--replay"));
  EXPECT_THAT(message("--level wave"), HasSubstr("instruction"));
  EXPECT_THAT(message("--level instruction --execute"), HasSubstr("--execute"));
  EXPECT_THAT(message("--machine-code"), HasSubstr("--level instruction"));
  const ScratchDirectory folder;
  const std::string moves = folder.write(
      "moves.json", R"([{"track": "all of gemm_scattr", "place": 0, "grain": "tile", "steps": 1}])");
  EXPECT_THAT(message("--replay " + moves), HasSubstr("did you mean 'all of gemm_scatter'?"));
  const std::string masked = folder.write(
      "masked.json", R"([{"track": "all of gemm_scatter", "place": 0, "grain": "operation", "steps": 1}])");
  EXPECT_THAT(message("--replay " + masked), HasSubstr("move 0"));
}

}  // namespace
}  // namespace tritax::test
