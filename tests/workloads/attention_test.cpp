// Attention on one GPU: which workgroup has which tile, and that every order computes the same.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "model/core/error.hpp"
#include "model/machine/machine.hpp"
#include "model/parts/attention_mapping.hpp"
#include "model/schedule/check.hpp"
#include "model/select/bounds.hpp"
#include "model/workloads/attention_forward/workload.hpp"
#include "sim/functional.hpp"
#include "sim/simulate.hpp"

namespace tritax {
namespace {

constexpr std::array<Mapping, 4> kMappings{Mapping::naive_block_first, Mapping::swizzled_block_first,
                                           Mapping::naive_head_first, Mapping::swizzled_head_first};
constexpr std::array<HeadFirstForm, 3> kForms{HeadFirstForm::clean, HeadFirstForm::paper,
                                              HeadFirstForm::aiter};

bool gives_every_tile_once(Mapping mapping, HeadFirstForm form, const AttentionGrid& grid) {
  std::vector<bool> seen(static_cast<std::size_t>(grid.tiles()));
  for (std::int64_t w = 0; w < grid.tiles(); ++w) {
    const AttentionTile tile = tile_of_workgroup(mapping, form, grid, w);
    const bool inside = tile.batch >= 0 && tile.batch < grid.batch && tile.head >= 0 &&
                        tile.head < grid.heads && tile.block >= 0 && tile.block < grid.blocks;
    const std::int64_t number = (tile.batch * grid.heads + tile.head) * grid.blocks + tile.block;
    if (!inside || seen[static_cast<std::size_t>(number)]) return false;
    seen[static_cast<std::size_t>(number)] = true;
  }
  return true;
}

void expect_once_unless_refused(const AttentionGrid& grid) {
  for (const Mapping mapping : kMappings) {
    for (const HeadFirstForm form : kForms) {
      const bool refused = !fault_of_mapping(mapping, form, grid).empty();
      ASSERT_TRUE(refused || gives_every_tile_once(mapping, form, grid))
          << static_cast<int>(mapping) << " " << static_cast<int>(form) << ": " << grid.batch << " batches, "
          << grid.heads << "/" << grid.kv_heads << " heads, " << grid.blocks << " blocks, " << grid.dies;
    }
  }
}

TEST(AttentionMapping, IsABijectionOrRefusedForEveryListedCase) {
  using Heads = std::pair<std::int64_t, std::int64_t>;
  std::vector<Heads> heads{{4, 1},   {16, 1}, {16, 4}, {32, 8},  {64, 8}, {128, 8},
                           {48, 12}, {28, 4}, {12, 3}, {64, 16}, {48, 3}};
  for (const std::int64_t all : {5, 8, 12, 16, 20, 24, 27, 40, 64, 128}) heads.push_back({all, all});
  for (const std::int64_t batch : {1, 2, 3, 4, 8}) {
    for (const auto& [queries, keys] : heads) {
      for (const std::int64_t blocks : {1, 3, 4, 16, 100}) {
        expect_once_unless_refused({batch, queries, keys, blocks, 8});
      }
    }
  }
}

RC_GTEST_PROP(AttentionMapping, IsABijectionOrRefused, ()) {
  AttentionGrid grid;
  grid.batch = *rc::gen::inRange(1, 6);
  grid.blocks = *rc::gen::inRange(1, 40);
  grid.kv_heads = *rc::gen::inRange(1, 40);
  grid.heads = grid.kv_heads * *rc::gen::inRange(1, 9);
  grid.dies = *rc::gen::element(1, 2, 4, 8);
  expect_once_unless_refused(grid);
}

TEST(AttentionMapping, RefusesTheTrapsOfThePublishedForms) {
  const auto refused = [](HeadFirstForm form, AttentionGrid grid) {
    grid.dies = 8;
    const bool fault = !fault_of_mapping(Mapping::swizzled_head_first, form, grid).empty();
    EXPECT_EQ(fault, !gives_every_tile_once(Mapping::swizzled_head_first, form, grid));
    return fault;
  };
  EXPECT_TRUE(refused(HeadFirstForm::paper, {2, 16, 16, 4}));
  EXPECT_FALSE(refused(HeadFirstForm::paper, {1, 16, 16, 4}));
  EXPECT_FALSE(refused(HeadFirstForm::clean, {3, 16, 16, 4}));
  EXPECT_TRUE(refused(HeadFirstForm::aiter, {1, 12, 12, 3}));
  EXPECT_TRUE(refused(HeadFirstForm::aiter, {1, 20, 20, 16}));
  EXPECT_TRUE(refused(HeadFirstForm::aiter, {1, 48, 12, 16}));
  EXPECT_TRUE(refused(HeadFirstForm::aiter, {1, 12, 3, 4}));
  EXPECT_TRUE(refused(HeadFirstForm::aiter, {1, 28, 4, 3}));
  EXPECT_FALSE(refused(HeadFirstForm::aiter, {2, 28, 4, 3}));
  EXPECT_FALSE(refused(HeadFirstForm::aiter, {1, 32, 8, 3}));
}

// 64 workgroups on 8 dies: one batch, 16 heads, 4 blocks.
TEST(AttentionMapping, IsThatOfThePaper) {
  const AttentionGrid grid{1, 16, 16, 4, 8};
  const auto at = [&](Mapping mapping, std::int64_t w, HeadFirstForm form = HeadFirstForm::clean) {
    const AttentionTile tile = tile_of_workgroup(mapping, form, grid, w);
    return std::pair(tile.head, tile.block);
  };
  using P = std::pair<std::int64_t, std::int64_t>;
  EXPECT_EQ(at(Mapping::naive_block_first, 33), P(1, 2));
  EXPECT_EQ(at(Mapping::swizzled_block_first, 9), P(3, 0));
  EXPECT_EQ(at(Mapping::swizzled_block_first, 32), P(0, 2));
  EXPECT_EQ(at(Mapping::naive_head_first, 9), P(2, 1));
  for (const HeadFirstForm form : {HeadFirstForm::clean, HeadFirstForm::paper}) {
    EXPECT_EQ(at(Mapping::swizzled_head_first, 7, form), P(14, 0));
    EXPECT_EQ(at(Mapping::swizzled_head_first, 9, form), P(2, 1));
    EXPECT_EQ(at(Mapping::swizzled_head_first, 33, form), P(3, 0));
  }
  EXPECT_EQ(at(Mapping::swizzled_head_first, 9, HeadFirstForm::aiter), P(1, 1));
  EXPECT_EQ(at(Mapping::swizzled_head_first, 32, HeadFirstForm::aiter), P(8, 0));
}

TEST(AttentionMapping, RemapIsABijectionOfEveryNumber) {
  for (std::int64_t n = 1; n < 70; ++n) {
    std::set<std::int64_t> seen;
    for (std::int64_t p = 0; p < n; ++p) seen.insert(remapped(p, n, 8));
    EXPECT_EQ(static_cast<std::int64_t>(seen.size()), n);
    EXPECT_EQ(*seen.rbegin(), n - 1);
  }
  const std::array<std::int64_t, 10> ten{0, 2, 4, 5, 6, 7, 8, 9, 1, 3};
  for (std::int64_t p = 0; p < 10; ++p) EXPECT_EQ(remapped(p, 10, 8), ten[static_cast<std::size_t>(p)]);
}

Problem attention_of(std::initializer_list<std::pair<const char*, std::int64_t>> fields) {
  Problem problem = problem_of(attention());
  for (const auto& [name, value] : fields) problem.values.give(name, value);
  complete_problem(problem, "test");
  return problem;
}

Schedule schedule_of(const Problem& problem, const Machine& machine, std::string_view pattern,
                     std::initializer_list<std::pair<const char*, std::int64_t>> given = {}) {
  Values knobs(attention().knobs);
  for (const auto& [name, value] : given) knobs.give(name, value);
  return build_schedule(find_pattern(attention(), pattern, "test"), problem, machine,
                        resolved_knobs(problem, machine, knobs));
}

RC_GTEST_PROP(AttentionWorkload, IsSoundAndRightInEveryOrder, ()) {
  const int group = *rc::gen::element(1, 2, 4);
  const Machine machine = find_machine(*rc::gen::element<std::string>("mi300x-8", "h100-4"));
  const Problem problem = attention_of({{"batch", *rc::gen::inRange(1, 3)},
                                        {"q_heads", 8},
                                        {"kv_heads", 8 / group},
                                        {"context", *rc::gen::inRange(1, 100)},
                                        {"head_dim", 16},
                                        {"causal", *rc::gen::inRange(0, 2)}});
  const Pattern& pattern = attention().patterns[static_cast<std::size_t>(*rc::gen::inRange(0, 4))];
  const Schedule schedule = schedule_of(
      problem, machine, pattern.name,
      {{"tile_q", *rc::gen::element(16, 32)}, {"tile_kv", 16}, {"persistent", *rc::gen::inRange(0, 2)}});
  RC_ASSERT(check_schedule(schedule).empty());
  RC_ASSERT(check_schedule_on(schedule, machine).empty());
  RC_ASSERT(execute_functionally(schedule, machine, 5).max_relative_error < 1e-6);
}

TEST(AttentionWorkload, RefusesWhatCannotBe) {
  const auto refuses = [](const auto& act, const std::string& text) {
    try {
      act();
      ADD_FAILURE() << "not refused: " << text;
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
    }
  };
  const Machine machine = find_machine("mi300x-8");
  refuses(
      [] {
        attention_of({{"context", 64}, {"q_heads", 12}, {"kv_heads", 8}});
      },
      "q_heads = 12 is not a multiple of kv_heads = 8");
  refuses(
      [&] {
        schedule_of(attention_of({{"context", 64}, {"q_heads", 12}}), machine, "swizzled-head-first");
      },
      "q_heads = 12 cannot be shared by 8 dies");
  refuses(
      [&] {
        schedule_of(attention_of({{"context", 64}, {"batch", 2}}), machine, "swizzled-head-first",
                    {{"swizzle", 1}});
      },
      "swizzle = paper gives tiles of 2 batches several times");
  refuses(
      [&] {
        schedule_of(attention_of({{"context", 64}}), machine, "naive-head-first", {{"tile_q", 40}});
      },
      "sides are multiples of 16");
  refuses(
      [&] {
        schedule_of(attention_of({{"context", 64}}), machine, "naive-head-first", {{"tile_q", 512}});
      },
      "use a smaller tile");
}

// 64 heads of 16K tokens: swizzled, a die has one head after the other; else it has eight at a time.
TEST(AttentionWorkload, FindsMoreInTheL2TheFewerHeadsADieHas) {
  const Machine machine = find_machine("mi300x-8");
  const Problem problem = attention_of({{"context", 16384}, {"q_heads", 64}});
  const auto run = [&](std::string_view pattern) {
    return simulate(schedule_of(problem, machine, pattern), machine, {});
  };
  const SimulationResult block_first = run("naive-block-first"), head_first = run("swizzled-head-first");
  EXPECT_GT(head_first.l2_hit_fraction, block_first.l2_hit_fraction + 0.1);
  EXPECT_LT(head_first.makespan_ns, block_first.makespan_ns * 1.001);
  EXPECT_DOUBLE_EQ(head_first.matrix_flops, work_of(problem).flops);
  EXPECT_DOUBLE_EQ(block_first.matrix_flops, work_of(problem).flops);
}

TEST(AttentionWorkload, IsNoFasterThanItsBounds) {
  for (const char* name : {"mi300x-8", "h100-4"}) {
    const Machine machine = find_machine(name);
    for (const std::int64_t causal : {0, 1}) {
      const Problem problem = attention_of({{"context", 3000}, {"q_heads", 16}, {"causal", causal}});
      for (const Pattern& pattern : attention().patterns) {
        const Values knobs = resolved_knobs(problem, machine, Values(attention().knobs));
        const Schedule schedule = build_schedule(pattern, problem, machine, knobs);
        const double ns = simulate(schedule, machine, {}).makespan_ns;
        EXPECT_LE(attention().bound_ns(pattern, problem, machine, knobs), ns) << pattern.name << name;
        EXPECT_LE(time_bound(schedule, machine, build_topology(machine, 1)).total_ns, ns)
            << pattern.name << name;
      }
    }
  }
}

}  // namespace
}  // namespace tritax
