// Grid models from files: their schedules, their JSON form, and the grids that the selector picks.
#include "model/select/select_by_grid_model.hpp"
#include "model/select/select_by_tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "model/core/error.hpp"
#include "model/machine/machine.hpp"
#include "model/workloads/registry.hpp"

namespace tritax {
namespace {

using testing::HasSubstr;

Problem product(std::int64_t m, std::int64_t n, std::int64_t k, DType dtype = DType::bf16) {
  Problem problem = problem_of(find_workload("gemm", "test"));
  problem.values.give("m", m);
  problem.values.give("n", n);
  problem.values.give("k", k);
  problem.values.give("dtype", static_cast<std::int64_t>(dtype));
  complete_problem(problem, "test");
  return problem;
}

Values with_tile_of_128(std::int64_t depth) {
  Values knobs(find_workload("gemm", "test").knobs);
  knobs.give("tile_m", 128);
  knobs.give("tile_n", 128);
  knobs.give("tile_k", depth);
  return knobs;
}

std::optional<GridShares> shares_of(std::string_view pattern, const Problem& problem, Values knobs) {
  const Machine machine = find_machine("h100-4");
  return grid_shares_of(build_schedule(find_pattern(*problem.workload, pattern, "test"), problem, machine,
                                       resolved_knobs(problem, machine, knobs)));
}

TEST(GridShares, AreTilesIterationsAndGridOfStreamK) {
  for (const std::int64_t grid : {std::int64_t{1}, std::int64_t{8}, std::int64_t{56}, std::int64_t{108}}) {
    Values knobs = with_tile_of_128(32);
    knobs.give("grid", grid);
    const auto shares = shares_of("stream-k", product(256, 3584, 8192), knobs);
    ASSERT_TRUE(shares) << grid;
    EXPECT_EQ(shares->tiles, 56);
    EXPECT_EQ(shares->iterations, 256);
    EXPECT_EQ(shares->grid, grid);
    EXPECT_EQ(shares->dtype, DType::bf16);
  }
}

TEST(GridShares, HaveRaggedEdgesAndShallowProducts) {
  const auto ragged = shares_of("stream-k", product(300, 130, 1000), with_tile_of_128(32));
  ASSERT_TRUE(ragged);
  EXPECT_EQ(ragged->tiles, 6);
  EXPECT_EQ(ragged->iterations, 32);
  EXPECT_EQ(ragged->grid, 132);
  const auto shallow = shares_of("stream-k", product(128, 256, 64), with_tile_of_128(32));
  ASSERT_TRUE(shallow);
  EXPECT_EQ(shallow->grid, 4);  // an iteration each
}

// Shares that end before whole tiles, parts that the hardware sends, sums by atomics, and waves that are not
// full are something else.
TEST(GridShares, AreNotThereWhereOthersShareOut) {
  const Problem problem = product(2048, 4096, 2048);  // 512 tiles
  for (const char* pattern : {"data-parallel", "persistent", "fixed-split", "one-tile-stream-k",
                              "two-tile-stream-k", "triton-stream-k", "work-stealing", "library"}) {
    EXPECT_FALSE(shares_of(pattern, problem, with_tile_of_128(32))) << pattern;
  }
  Values atomics = with_tile_of_128(32);
  atomics.give("fixup", 1);
  EXPECT_FALSE(shares_of("stream-k", problem, atomics));
  // As many whole tiles for everybody are even shares.
  EXPECT_TRUE(shares_of("persistent", product(1408, 1536, 512), with_tile_of_128(32)));
}

GridModels models_of(GridModel model) {
  GridModels models;
  models.workload = "gemm";
  models.machine = "h100-4";
  models.models.push_back({"stream-k tile=128x128x32", DType::bf16, 30, {model, 0.01, 0.03}});
  return models;
}

TEST(GridModels, AreReadAsTheyWereWritten) {
  GridModels models = models_of({5123.25, 3e3, 401.5, 3210.125});
  models.models.push_back({"stream-k tile=256x128x64", DType::fp8, 7, {{1, -2, 3, 4}, 0, 0}});
  const std::string text = models.to_json();
  const GridModels again = GridModels::from_json(text, "grid.json");
  EXPECT_EQ(again.to_json(), text);
  ASSERT_EQ(again.models.size(), 2U);
  EXPECT_EQ(again.models[0].fit.model.d, 3210.125);
  EXPECT_EQ(again.models[1].dtype, DType::fp8);
}

std::string refusal_of(const std::string& text) {
  try {
    GridModels::from_json(text, "grid.json");
  } catch (const UserError& error) {
    return error.what();
  }
  return "read";
}

TEST(GridModels, RefuseWhatTheyDoNotWriteAndSayWhere) {
  EXPECT_THAT(refusal_of("{"), HasSubstr("grid.json:1:"));
  const std::string head = R"({"schema":"tritax.grid-model/1","workload":"gemm","machine":"m","models":)";
  EXPECT_THAT(refusal_of(head + "[]}"), HasSubstr("grid.json: models"));
  EXPECT_THAT(refusal_of(head + R"([{"option":"x","dtype":"fp7"}]})"), HasSubstr("models[0].dtype"));
  EXPECT_THAT(refusal_of(head + R"([{"option":"x","dtype":"fp16","runs":0}]})"), HasSubstr("models[0].runs"));
}

// Takes everything for simulated.
class GridTrials final : public Trials {
 public:
  std::vector<Proposal> proposed;
  std::vector<Trial> evaluate(std::span<const Proposal> proposals) override {
    proposed.insert(proposed.end(), proposals.begin(), proposals.end());
    std::vector<Trial> trials(proposals.size());
    for (Trial& one : trials) one.outcome = Outcome::simulated;
    return trials;
  }
  std::optional<double> least_ns(std::size_t, const Values&) override { return 0; }
  void report(std::int64_t, std::int64_t) override {}
  void settled(std::size_t) override {}
  void not_tuned(std::size_t, double) override {}
  bool stopped() const override { return false; }
};

TEST(GridModels, OptionsAreReadAsTheirNamesAreWritten) {
  const std::string text = "stream-k tile=128x128x64 xcd_remap=true";
  EXPECT_EQ(parse_pattern_option(*product(128, 256, 64).workload, text, "test: ").name(), text);
}

std::vector<Proposal> proposed_for(const GridModels& models, const Problem& problem, const Values& pins) {
  const Machine machine = find_machine("h100-4");
  GridTrials trials;
  grid_model_selector(models, "grid.json").select(choices_of(problem, machine, pins), trials);
  return trials.proposed;
}

// Constants that have the published optima of A100; an H100's 132 units leave two of them as they are.
TEST(GridModelSelector, TriesTheGridThatTheModelFindsFastestAndTheBaseline) {
  const GridModels models = models_of({0, 9, 1, 8});
  for (const auto& [m, n, k, grid] :
       {std::array<std::int64_t, 4>{1024, 1024, 1024, 64}, std::array<std::int64_t, 4>{128, 128, 16384, 8}}) {
    const std::vector<Proposal> proposed = proposed_for(models, product(m, n, k), {});
    ASSERT_EQ(proposed.size(), 2U);
    EXPECT_EQ(proposed[0].knobs["grid"], grid);
    EXPECT_EQ(proposed[0].knobs["tile_k"], 32);
    EXPECT_FALSE(proposed[0].knobs.given("grid"));
  }
}

TEST(GridModelSelector, HoldsAGridThatIsGiven) {
  Values pins(find_workload("gemm", "test").knobs);
  pins.give("grid", 20);
  EXPECT_EQ(proposed_for(models_of({0, 9, 1, 8}), product(1024, 1024, 1024), pins).front().knobs["grid"], 20);
}

TEST(GridModelSelector, TriesDefaultsWhereNoModelIsOfTheDtype) {
  const Problem problem = product(1024, 1024, 1024, DType::fp16);
  EXPECT_GT(proposed_for(models_of({0, 9, 1, 8}), problem, {}).size(), problem.workload->patterns.size() - 2);
}

TEST(GridModelSelector, RefusesAnotherWorkload) {
  GridModels models = models_of({0, 9, 1, 8});
  models.workload = "spmv";
  EXPECT_THROW(proposed_for(models, product(128, 128, 128), {}), UserError);
}

}  // namespace
}  // namespace tritax
