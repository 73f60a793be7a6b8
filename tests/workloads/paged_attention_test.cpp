#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "model/core/error.hpp"
#include "model/workload/file_values.hpp"
#include "model/workloads/paged_attention/batch.hpp"
#include "model/workloads/paged_attention/grid.hpp"
#include "model/workloads/paged_attention/heuristics.hpp"
#include "model/workloads/paged_attention/problem.hpp"
#include "model/workloads/paged_attention/workload.hpp"
#include "tests/workloads/any_workload.hpp"

namespace tritax {
namespace {

struct Batch {
  std::vector<std::array<std::int64_t, 3>> groups{{3, 1, 37}};
  int heads = 4, kv_heads = 2, depth = 16, page = 16, ragged = 0, draw = 1;
  DType dtype = DType::fp16;

  Problem problem() const {
    Problem problem = problem_of(paged_attention());
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const std::string name(kBatchGroups[i]);
      problem.values.give(name + "_count", groups[i][0]);
      problem.values.give(name + "_query", groups[i][1]);
      problem.values.give(name + "_context", groups[i][2]);
    }
    problem.values.give("q_heads", heads);
    problem.values.give("kv_heads", kv_heads);
    problem.values.give("head_dim", depth);
    problem.values.give("page", page);
    problem.values.give("ragged", ragged);
    problem.values.give("draw", draw);
    problem.values.give("dtype", static_cast<std::int64_t>(dtype));
    complete_problem(problem, "test");
    return problem;
  }
};

constexpr int kRunsOfPaged = 2;

class ListOfSequences {
 public:
  explicit ListOfSequences(const std::string& text) {
    static int lists = 0;
    path_ = testing::TempDir() + "tritax_lengths_" + std::to_string(lists++) + ".csv";
    std::ofstream(path_) << text;
  }
  Problem problem() const {
    Problem problem = problem_of(paged_attention());
    problem.values.give("lengths", number_of_file(path_));
    return problem;
  }

 private:
  std::string path_;
};

TEST(PagedBatch, IsThatOfAList) {
  Problem problem = ListOfSequences("query,context,count\n1,300,2\n64,64,1\n").problem();
  complete_problem(problem, "test");
  const std::vector<PagedSequence> sequences = sequences_of(problem);
  ASSERT_EQ(sequences.size(), 3);
  EXPECT_EQ(sequences[1].keys, 300);
  EXPECT_EQ(sequences[2].queries, 64);
  EXPECT_EQ(problem["sequences_count"], 3);
  EXPECT_EQ(problem["sequences_context"], 300);
  Problem again = problem;  // as a saved scenario says it
  again.values.give("sequences_count", 3);
  EXPECT_NO_THROW(complete_problem(again, "test"));
}

TEST(PagedBatch, RefusesListsThatCannotBe) {
  const auto refused = [](const std::string& text, const std::string& because) {
    Problem problem = ListOfSequences(text).problem();
    try {
      complete_problem(problem, "test");
      ADD_FAILURE() << text;
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find(because), std::string::npos) << error.what();
    }
  };
  refused("query,context\n8,4\n", "csv:2");
  refused("query,context\n0,4\n", "csv:2");
  refused("query,context,count\n1,131072,4096\n1,131072,1\n", "4097 sequences");
  refused("query\n1\n", "context");
  Problem problem = ListOfSequences("query,context\n1,4\n").problem();
  problem.values.give("sequences_count", 2);
  EXPECT_THROW(complete_problem(problem, "test"), UserError);
}

// The examples of grid.hpp, which follow from the formulas by hand.
TEST(PagedGrid, FindsTheSequenceOfEveryProgram) {
  const std::vector<PagedSequence> sequences{{5, 5}, {1, 1}, {9, 9}};
  const std::vector<std::int64_t> cu = first_tokens(sequences);
  EXPECT_EQ(cu, (std::vector<std::int64_t>{0, 5, 6, 15}));
  ASSERT_EQ(query_programs(15, 3, 4), 6);
  const std::vector<QueryBlock> blocks{{0, 0, 4}, {0, 4, 1}, {1, 0, 1}, {2, 0, 4}, {2, 4, 4}, {2, 8, 1}};
  for (std::size_t p = 0; p < blocks.size(); ++p) {
    EXPECT_EQ(block_of_program(cu, 4, static_cast<std::int64_t>(p)), blocks[p]) << p;
  }
}

TEST(PagedGrid, HasProgramsThatEndAtOnce) {
  const std::vector<PagedSequence> prompts{{4, 4}, {1, 1}, {8, 8}};
  ASSERT_EQ(query_programs(13, 3, 4), 6);
  for (std::int64_t p = 0; p < 6; ++p) {
    EXPECT_EQ(block_of_program(first_tokens(prompts), 4, p).tokens == 0, p == 1 || p == 5) << p;
  }
  const std::vector<PagedSequence> decodes(4);
  ASSERT_EQ(query_programs(4, 4, 4), 5);
  EXPECT_EQ(block_of_program(first_tokens(decodes), 4, 4), (QueryBlock{3, 4, 0}));
}

TEST(PagedGrid, SplitsKeysIntoSegmentsOfWholeTiles) {
  const auto working = [](std::int64_t keys, std::int64_t tile) {
    int segments = 0;
    for (std::int64_t s = 0; s < 16; ++s) segments += segment_keys(keys, keys, 16, tile, s).empty() ? 0 : 1;
    return segments;
  };
  EXPECT_EQ(segment_keys(5000, 5000, 16, 16, 0), (KeyRange{0, 320}));
  EXPECT_EQ(segment_keys(5000, 5000, 16, 16, 15), (KeyRange{4800, 5000}));
  EXPECT_EQ(working(5000, 16), 16);
  EXPECT_EQ(working(100, 16), 7);
  EXPECT_EQ(working(100, 32), 4);
  EXPECT_EQ(segment_keys(40000, 40000, 16, 16, 0), (KeyRange{0, 2512}));
}

RC_GTEST_PROP(PagedGridLaw, EveryTokenHasOneBlock, ()) {
  std::vector<PagedSequence> sequences(*rc::gen::inRange<std::size_t>(1, 40));
  for (PagedSequence& sequence : sequences) sequence.queries = *rc::gen::inRange(1, 60);
  const std::int64_t block_q = *rc::gen::inRange(1, 20);
  const std::vector<std::int64_t> cu = first_tokens(sequences);
  std::vector<int> seen(static_cast<std::size_t>(cu.back()), 0);
  for (std::int64_t p = 0; p < query_programs(cu.back(), sequences.size(), block_q); ++p) {
    const QueryBlock block = block_of_program(cu, block_q, p);
    for (std::int64_t t = 0; t < block.tokens; ++t) {
      ++seen[static_cast<std::size_t>(cu[block.sequence] + block.first + t)];
    }
  }
  RC_ASSERT(std::all_of(seen.begin(), seen.end(), [](int times) { return times == 1; }));
}

// Leaves of the published trees, and listing 2.
TEST(PagedHeuristics, ChooseAsTheAuthorsDo) {
  EXPECT_EQ(choice_of_tree({1, 1, 96}, true), (KernelChoice{32, 16, 4, 4}));
  EXPECT_EQ(choice_of_tree({1, 1, 1536}, true), (KernelChoice{128, 16, 2, 8}));
  EXPECT_EQ(choice_of_tree({192, 300, 1537}, true), (KernelChoice{128, 16, 8, 8}));
  EXPECT_EQ(choice_of_tree({193, 300, 97}, true), (KernelChoice{128, 128, 1, 8}));
  EXPECT_EQ(choice_of_tree({1, 1, 193}, false), (KernelChoice{32, 16, 4, 4}));
  EXPECT_EQ(choice_of_tree({96, 96, 192}, false), (KernelChoice{128, 16, 2, 8}));
  EXPECT_EQ(choice_of_tree({300, 300, 385}, false), (KernelChoice{256, 32, 1, 4}));
  EXPECT_EQ(choice_of_tree({385, 385, 768}, false), (KernelChoice{16, 64, 4, 4}));
  EXPECT_EQ(choice_of_tree({385, 385, 769}, false), (KernelChoice{64, 64, 1, 2}));
  EXPECT_EQ(choice_of_listing({4096, 4096, 4096}, true), (KernelChoice{32, 64, 0, 4}));
  EXPECT_EQ(choice_of_listing({5000, 5000, 5000}, true), (KernelChoice{64, 64, 0, 4}));
  EXPECT_EQ(choice_of_listing({5000, 5000, 5000}, false), (KernelChoice{32, 16, 0, 4}));
  EXPECT_TRUE(splits_keys({1, 1, 9000}, 16, 8));
  EXPECT_FALSE(splits_keys({1, 1, 9000}, 17, 8));
  EXPECT_FALSE(splits_keys({2, 2, 9000}, 1, 8));
}

TEST(PagedAttention, IsSoundAndRightForEveryPatternAndDtype) {
  const Machine machine = find_machine("mi300x-8");
  for (const Pattern& pattern : paged_attention().patterns) {
    for (const DType dtype : {DType::fp32, DType::fp16, DType::bf16, DType::fp8}) {
      const Problem problem = Batch{.groups = {{2, 5, 5}, {1, 1, 70}, {1, 9, 40}}, .dtype = dtype}.problem();
      EXPECT_EQ(what_is_wrong(pattern, problem, machine, knobs_with(problem, machine, {{"segments", 3}}),
                              kRunsOfPaged),
                "")
          << pattern.name << " in " << name_of(dtype);
    }
  }
}

RC_GTEST_PROP(PagedAttentionLaw, AnyBatchAndKnobsGiveTheResultOfAllKeys, ()) {
  const auto between = [](int low, int high) { return *rc::gen::inRange(low, high + 1); };
  const Machine machine = find_machine(*rc::gen::element<std::string>("mi300x-8", "h200-4"));
  Batch batch;
  batch.groups.clear();
  for (int i = between(1, 4); i > 0; --i) {
    const int queries = between(1, 20);
    batch.groups.push_back({between(1, 3), queries, queries + between(0, 1) * between(0, 90)});
  }
  batch.kv_heads = between(1, 3);
  batch.heads = batch.kv_heads * between(1, 7);
  batch.page = between(1, 40);
  batch.ragged = between(0, 1) * 60;
  batch.draw = between(1, 9);
  const Problem problem = batch.problem();
  const bool graph = between(0, 1) == 1;
  Given given{{"tile", 16 * between(1, 4)}, {"block_m", 16 * between(1, 4)},
              {"segments", between(1, 9)},  {"programs", between(0, 1) * between(1, 30)},
              {"waves", between(1, 4)},     {"pipeline", between(0, 1)},
              {"launch", graph ? 1 : 0},    {"call_us", between(0, 1) * 150},
              {"layers", between(1, 2)},    {"rest_us", between(0, 1) * 20}};
  if (graph) given["captured"] = between(0, 1) * 300;
  const Values knobs = knobs_with(problem, machine, given);
  const Pattern& pattern = paged_attention().patterns[static_cast<std::size_t>(between(0, 6))];
  RC_LOG() << pattern.name << ' ' << key_of(problem.values) << ' ' << key_of(knobs) << '\n';
  RC_ASSERT(what_is_wrong(pattern, problem, machine, knobs, kRunsOfPaged) == std::string());
}

RC_GTEST_PROP(PagedAttentionLaw, BoundsStayBelow, ()) {
  const auto between = [](int low, int high) { return *rc::gen::inRange(low, high + 1); };
  const Machine machine = find_machine(*rc::gen::element<std::string>("mi300x-8", "h100-4"));
  Batch batch{.groups = {{between(1, 40), 1, between(1, 9000)}}, .heads = 16, .kv_heads = 4, .depth = 64};
  const Problem problem = batch.problem();
  const Values knobs = knobs_with(problem, machine,
                                  {{"segments", between(1, 20)},
                                   {"pipeline", between(0, 1)},
                                   {"launch", between(0, 1)},
                                   {"layers", between(1, 3)},
                                   {"rest_us", between(0, 1) * 30}});
  const Pattern& pattern = paged_attention().patterns[static_cast<std::size_t>(between(0, 6))];
  const Schedule schedule = build_schedule(pattern, problem, machine, knobs);
  const double time_ns = simulate(schedule, machine, {}).makespan_ns;
  RC_ASSERT(paged_attention().bound_ns(pattern, problem, machine, knobs) <= time_ns * (1 + 1e-9));
}

TEST(PagedBatch, DrawsLengthsOfItsSeed) {
  const Batch batch{.groups = {{50, 1, 1001}, {50, 100, 100}}, .ragged = 40};
  const std::vector<PagedSequence> sequences = sequences_of(batch.problem());
  ASSERT_EQ(sequences.size(), 100u);
  std::int64_t shortest = 1001;
  for (std::size_t s = 0; s < 100; ++s) {
    const PagedSequence& sequence = sequences[s];
    EXPECT_EQ(sequence.queries, s < 50 ? 1 : sequence.keys);
    EXPECT_LE(sequence.keys, s < 50 ? 1001 : 100);
    EXPECT_GT(sequence.keys, s < 50 ? 600 : 60);
    if (s < 50) shortest = std::min(shortest, sequence.keys);
  }
  EXPECT_LT(shortest, 700);  // of 50 that are uniform in (600, 1000]
  Batch other = batch;
  other.draw = 2;
  EXPECT_NE(sequences_of(other.problem())[0].keys, sequences[0].keys);
  EXPECT_EQ(sequences_of(batch.problem())[0].keys, sequences[0].keys);
}

// Without a graph the host decides: two calls of split keys against one of query blocks. In a graph only the
// kernels count.
TEST(PagedAttention, PaysForEveryLaunchUnlessItIsInAGraph) {
  const Machine machine = find_machine("mi300x-8");
  const Problem problem = Batch{.groups = {{1, 1, 300}}, .heads = 32, .kv_heads = 8, .depth = 128}.problem();
  const auto of_a_layer = [&](std::string_view pattern, std::int64_t launch) {
    const auto time = [&](std::int64_t layers) {
      return time_with(pattern, problem, machine, {{"call_us", 150}, {"launch", launch}, {"layers", layers}});
    };
    return (time(5) - time(1)) / 4;
  };
  const double call_ns = 150e3 + machine.host.launch_call_ns;
  EXPECT_NEAR(of_a_layer("q-block", 0), call_ns, 0.02 * call_ns);
  EXPECT_NEAR(of_a_layer("split-kv", 0), 2 * call_ns, 0.02 * call_ns);
  EXPECT_LT(of_a_layer("split-kv", 1), 40e3);
}

// A graph for 2,048 tokens starts the programs of all of them.
TEST(PagedAttention, StartsProgramsThatEndAtOnceForAGraphOfMoreTokens) {
  const Machine machine = find_machine("mi300x-8");
  const Problem problem = Batch{.groups = {{1, 1, 300}}, .heads = 32, .kv_heads = 8, .depth = 128}.problem();
  const auto workgroups = [&](std::string_view pattern, std::int64_t captured) {
    const Schedule schedule =
        schedule_with(pattern, problem, machine, {{"launch", 1}, {"captured", captured}, {"segments", 1}});
    return schedule.kernels.front().workgroups.size();
  };
  EXPECT_EQ(workgroups("q-block", 0), (1 / 4 + 1) * 8u);
  EXPECT_EQ(workgroups("q-block", 2048), (2048 / 4 + 1) * 8u);
  EXPECT_EQ(workgroups("naive", 2048), 2048 * 32u);
  EXPECT_EQ(workgroups("static-grid", 2048), 8u);
  EXPECT_GT(time_with("q-block", problem, machine, {{"launch", 1}, {"captured", 2048}}),
            time_with("q-block", problem, machine, {{"launch", 1}}));
}

// One long sequence: 8 of 304 compute units work without segments.
TEST(PagedAttention, SplitsKeysForFewLongSequencesAndNotForMany) {
  const Machine machine = find_machine("mi300x-8");
  Batch batch{.groups = {{1, 1, 16000}}, .heads = 32, .kv_heads = 8, .depth = 128};
  const Given graph{{"launch", 1}};
  EXPECT_GT(time_with("q-block", batch.problem(), machine, graph),
            4 * time_with("split-kv", batch.problem(), machine, graph));
  batch.groups = {{256, 1, 128}};
  EXPECT_LT(time_with("q-block", batch.problem(), machine, graph),
            time_with("split-kv", batch.problem(), machine, graph));
}

std::string paged_refusal(const Batch& batch, const Given& given = {}, std::string_view pattern = "q-block") {
  return refusal_by([&] { schedule_with(pattern, batch.problem(), find_machine("mi300x-8"), given); });
}

TEST(PagedAttention, RefusesWhatCannotBe) {
  EXPECT_EQ(paged_refusal({.groups = {{1, 8, 4}}}),
            "test: sequences = 1x8x4; give sequences, new tokens of each, and keys of each, which are those "
            "tokens and what was before them: for example 16x1x4096");
  EXPECT_EQ(paged_refusal({.groups = {{4000, 1, 4}, {4000, 1, 4}}}).substr(0, 42),
            "test: 8000 sequences with 8000 new tokens ");
  EXPECT_EQ(
      paged_refusal({.groups = {{3, 1, 4}}}, {{"launch", 1}, {"captured", 2}}),
      "captured = 2: the batch has 3 tokens, and a graph runs no more than it was captured for; give at "
      "least 3");
  EXPECT_EQ(paged_refusal({.heads = 64, .kv_heads = 2}, {{"block_m", 16}}, "flexible-tile"),
            "block_m = 16 rows cannot hold the 32 query heads that share a head of keys");
  EXPECT_EQ(paged_refusal({.heads = 6, .kv_heads = 4}),
            "test: q_heads = 6 is not a multiple of kv_heads = 4; each head of keys serves as many query "
            "heads");
  EXPECT_EQ(paged_refusal({.groups = {{1, 1, 1 << 20}}, .depth = 512, .page = 1024}).substr(0, 5), "page:");
}

}  // namespace
}  // namespace tritax
