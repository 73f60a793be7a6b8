// tritax explain --level: kernels below the tile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/run_tritax.hpp"

namespace tritax::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kProduct = "explain --workload gemm --pattern data-parallel -M 4096 -N 4096 -K 4096 ";

nlohmann::json product_levels(const std::string& arguments) {
  const Outcome outcome = run_tritax(kProduct + arguments + " --json -");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  return nlohmann::json::parse(outcome.out);
}

TEST(ExplainLevels, GiveWavesInstructionsAndRegisters) {
  const nlohmann::json result = product_levels("--machine pvc-1550 --tile 128x64x64 --waves 8 --level wave");
  EXPECT_EQ(result["schema"], "tritax.levels/1");
  ASSERT_EQ(result["kernels"].size(), 1U);
  const nlohmann::json& kernel = result["kernels"][0];
  EXPECT_EQ(kernel["wave_grid"], nlohmann::json({4, 2}));
  EXPECT_EQ(kernel["products"][0]["wave_tile"], nlohmann::json({32, 32, 64}));
  EXPECT_EQ(kernel["products"][0]["instructions"], 32);
  EXPECT_FALSE(kernel.contains("k_step"));
}

TEST(ExplainLevels, ScheduleTheInstructionsOfAStep) {
  const nlohmann::json result =
      product_levels("--machine mi300x-8 --tile 128x128x32 --waves 4 --level instruction");
  const nlohmann::json& step = result["kernels"][0]["k_step"];
  EXPECT_LE(step["cycles"], step["written_cycles"]);
  EXPECT_FALSE(step["bound"].get<std::string>().empty());
  EXPECT_GT(step["order"].size(), 32U);
}

TEST(ExplainLevels, AreTablesForPeople) {
  const Outcome outcome = run_tritax(kProduct + std::string("--machine h200-8 --level instruction"));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("groups of 4"), HasSubstr("wgmma"), HasSubstr("steady state")));
}

TEST(ExplainLevels, RefuseWhatHasNone) {
  const Outcome unknown = run_tritax(kProduct + std::string("--machine h200-8 --level thread"));
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err,
              HasSubstr("--level: 'thread' is not a level below the tile; give wave or instruction"));
  const Outcome moves = run_tritax(
      "explain --workload all-gather --pattern triton -M 4096 -N 4096 --machine mi300x-8 --level wave");
  EXPECT_EQ(moves.exit_code, 2) << moves.err;
}

}  // namespace
}  // namespace tritax::test
