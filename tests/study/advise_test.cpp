// The search: bounds that hold, answers that do not depend on threads, and the promises of AdviseOptions.
#include "sim/study/advise.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <vector>

#include "model/core/error.hpp"
#include "model/machine/topology.hpp"
#include "tests/machine/any_dtype.hpp"
#include "tests/study/single_changes.hpp"

namespace tritax {
namespace {

constexpr GemmAllScatter kSmall{512, 512, 512, DType::fp16, 2};

AdviseOptions threads(int count) {
  AdviseOptions options;
  options.threads = count;
  return options;
}

Advice advise(const GemmAllScatter& workload, const Machine& machine, const AdviseOptions& options = {}) {
  return tritax::advise(problem_of(workload), machine, options);
}

Values any_knobs(const KnobSpace& space) {
  const Option option = *rc::gen::elementOf(coarse_choices(space));
  const std::vector<Option> near = neighbours(space, option.choice);
  if (!near.empty() && *rc::gen::arbitrary<bool>()) return (*rc::gen::elementOf(near)).knobs;
  return option.knobs;
}

// Law: pruning by the bound never drops a candidate that would have won.
RC_GTEST_PROP(TimeBoundLaw, NeverExceedsTheSimulatedTime, ()) {
  const auto machines = shipped_machines();
  Machine machine = find_machine(*rc::gen::elementOf(machines));
  GemmAllScatter workload;
  workload.gpus = *rc::gen::inRange(1, std::min(8, machine.gpu_count()) + 1);
  workload.m = *rc::gen::inRange(1, 4000);
  workload.n = *rc::gen::inRange(workload.gpus, 4000);
  workload.k = *rc::gen::inRange(1, 9000);
  workload.dtype = any_dtype(machine.gpu);
  const auto patterns = gemm_all_scatter().patterns;
  const Pattern& pattern = patterns[*rc::gen::inRange<std::size_t>(0, patterns.size())];
  const Values knobs = any_knobs(knob_space(pattern, workload, machine));
  const Schedule schedule = build_schedule(pattern, problem_of(workload), machine, knobs);
  const TimeBound bound = time_bound(schedule, machine, build_topology(machine, workload.gpus));
  const double unbuilt_ns = gemm_all_scatter().bound_ns(pattern, problem_of(workload), machine, knobs);
  SimulationOptions options;
  options.seed = *rc::gen::inRange<std::uint64_t>(1, 100);
  const SimulationResult result = simulate(schedule, machine, options);
  RC_LOG() << pattern.name << " on " << machine.name << ": bound " << bound.total_ns
           << " ns, before it is built " << unbuilt_ns << " ns, simulated " << result.makespan_ns << " ns\n";
  RC_ASSERT(bound.total_ns <= result.makespan_ns * (1 + 1e-9));
  RC_ASSERT(unbuilt_ns <= result.makespan_ns * (1 + 1e-9));
  RC_ASSERT(bound.total_ns > 0);
}

// A narrow or shallow tile reaches so small a share of the peak that all compute units keep a high clock.
TEST(TimeBoundLaw, HoldsForNarrowAndShallowTilesWhereEnergiesAreKnown) {
  struct Size {
    std::int32_t m, n, k;
  };
  const std::vector<Size> tiles{{16, 256, 16}, {64, 128, 32}, {16, 128, 32}, {128, 32, 16}, {128, 128, 16}};
  const std::vector<Size> shapes{{3643, 4009, 7545}, {3404, 4643, 9160}, {4668, 3578, 6324}};
  for (const char* name : {"h100-4", "h200-4", "h200-8"}) {
    const Machine machine = find_machine(name);
    for (const Size& shape : shapes) {
      for (const Size& tile : tiles) {
        GemmKnobs knobs;
        knobs.tile_m = tile.m;
        knobs.tile_n = tile.n;
        knobs.tile_k = tile.k;
        knobs.pipeline = Pipeline::overlapped;
        const GemmAllScatter workload{shape.m, shape.n, shape.k, DType::fp16, 1};
        const Schedule schedule = build("bulk-synchronous", workload, machine, knobs);
        const double bound_ns = time_bound(schedule, machine, build_topology(machine, 1)).total_ns;
        EXPECT_LE(bound_ns, simulate(schedule, machine, {}).makespan_ns * (1 + 1e-9))
            << name << " " << shape.m << "x" << shape.n << "x" << shape.k << ", tiles of " << tile.m << "x"
            << tile.n << "x" << tile.k;
      }
    }
  }
}

// Law: a simulation that gives up would have missed the limit, and one that does not is not changed by it.
RC_GTEST_PROP(GiveUpLaw, OnlyWhatMissesTheLimitGivesUp, ()) {
  const auto machines = shipped_machines();
  const Machine machine = find_machine(*rc::gen::elementOf(machines));
  GemmAllScatter workload;
  workload.gpus = *rc::gen::inRange(1, std::min(8, machine.gpu_count()) + 1);
  workload.m = *rc::gen::inRange(1, 4000);
  workload.n = *rc::gen::inRange(workload.gpus, 4000);
  workload.k = *rc::gen::inRange(1, 20000);
  workload.dtype = any_dtype(machine.gpu);
  const auto patterns = gemm_all_scatter().patterns;
  const Pattern& pattern = patterns[*rc::gen::inRange<std::size_t>(0, patterns.size())];
  const Values knobs = any_knobs(knob_space(pattern, workload, machine));
  const Schedule schedule = build_schedule(pattern, problem_of(workload), machine, knobs);
  SimulationOptions options;
  options.seed = *rc::gen::inRange<std::uint64_t>(1, 100);
  const double makespan_ns = simulate(schedule, machine, options).makespan_ns;
  // Just met: any overestimate of what lies ahead would give up.
  options.give_up_after_ns = makespan_ns * (1 + 1e-9);
  const SimulationResult met = simulate(schedule, machine, options);
  RC_LOG() << pattern.name << " on " << workload.gpus << " of " << machine.name << ", tiles of "
           << knobs["tile_m"] << "x" << knobs["tile_n"] << "x" << knobs["tile_k"] << ": simulated "
           << makespan_ns << " ns, gave up at " << met.makespan_ns << " ns\n";
  RC_ASSERT(!met.gave_up);
  RC_ASSERT(met.makespan_ns == makespan_ns);
  options.give_up_after_ns = makespan_ns * (1 - 1e-9);
  RC_ASSERT(simulate(schedule, machine, options).gave_up);
}

TEST(Advise, GivesEveryPatternOnceBestFirst) {
  const Advice advice = advise(kSmall, find_machine("mi300x-8"), threads(2));
  std::set<std::string_view> names;
  for (const Candidate& candidate : advice.candidates) names.insert(candidate.pattern->name);
  EXPECT_EQ(names.size(), gemm_all_scatter().patterns.size());
  EXPECT_EQ(advice.candidates.size(), gemm_all_scatter().patterns.size());
  EXPECT_TRUE(std::is_sorted(advice.candidates.begin(), advice.candidates.end(),
                             [](const Candidate& a, const Candidate& b) { return a.time_ns < b.time_ns; }));
  EXPECT_FALSE(advice.interrupted);
  EXPECT_TRUE(advice.left_out.empty());
}

TEST(Advise, ReportsWhatSimulationOfTheReportedKnobsGives) {
  const Machine machine = find_machine("mi300x-8");
  const Advice advice = advise(kSmall, machine, threads(2));
  double library_ns = 0;
  for (const Candidate& candidate : advice.candidates) {
    if (candidate.pattern->name == "library") library_ns = candidate.time_ns;
  }
  ASSERT_GT(library_ns, 0);
  for (const Candidate& candidate : advice.candidates) {
    const SimulationResult again =
        simulate(build_schedule(*candidate.pattern, problem_of(kSmall), machine, candidate.knobs), machine);
    EXPECT_EQ(candidate.time_ns, again.makespan_ns) << candidate.pattern->name;
    EXPECT_EQ(candidate.taxes.makespan_ns, again.makespan_ns) << candidate.pattern->name;
    EXPECT_NEAR(candidate.taxes.account.sum_ns(), again.makespan_ns, 1e-6 * again.makespan_ns)
        << candidate.pattern->name;
    EXPECT_DOUBLE_EQ(candidate.speedup.value(), library_ns / candidate.time_ns) << candidate.pattern->name;
    EXPECT_LE(candidate.bound.total_ns, candidate.time_ns) << candidate.pattern->name;
  }
}

TEST(Advise, IsNotWorseThanTheDefaultKnobsForAnyPattern) {
  for (const char* name : {"mi300x-8", "h200-4"}) {
    const Machine machine = find_machine(name);
    for (const Candidate& candidate : advise(kSmall, machine, threads(2)).candidates) {
      const GemmKnobs defaults = default_gemm_knobs(machine, kSmall.dtype);
      const double default_ns =
          simulate(build(*candidate.pattern, kSmall, machine, defaults), machine).makespan_ns;
      EXPECT_LE(candidate.time_ns, default_ns) << candidate.pattern->name << " on " << name;
    }
  }
}

double time_of(const Advice& advice, std::string_view pattern) {
  for (const Candidate& candidate : advice.candidates) {
    if (candidate.pattern->name == pattern) return candidate.time_ns;
  }
  return std::numeric_limits<double>::infinity();
}

// A longer list of problems, and random points of the whole space: tests/bench/search_check.cpp.
TEST(Advise, LeavesNoSingleChangeOfAKnobThatGainsMoreThanOnePercent) {
  struct Case {
    const char* machine;
    GemmAllScatter workload;
  };
  const std::vector<Case> cases{{"mi300x-8", {64, 4096, 4096, DType::fp16, 8}},
                                {"mi300x-8", {1024, 2048, 2048, DType::bf16, 4}},
                                {"h200-4", {200, 2048, 1024, DType::fp8, 2}},
                                {"h100-4", {512, 4096, 1024, DType::fp16, 4}}};
  for (const auto& [name, workload] : cases) {
    const Machine machine = find_machine(name);
    const std::vector<Candidate> candidates = advise(workload, machine, threads(2)).candidates;
    const auto winner = std::find_if(candidates.begin(), candidates.end(),
                                     [](const Candidate& one) { return !one.pattern->knobs.empty(); });
    ASSERT_NE(winner, candidates.end());
    SimulationOptions options;
    options.give_up_after_ns = 0.99 * winner->time_ns;
    const GemmKnobs best = gemm_knobs_of(winner->knobs);
    for (const GemmKnobs& knobs : single_changes(best, *winner->pattern, machine)) {
      if (knobs.launch != best.launch) continue;  // all patterns of a question are launched alike
      Schedule schedule;
      try {
        schedule = build(*winner->pattern, workload, machine, knobs);
      } catch (const UserError&) {
        continue;  // it does not fit
      }
      const SimulationResult result = simulate(schedule, machine, options);
      EXPECT_TRUE(result.gave_up || result.makespan_ns >= options.give_up_after_ns)
          << name << ' ' << winner->pattern->name << ": " << result.makespan_ns << " instead of "
          << winner->time_ns << " ns with " << key_of(values_of(knobs)) << " instead of "
          << key_of(winner->knobs);
    }
  }
}

// Products of a few rows stream a matrix of weights that no cache holds: what counts is how many compute
// units and how deep stages ask for it.
TEST(Advise, IsNotBeatenBySmallTilesAtDecodeSizes) {
  struct Case {
    const char* machine;
    GemmAllScatter workload;
  };
  const std::vector<Case> cases{{"h200-8", {64, 8192, 28672, DType::bf16, 8}},
                                {"mi325x-8", {16, 8192, 28672, DType::bf16, 8}},
                                {"mi300x-8", {64, 16384, 53248, DType::fp16, 8}},
                                {"mi300x-8", {64, 64, 1000000, DType::fp16, 2}}};
  const std::vector<std::array<std::int32_t, 3>> tiles{{16, 16, 256}, {16, 32, 256}, {32, 16, 256},
                                                       {32, 32, 128}, {32, 32, 256}, {16, 64, 128},
                                                       {32, 64, 128}, {64, 64, 128}};
  const Pattern& pattern = find_pattern(gemm_all_scatter(), "fused-sequential", "test");
  for (const auto& [name, workload] : cases) {
    const Machine machine = find_machine(name);
    const double found_ns = time_of(advise(workload, machine, threads(2)), pattern.name);
    for (const auto& [m, n, k] : tiles) {
      GemmKnobs knobs = default_gemm_knobs(machine, workload.dtype);
      knobs.tile_m = m;
      knobs.tile_n = n;
      knobs.tile_k = k;
      knobs.pipeline = Pipeline::overlapped;
      knobs.peer_order = PeerOrder::staggered;
      knobs.launch = LaunchMode::graph;  // as a question of so few rows is answered
      const double pinned_ns = simulate(build(pattern, workload, machine, knobs), machine).makespan_ns;
      constexpr double kRounding = 1 + 1e-12;  // other tiles of equal time add up in another order
      EXPECT_LE(found_ns, pinned_ns * kRounding) << name << ", tile " << m << "x" << n << "x" << k;
    }
  }
}

// The patterns differ in how they send, not in what suits their GEMM.
TEST(Advise, FindsForAPatternTheTileThatIsBestForAnother) {
  const GemmAllScatter workload{1, 8192, 8192, DType::bf16, 8};
  const Machine machine = find_machine("mi300x-8");
  GemmKnobs knobs = default_gemm_knobs(machine, workload.dtype);
  knobs.tile_m = 16;
  knobs.tile_n = 64;
  knobs.tile_k = 128;
  knobs.pipeline = Pipeline::overlapped;
  knobs.peer_order = PeerOrder::staggered;
  const Pattern& pattern = find_pattern(gemm_all_scatter(), "bulk-synchronous", "test");
  const double pinned_ns = simulate(build(pattern, workload, machine, knobs), machine).makespan_ns;
  EXPECT_LE(time_of(advise(workload, machine, threads(2)), pattern.name), pinned_ns);
}

TEST(Advise, DoesNotDependOnTheNumberOfThreads) {
  const Machine machine = find_machine("h200-4");
  const GemmAllScatter workload{300, 500, 400, DType::bf16, 2};
  const Advice one = advise(workload, machine, threads(1));
  const Advice two = advise(workload, machine, threads(2));
  EXPECT_EQ(one.evaluated, two.evaluated);
  EXPECT_EQ(one.given_up, two.given_up);
  EXPECT_EQ(one.pruned, two.pruned);
  EXPECT_EQ(one.explanation, two.explanation);
  ASSERT_EQ(one.candidates.size(), two.candidates.size());
  for (std::size_t i = 0; i < one.candidates.size(); ++i) {
    EXPECT_EQ(one.candidates[i].pattern, two.candidates[i].pattern);
    EXPECT_EQ(one.candidates[i].knobs, two.candidates[i].knobs) << one.candidates[i].pattern->name;
    EXPECT_EQ(one.candidates[i].time_ns, two.candidates[i].time_ns) << one.candidates[i].pattern->name;
    EXPECT_EQ(one.candidates[i].taxes.launch_ns, two.candidates[i].taxes.launch_ns)
        << one.candidates[i].pattern->name;
  }
}

TEST(Advise, StopsWhenAskedWithTheBestSoFar) {
  std::atomic<bool> stop{false};
  AdviseOptions options = threads(2);
  options.stop = &stop;
  std::int64_t calls = 0;
  options.progress = [&](const AdviseProgress&) {
    ++calls;
    stop = true;
  };
  const Machine machine = find_machine("mi300x-8");
  const Advice stopped = advise(kSmall, machine, options);
  EXPECT_TRUE(stopped.interrupted);
  EXPECT_EQ(calls, 1);
  EXPECT_FALSE(stopped.candidates.empty());
  // Its words are about the best so far; what another peer order would take is not simulated any more.
  ASSERT_GE(stopped.explanation.size(), 3u);
  const Candidate& winner = stopped.candidates.front();
  EXPECT_NE(stopped.explanation[0].find(std::to_string(winner.rounds.tiles) + " tile"), std::string::npos);
  EXPECT_NE(stopped.explanation[1].find("ahead of " + std::string(stopped.candidates[1].pattern->name)),
            std::string::npos);
  EXPECT_TRUE(winner.others.empty());
  EXPECT_LT(stopped.evaluated, advise(kSmall, machine, threads(2)).evaluated);
}

// Before anything else is built, so that Ctrl-C finds an answer early in a search that takes long.
TEST(Advise, StoppedAtTheFirstReportHasTheDefaultKnobsOfEveryPattern) {
  std::atomic<bool> stop{false};
  AdviseOptions options = threads(2);
  options.stop = &stop;
  std::int64_t remaining = 0;
  options.progress = [&](const AdviseProgress& progress) {
    stop = true;
    remaining = progress.remaining;
  };
  const GemmAllScatter workload{4096, 4096, 4096, DType::fp16, 8};
  const Machine machine = find_machine("mi300x-8");
  const Advice stopped = advise(workload, machine, options);
  EXPECT_EQ(stopped.evaluated, static_cast<std::int64_t>(gemm_all_scatter().patterns.size()));
  EXPECT_EQ(stopped.pruned, 0);
  EXPECT_GT(remaining, 100);
  ASSERT_EQ(stopped.candidates.size(), gemm_all_scatter().patterns.size());
  for (const Candidate& candidate : stopped.candidates) {
    const KnobSpace space = knob_space(*candidate.pattern, workload, machine);
    EXPECT_EQ(candidate.knobs, coarse_choices(space).front().knobs) << candidate.pattern->name;
  }
}

TEST(Advise, StoppedBeforeItStartsHasNoCandidates) {
  const std::atomic<bool> stop{true};
  AdviseOptions options;
  options.stop = &stop;
  const Advice advice = advise(kSmall, find_machine("mi300x-8"), options);
  EXPECT_TRUE(advice.interrupted);
  EXPECT_EQ(advice.evaluated, 0);
  EXPECT_TRUE(advice.candidates.empty());
}

TEST(Advise, ReportsProgressThatAddsUp) {
  std::vector<AdviseProgress> seen;
  AdviseOptions options = threads(2);
  options.progress = [&](const AdviseProgress& progress) { seen.push_back(progress); };
  const Advice advice = advise(kSmall, find_machine("mi300x-8"), options);
  ASSERT_FALSE(seen.empty());
  for (std::size_t i = 1; i < seen.size(); ++i) {
    EXPECT_GE(seen[i].evaluated, seen[i - 1].evaluated);
    EXPECT_GE(seen[i].pruned, seen[i - 1].pruned);
  }
  EXPECT_EQ(seen.back().remaining, 0);
  EXPECT_EQ(seen.back().evaluated, advice.evaluated);
  EXPECT_EQ(seen.back().pruned, advice.pruned);
}

TEST(Advise, KeepsPinnedKnobs) {
  AdviseOptions options = threads(2);
  options.pins = Values(gemm_all_scatter().knobs);
  options.pins.give("tile_m", 128);
  options.pins.give("tile_n", 64);
  options.pins.give("comm_cus", 40);
  int with_tiles = 0;
  for (const Candidate& candidate : advise(kSmall, find_machine("mi300x-8"), options).candidates) {
    if (!candidate.pattern->uses("tile")) continue;
    ++with_tiles;
    EXPECT_EQ(candidate.knobs["tile_m"], 128) << candidate.pattern->name;
    EXPECT_EQ(candidate.knobs["tile_n"], 64) << candidate.pattern->name;
    EXPECT_EQ(candidate.knobs["comm_cus"], candidate.pattern->uses("comm_cus") ? 40 : 0)
        << candidate.pattern->name;
  }
  EXPECT_EQ(with_tiles, 4);
}

TEST(Advise, RefusesPinsThatNoPatternCanUse) {
  AdviseOptions options = threads(1);
  options.pins = Values(gemm_all_scatter().knobs);
  options.pins.give("tile_m", 512);
  options.pins.give("tile_n", 512);
  EXPECT_THROW(advise(kSmall, find_machine("mi300x-8"), options), UserError);
}

TEST(Advise, RefusesMoreGpusThanTheMachineHas) {
  EXPECT_THROW(advise({1024, 1024, 1024, DType::fp16, 9}, find_machine("mi300x-8")), UserError);
}

TEST(Advise, WorksOnOneGpuAndOnTinyMatrices) {
  const Machine machine = find_machine("mi300x-8");
  EXPECT_EQ(advise({512, 512, 512, DType::fp16, 1}, machine, threads(2)).candidates.size(),
            gemm_all_scatter().patterns.size());
  EXPECT_EQ(advise({1, 8, 1, DType::fp16, 8}, machine, threads(2)).candidates.size(),
            gemm_all_scatter().patterns.size());
}

// The two times that a speedup compares.
TEST(Advise, DrawsTheWinnerAndTheBaselineWithOtherSeedsToo) {
  const Machine machine = find_machine("mi300x-8");
  const std::vector<Candidate> candidates = advise(kSmall, machine, threads(2)).candidates;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const Candidate& one = candidates[i];
    EXPECT_EQ(one.spread.known(), i == 0 || one.pattern->name == "library") << one.pattern->name;
    if (!one.spread.known()) continue;
    EXPECT_EQ(one.spread.times_ns.front(), one.time_ns);
    SimulationOptions options;
    options.seed = 2;
    const Schedule schedule = build_schedule(*one.pattern, problem_of(kSmall), machine, one.knobs);
    EXPECT_EQ(one.spread.times_ns[1], simulate(schedule, machine, options).makespan_ns);
  }
}

// Every number of the explanation comes from the run; the first sentence has the winner's tiles and rounds.
TEST(Advise, ExplainsTheWinnerWithItsOwnNumbers) {
  const Advice advice = advise(kSmall, find_machine("mi300x-8"), threads(2));
  const Candidate& winner = advice.candidates.front();
  ASSERT_GE(advice.explanation.size(), 2u);
  const std::string& waves = advice.explanation[0];
  EXPECT_NE(waves.find(std::to_string(winner.rounds.tiles) + " tile"), std::string::npos) << waves;
  EXPECT_NE(waves.find(std::to_string(winner.rounds.rounds) + " round"), std::string::npos) << waves;
  EXPECT_NE(waves.find(std::string(winner.pattern->name)), std::string::npos) << waves;
  EXPECT_NE(advice.explanation[1].find(std::string(advice.candidates[1].pattern->name)), std::string::npos);
}

// One round of tiles that all end together: in the fixed order they go through one link after the other.
TEST(Advise, SaysWhatStaggeredPeersGainOverTheFixedOrder) {
  const GemmAllScatter workload{2048, 2304, 8192, DType::fp16, 8};
  const Machine machine = find_machine("mi300x-8");
  const Advice advice = advise(workload, machine, threads(2));
  for (const Candidate& candidate : advice.candidates) {
    if (gemm_knobs_of(candidate.knobs).peer_order != PeerOrder::staggered) {
      EXPECT_TRUE(candidate.others.empty()) << candidate.pattern->name;
      continue;
    }
    GemmKnobs fixed = gemm_knobs_of(candidate.knobs);
    fixed.peer_order = PeerOrder::fixed;
    const Schedule schedule = build(*candidate.pattern, workload, machine, fixed);
    ASSERT_EQ(candidate.others.size(), 1u) << candidate.pattern->name;
    EXPECT_EQ(candidate.others[0].time_ns, simulate(schedule, machine).makespan_ns)
        << candidate.pattern->name;
  }
  const Candidate& winner = advice.candidates.front();
  EXPECT_EQ(gemm_knobs_of(winner.knobs).peer_order, PeerOrder::staggered);
  ASSERT_EQ(winner.others.size(), 1u);
  EXPECT_GT(winner.others[0].time_ns, 1.1 * winner.time_ns);
  const auto says = [](const std::string& text) { return text.find("different peers") != std::string::npos; };
  EXPECT_EQ(std::count_if(advice.explanation.begin(), advice.explanation.end(), says), 1);
}

}  // namespace
}  // namespace tritax
