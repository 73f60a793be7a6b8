// Scores of choices: tables whose best options are known, and the corpus of GEMMs.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <vector>

#include "model/core/quantile.hpp"
#include "model/scenario/scenario.hpp"
#include "model/select/selector.hpp"
#include "model/workloads/gemm/workload.hpp"
#include "sim/simulate.hpp"
#include "sim/study/choices.hpp"
#include "sim/study/gemm_corpus.hpp"
#include "sim/study/pattern_choice.hpp"

namespace tritax {
namespace {

// Option x % 3 takes 1, the next 1.03, the last 2; the third cannot be built for x = 5.
ChoiceTable cyclic_table(std::int64_t problems) {
  ChoiceTable table;
  table.options = {"a", "b", "c"};
  table.numbers = {"x"};
  for (std::int64_t i = 0; i < problems; ++i) {
    const std::int64_t x = i % 6;
    table.problems.push_back({x});
    std::vector<double> times(3);
    for (std::int64_t option = 0; option < 3; ++option) {
      const std::int64_t place = (option - x % 3 + 3) % 3;
      times[static_cast<std::size_t>(option)] = place == 0 ? 1 : place == 1 ? 1.03 : 2;
    }
    if (x == 5) times[1] = kNever;
    table.time_ns.push_back(times);
  }
  return table;
}

TEST(Choices, ASieveThatHasSeenEveryKeyLosesNothing) {
  const ChoiceTable table = cyclic_table(600);
  const TunedSieve exact = tune_sieve(table, {16, 1e-6}, 0);
  EXPECT_EQ(exact.score.trained + exact.score.held_out, 600u);
  EXPECT_NEAR(static_cast<double>(exact.score.held_out), 60, 25);
  EXPECT_EQ(exact.score.false_negatives, 0u);
  EXPECT_EQ(exact.score.best_lost, 0u);
  EXPECT_EQ(exact.score.unknown, 0);
  EXPECT_DOUBLE_EQ(exact.score.eliminated, 1);
  EXPECT_DOUBLE_EQ(exact.score.left, 1);
  EXPECT_DOUBLE_EQ(exact.score.fastest.mean_ratio, 1);
  EXPECT_GT(exact.score.lookup_ns, 0);
  // With tolerance the option 3 % behind is suitable too and stays; what cannot be built never does.
  const TunedSieve tolerant = tune_sieve(table, {16, 1e-6}, 0.05);
  EXPECT_EQ(tolerant.score.false_negatives, 0u);
  EXPECT_DOUBLE_EQ(tolerant.score.eliminated, 1);
  EXPECT_GT(tolerant.score.left, 1.5);
  EXPECT_LE(tolerant.score.first.worst_ratio, 1.03 + 1e-12);
}

TEST(Choices, PicksAreScoredAgainstTheBest) {
  const ChoiceTable table = cyclic_table(3);
  const PickScore score =
      score_picks(table, std::vector<std::size_t>{0, 1, 2}, std::vector<std::size_t>{0, 2, 1});
  EXPECT_DOUBLE_EQ(score.within_5, 2.0 / 3);
  EXPECT_DOUBLE_EQ(score.within_20, 2.0 / 3);
  EXPECT_DOUBLE_EQ(score.worst_ratio, 2);
  EXPECT_DOUBLE_EQ(score.mean_ratio, (1 + 1.03 + 2) / 3);
}

Machine corpus_machine_of_tests() { return find_machine("a100-8-1005mhz"); }

TEST(GemmCorpus, IsDrawnEvenlyInLogarithmsAndBySeed) {
  const std::vector<GemmSize> sizes = log_sampled_gemms(6000, 3, 128, 8192);
  double mean = 0;
  for (const GemmSize& size : sizes) {
    for (const std::int64_t side : {size.m, size.n, size.k}) {
      ASSERT_GE(side, 128);
      ASSERT_LE(side, 8192);
      mean += std::log2(static_cast<double>(side)) / 18000;
    }
  }
  EXPECT_NEAR(mean, 10, 0.05);  // between 7 and 13
  const std::vector<GemmSize> again = log_sampled_gemms(6000, 3, 128, 8192);
  const std::vector<GemmSize> other = log_sampled_gemms(6000, 4, 128, 8192);
  EXPECT_EQ(sizes[17].m, again[17].m);
  EXPECT_NE(sizes[17].m * sizes[18].n * sizes[19].k, other[17].m * other[18].n * other[19].k);
}

TEST(GemmCorpus, StreamKGainsWhereTilesFillNoWave) {
  const Machine machine = corpus_machine_of_tests();
  const CorpusKernels kernels = fp16_kernels(element_of(machine.gpu, DType::fp16));
  const std::vector<CorpusTimes> times =
      corpus_times(machine, kernels, {{128, 128, 8192}, {1536, 1152, 4096}, {128, 128, 128}});
  EXPECT_GT(times[0].schedule_ns[0] / times[0].schedule_ns[3], 4);          // one tile, shared by many
  EXPECT_NEAR(times[1].schedule_ns[0] / times[1].schedule_ns[3], 1, 0.02);  // 108 tiles fill all units
  // The heuristic splits K by eight at most, and never where tiles fill a wave.
  EXPECT_LT(times[0].ensemble_ns, times[0].schedule_ns[0] / 2);
  EXPECT_GT(times[0].ensemble_ns, times[0].schedule_ns[0] / 16);
  EXPECT_DOUBLE_EQ(times[1].ensemble_ns, times[1].schedule_ns[0]);
  for (const CorpusTimes& one : times) {
    EXPECT_LE(one.oracle_ns, one.schedule_ns[0] * (1 + 1e-9));  // its tile is one of the oracle's
  }
}

// Two laws of the same machine: events and a closed form.
TEST(GemmCorpus, ClosedFormAndSimulationAgreeWithinEightPercentInTheMedian) {
  const Machine machine = corpus_machine_of_tests();
  const CorpusKernels kernels = fp16_kernels(element_of(machine.gpu, DType::fp16));
  std::vector<double> errors;
  for (const ComparedRun& run :
       compared_with_simulation(machine, kernels, log_sampled_gemms(25, 1, 128, 4096))) {
    EXPECT_GT(run.simulated_ns, 0);
    errors.push_back(std::abs(run.closed_ns / run.simulated_ns - 1));
  }
  EXPECT_EQ(errors.size(), 25 * kCorpusSchedules.size());
  EXPECT_LT(quantile(errors, 0.5), 0.08);
}

// The shares that the closed form took are those of the patterns of a workload.
TEST(GemmCorpus, SimulatesTheSchedulesOfPatterns) {
  const Machine machine = corpus_machine_of_tests();
  const CorpusKernels kernels = fp16_kernels(element_of(machine.gpu, DType::fp16));
  const GemmSize size{2048, 1920, 1024};  // 240 tiles: two waves and a part
  const std::vector<ComparedRun> runs = compared_with_simulation(machine, kernels, {size});
  Problem problem = problem_of(gemm());
  for (const auto& [field, value] : {std::pair{"m", size.m}, {"n", size.n}, {"k", size.k}}) {
    problem.values.give(field, value);
  }
  complete_problem(problem, "test");
  const std::array<const char*, 4> patterns{"data-parallel", "fixed-split", "stream-k", "two-tile-stream-k"};
  ASSERT_EQ(runs.size(), patterns.size());
  for (std::size_t s = 0; s < patterns.size(); ++s) {
    Values knobs(gemm().knobs);
    for (const auto& [knob, value] : {std::pair{"tile_m", 128},
                                      {"tile_n", 128},
                                      {"tile_k", 32},
                                      {"waves", 4},
                                      {"pipeline", static_cast<int>(kernels.tile.pipeline)},
                                      {"group_m", 8},
                                      {"host_barriers", 0}}) {
      knobs.give(knob, value);
    }
    const Pattern& pattern = find_pattern(gemm(), patterns[s], "test");
    const Schedule schedule =
        build_schedule(pattern, problem, machine, resolved_knobs(problem, machine, knobs));
    EXPECT_EQ(runs[s].simulated_ns, simulate(schedule, machine).kernels_ns) << patterns[s];
  }
}

TEST(GemmCorpus, PoliciesThatSplitTheSameTakeTheSame) {
  const Machine machine = corpus_machine_of_tests();
  const CorpusKernels kernels = fp16_kernels(element_of(machine.gpu, DType::fp16));
  const ChoiceTable table = policy_choices(machine, kernels, {{1024, 1024, 1024}, {1536, 1152, 4096}});
  ASSERT_EQ(table.options.size(), 7u);
  // 64 tiles are less than a wave: policies from 1 on share all of them.
  EXPECT_EQ(table.problems[0], (std::vector<std::int64_t>{0, 10, 32}));
  for (int policy = 2; policy < 7; ++policy) {
    EXPECT_DOUBLE_EQ(table.time_ns[0][static_cast<std::size_t>(policy)], table.time_ns[0][1]);
  }
  EXPECT_EQ(table.problems[1], (std::vector<std::int64_t>{1, 0, 128}));
}

TEST(PatternTable, HasEveryPatternOfEveryProblem) {
  std::string text;
  for (int i = 0; i < 12; ++i) {
    text += "[[scenario]]\nid = 's" + std::to_string(i) +
            "'\nmachine = 'h200-4'\nworkload = 'gemm-all-scatter'\ngpus = 2\npattern = ['library', "
            "'fused-sequential']\nm = " +
            std::to_string(256 * (i + 1)) + "\nn = 512\nk = 256\n";
  }
  const PatternTable found = pattern_table(parse_scenarios(text, "test"), find_machine("h200-4"));
  EXPECT_EQ(found.table.problems.size(), 12u);
  EXPECT_EQ(found.table.options.size(), found.table.time_ns.front().size());
  ASSERT_EQ(found.by_bound.size(), 12u);
  // Each time stands where problem and pattern are named, and what has the lowest bound is among them.
  const Machine machine = find_machine("h200-4");
  const auto option = std::find(found.table.options.begin(), found.table.options.end(), "fused-sequential");
  ASSERT_NE(option, found.table.options.end());
  const std::vector<Scenario> scenarios = parse_scenarios(text, "test");
  for (const std::size_t i : {std::size_t{0}, std::size_t{11}}) {
    const Problem& problem = scenarios[2 * i].problem;  // two patterns each
    ASSERT_EQ(found.table.problems[i].front(), problem["m"]);
    const Values knobs = resolved_knobs(problem, machine, {});
    const Pattern& pattern = find_pattern(*problem.workload, *option, "test");
    const double time_ns = simulate(build_schedule(pattern, problem, machine, knobs), machine).makespan_ns;
    EXPECT_EQ(found.table.time_ns[i][static_cast<std::size_t>(option - found.table.options.begin())],
              time_ns);
    EXPECT_LT(found.table.time_ns[i][found.by_bound[i]], kNever);
  }
  EXPECT_EQ(std::count(found.table.options.begin(), found.table.options.end(), "library"), 0);
  EXPECT_GT(found.simulation_ns, 0);
}

}  // namespace
}  // namespace tritax
