// Routing from a file: the format, the load of experts, and its place in the key of a run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "model/parts/expert_histogram.hpp"
#include "model/parts/expert_routing.hpp"
#include "model/workload/file_values.hpp"
#include "model/workloads/expert_exchange/workload.hpp"
#include "model/workloads/moe/workload.hpp"
#include "tests/workloads/any_workload.hpp"

namespace tritax {
namespace {

using ExpertCounts = std::vector<std::int64_t>;
using testing::HasSubstr;

// A folder of its own for one test.
class HistogramFolder {
 public:
  HistogramFolder()
      : root_(std::filesystem::temp_directory_path() / ("tritax_histogram_" + std::to_string(getpid()))) {
    std::filesystem::create_directories(root_);
  }
  ~HistogramFolder() { std::filesystem::remove_all(root_); }
  HistogramFolder(const HistogramFolder&) = delete;
  HistogramFolder& operator=(const HistogramFolder&) = delete;

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(root_ / name) << text;
    return (root_ / name).string();
  }

 private:
  std::filesystem::path root_;
};

TEST(ExpertHistogram, ReadsLinesColumnsAndArrays) {
  const auto counts = [](const std::string& text) { return parse_expert_histogram(text, "h").counts; };
  const std::vector<ExpertCounts> of_all{{3, 0, 2}}, by_gpu{{3, 0, 2}, {1, 1, 3}};
  EXPECT_EQ(counts("3,0, 2\n"), of_all);
  EXPECT_EQ(counts("# tokens\n3\n0\r\n2"), of_all);
  EXPECT_EQ(counts("[3, 0, 2]"), of_all);
  EXPECT_EQ(counts("3,0,2\n\n1,1,3\n"), by_gpu);
  EXPECT_EQ(counts("[[3,0,2],\n [1,1,3]]"), by_gpu);
  EXPECT_EQ(parse_expert_histogram("3,0,2\n1,1,3", "h").totals(), (ExpertCounts{4, 1, 5}));
}

TEST(ExpertHistogram, RefusesWithFileAndLine) {
  const auto refusal = [](const std::string& text) {
    return refusal_by([&] { parse_expert_histogram(text, "h.csv"); });
  };
  EXPECT_THAT(refusal("# none\n"), HasSubstr("h.csv: there is no number in it"));
  EXPECT_THAT(refusal("1,2\n3,-4\n"), HasSubstr("h.csv:2: '-4' is not a number of tokens"));
  EXPECT_THAT(refusal("1,2,\n"), HasSubstr("h.csv:1: '' is not a number"));
  EXPECT_THAT(refusal("1,2\n#\n3\n"), HasSubstr("h.csv:3: 1 numbers where h.csv:1 has 2"));
  EXPECT_THAT(refusal("0,0\n"), HasSubstr("h.csv:1: no expert gets a token"));
  EXPECT_THAT(refusal("[[1,2],[3,\"x\"]]"), HasSubstr("h.csv: [1][1]: \"x\" is not allowed"));
  EXPECT_THAT(refusal("[1,2"), HasSubstr("h.csv:1:4: the text ends too early"));
  EXPECT_THAT(refusal("[]"), HasSubstr("give the tokens of at least one expert"));
}

RC_GTEST_PROP(ExpertHistogramLaw, PartsAddUpAndAreOffByLessThanOne, ()) {
  const ExpertCounts weights = *rc::gen::suchThat(
      rc::gen::container<ExpertCounts>(5, rc::gen::inRange<std::int64_t>(0, 1000)),
      [](const ExpertCounts& c) { return std::accumulate(c.begin(), c.end(), std::int64_t{0}) > 0; });
  const std::int64_t whole = *rc::gen::inRange<std::int64_t>(0, 100000);
  const ExpertCounts parts = apportioned(weights, whole);
  const auto sum = static_cast<double>(std::accumulate(weights.begin(), weights.end(), std::int64_t{0}));
  RC_ASSERT(std::accumulate(parts.begin(), parts.end(), std::int64_t{0}) == whole);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const double exact = static_cast<double>(weights[i]) * static_cast<double>(whole) / sum;
    RC_ASSERT(std::abs(static_cast<double>(parts[i]) - exact) < 1 + 1e-9);
    if (weights[i] == 0) RC_ASSERT(parts[i] == 0);
  }
}

ExpertRouting routing_by(const std::string& text, std::int64_t tokens, std::int64_t top_k, int gpus) {
  auto histogram = std::make_shared<const ExpertHistogram>(parse_expert_histogram(text, "h.csv"));
  ExpertRouting routing{.tokens = tokens, .experts = histogram->experts(), .top_k = top_k, .gpus = gpus};
  routing.histogram = histogram;
  return routing;
}

TEST(RoutingByHistogram, GivesExpertsWhatItSaysAndNoTokenAnExpertTwice) {
  const Routes routes(routing_by("5,0,9,2,1,3", 5, 2, 2));  // 20 choices of 10 tokens
  const ExpertCounts wanted{5, 0, 9, 2, 1, 3};
  for (int expert = 0; expert < 6; ++expert) {
    EXPECT_EQ(routes.target_rows(expert), wanted[static_cast<std::size_t>(expert)]);
    EXPECT_LE(std::abs(routes.rows(0, expert) - routes.rows(1, expert)), 1);
  }
  for (int source = 0; source < 2; ++source) {
    std::map<std::int32_t, std::set<int>> targets;
    for (const Routed& routed : routes.of(source)) targets[routed.token].insert(routed.target);
    EXPECT_EQ(routes.rows_of_source(source), 10);
    for (const auto& [token, of_token] : targets) EXPECT_EQ(of_token.size(), 2U) << token;
  }
}

// With an expert a GPU and one choice it is an all-to-all of any sizes.
TEST(RoutingByHistogram, MovesAMatrixOfSizesAsItIs) {
  const Routes routes(routing_by("0,7,1\n2,0,0\n4,4,0", 8, 1, 3));
  const std::vector<ExpertCounts> wanted{{0, 7, 1}, {2, 0, 0}, {4, 4, 0}};
  for (int source = 0; source < 3; ++source) {
    for (int rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(routes.rows_between(source, rank),
                wanted[static_cast<std::size_t>(source)][static_cast<std::size_t>(rank)]);
    }
  }
}

TEST(RoutingByHistogram, KeepsTheRatiosOfARecordWithOtherNumbersOfTokens) {
  const Routes routes(routing_by("500,0,900,200,100,300", 5, 2, 2));
  const ExpertCounts wanted{5, 0, 9, 2, 1, 3};
  for (int expert = 0; expert < 6; ++expert)
    EXPECT_EQ(routes.target_rows(expert), wanted[static_cast<std::size_t>(expert)]);
}

TEST(RoutingByHistogram, RefusesWhatNoRouterDoes) {
  const auto refusal = [](const std::string& text, const Given& more) {
    const HistogramFolder folder;
    Given given{{"tokens", 8}, {"gpus", 2}, {"top_k", 2}};
    given["histogram"] = number_of_file(folder.write("h.csv", text));
    for (const auto& [field, value] : more) given[field] = value;
    return refusal_by([&] { Routes routes(routing_of(problem_with(moe(), given), false)); });
  };
  EXPECT_EQ(refusal("1,1,1,1", {}), "accepted");
  EXPECT_THAT(refusal("1,3,1", {}), HasSubstr("h.csv:1: expert 1 has 3 of all choices"));
  EXPECT_THAT(refusal("1,1\n1,1\n1,1", {}), HasSubstr("h.csv:3: 3 of 2 GPUs"));
  EXPECT_THAT(refusal("1,1,1", {{"experts", 4}}), HasSubstr("experts contradicts the histogram"));
  EXPECT_THAT(refusal("1,1,1", {{"routing", 2}}), HasSubstr("routing contradicts the histogram"));
  EXPECT_THAT(refusal("1,1,1", {{"top_k", 4}}), HasSubstr("more than there are experts (3)"));
}

TEST(RoutingByHistogram, IsSoundAndRightForEveryPattern) {
  const HistogramFolder folder;
  const std::int64_t file = number_of_file(folder.write("h.csv", "3,0,4,2,1\n5,2,0,1,2\n0,1,0,0,1\n"));
  Machine machine = find_machine("h200-4");
  machine.gpu.cus_per_xcd = 8;
  machine.library.channels = 4;
  for (const Workload* workload : {&moe(), &expert_exchange()}) {
    for (const Pattern& pattern : workload->patterns) {
      Given given{{"tokens", 5}, {"hidden", 24}, {"histogram", file}, {"top_k", 2}, {"gpus", 3}};
      if (workload == &moe()) given["ffn"] = 20;
      const Problem problem = problem_with(*workload, given);
      Given knobs{{"comm_cus", 2}};
      if (workload == &moe()) knobs.insert({{"tile_m", 64}, {"tile_n", 16}, {"waves", 4}});
      EXPECT_EQ(what_is_wrong(pattern, problem, machine, knobs_with(problem, machine, knobs), 3, 1e-5), "")
          << workload->name << ' ' << pattern.name;
    }
  }
}

}  // namespace
}  // namespace tritax
