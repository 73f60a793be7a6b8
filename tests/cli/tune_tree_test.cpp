// `tritax tune --selector tree`: trees from a table and from simulation, their scores, and `advise` by
// them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "model/select/decision_tree.hpp"
#include "tests/cli/run_tritax.hpp"

namespace tritax::test {
namespace {

using testing::HasSubstr;

bool has_scikit_learn() {
  static const bool has = std::system(
                              "python3 -c 'import sklearn' 2>/dev/null || "
                              "/usr/bin/python3 -c 'import sklearn' 2>/dev/null") == 0;
  return has;
}

// Where there are few entries the pass costs more than any choice; with many the longest row decides.
std::string irregular_table() {
  std::string text = "matrix,nnz,longest,csr_us,ell_us,gather_us\n";
  std::mt19937 random(3);
  std::uniform_real_distribution<double> share(0, 1);
  for (int i = 0; i < 400; ++i) {
    const double nnz = std::pow(10, 2 + 4 * share(random)), longest = 100 * share(random);
    const double unit = 1 + nnz / 1e4;
    text += fmt::format("m{},{:.0f},{:.0f},{:.3f},{:.3f},{:.3f}\n", i / 2, nnz, longest, unit,
                        longest > 60 ? 3 * unit : 0.5 * unit, 0.8 + nnz / 1e5);
  }
  return text;
}

constexpr const char* kIrregular =
    " --selector tree --times csr_us,ell_us --features nnz --gathered longest --gather-time gather_us "
    "--group matrix ";

const nlohmann::json& row_of(const nlohmann::json& answer, const std::string& name) {
  for (const nlohmann::json& row : answer["choices"]) {
    if (row["choice"].get<std::string>().find(name) != std::string::npos) return row;
  }
  throw std::runtime_error("no row " + name);
}

TEST(TuneTree, GathersWhereThePassPaysAndNotElsewhere) {
  if (!has_scikit_learn()) GTEST_SKIP() << "no scikit-learn";
  const ScratchDirectory folder;
  const std::string table = folder.write("times.csv", irregular_table());
  const std::string tree = folder.path("tree.json"), plot = folder.path("tree.svg"),
                    header = folder.path("tree.hpp");
  const Outcome outcome = run_tritax("tune " + table + kIrregular + "--json - --tree " + tree + " --plot " +
                                     plot + " --header " + header);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto answer = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(answer["groups"], 200);
  const auto& both = row_of(answer, "gathering where it pays");
  EXPECT_GT(both["gathered"].get<double>(), 0.2);
  EXPECT_LT(both["gathered"].get<double>(), 0.9);
  EXPECT_LT(both["over_best"].get<double>(), row_of(answer, "always gathering")["over_best"].get<double>());
  EXPECT_LT(both["over_best"].get<double>(),
            row_of(answer, "known features alone")["over_best"].get<double>());
  EXPECT_EQ(row_of(answer, "oracle")["over_best"], 1);
  const TreeSelector trees = TreeSelector::from_json(read_file(tree), tree);
  EXPECT_EQ(choose(trees, std::vector<double>{9e5, 90}).option, 0U);
  EXPECT_EQ(choose(trees, std::vector<double>{9e5, 10}).option, 1U);
  EXPECT_FALSE(choose(trees, std::vector<double>{200, 10}).gathered);
  EXPECT_EQ(read_file(header), trees.to_header("tritax_tuned"));
  EXPECT_THAT(read_file(plot), HasSubstr("Does a pass over the data pay?"));
}

// Which of two kernels is faster is chance; one of them is at times a hundred times slower.
TEST(TuneTree, AlwaysAnswersTheSameWhereTreesChooseWorse) {
  if (!has_scikit_learn()) GTEST_SKIP() << "no scikit-learn";
  const ScratchDirectory folder;
  std::string text = "x,steady_us,lucky_us\n";
  std::mt19937 random(5);
  for (int i = 0; i < 100; ++i) {
    const bool lucky = random() % 10 < 7;
    text += fmt::format("{},1,{}\n", random() % 1000, lucky ? 0.5 : 100);
  }
  const std::string table = folder.write("times.csv", text), tree = folder.path("tree.json");
  const Outcome outcome =
      run_tritax("tune " + table +
                 " --selector tree --times steady_us,lucky_us --features x --leaf-examples 1"
                 " --tree " +
                 tree);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("of all problems: always steady\n"));
  const TreeSelector trees = TreeSelector::from_json(read_file(tree), tree);
  ASSERT_EQ(trees.choose_known.nodes.size(), 1U);
  EXPECT_EQ(trees.choose_known.nodes[0].examples, 100);
}

TEST(TuneTree, KeepsItsLimits) {
  if (!has_scikit_learn()) GTEST_SKIP() << "no scikit-learn";
  const ScratchDirectory folder;
  const std::string table = folder.write("times.csv", irregular_table());
  const std::string tree = folder.path("tree.json");
  const Outcome outcome = run_tritax(
      "tune " + table +
      " --selector tree --times csr_us,ell_us --features nnz,longest,nnz/longest --folds 2 --depth 3 "
      "--leaves 4 --leaf-examples 5 --tree " +
      tree);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const TreeSelector trees = TreeSelector::from_json(read_file(tree), tree);
  EXPECT_LE(trees.choose_known.depth(), 3U);
  EXPECT_LE(trees.choose_known.leaves(), 4U);
  std::int64_t examples = 0;
  for (const TreeNode& node : trees.choose_known.nodes) {
    if (node.feature >= 0) continue;
    EXPECT_GE(node.examples, 5);
    examples += node.examples;
  }
  EXPECT_EQ(examples, 400);
}

TEST(TuneTree, AdviseTriesWhatTheTreeChoosesAndTheBaseline) {
  if (!has_scikit_learn()) GTEST_SKIP() << "no scikit-learn";
  const ScratchDirectory folder;
  const std::string tree = folder.path("tree.json");
  std::string scenarios = "[defaults]\nmachine = \"mi300x-8\"\nworkload = \"gemm-all-scatter\"\ngpus = 4\n";
  for (int m = 256; m <= 4096; m *= 2) {
    scenarios += fmt::format("[[scenario]]\nid = \"rows {0}\"\nm = {0}\nn = 1024\nk = 512\n", m);
  }
  const std::string file = folder.write("rows.toml", scenarios);
  const Outcome learnt = run_tritax(
      "tune " + file +
      " --selector tree --features m --gathered flops/bytes --gather-time 1us --folds 2 --leaf-examples 2 "
      "--tree " +
      tree);
  ASSERT_EQ(learnt.exit_code, 0) << learnt.err;
  const Outcome outcome =
      run_tritax("advise -M 512 -N 1024 -K 512 --gpus 4 --machine mi300x-8 --json - --selector " + tree);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto answer = nlohmann::json::parse(outcome.out);
  EXPECT_LE(answer["candidates"].size(), 2U);
  EXPECT_GE(answer["not_simulated"].size(), 1U);
  EXPECT_THAT(answer["choice"].get<std::string>(), HasSubstr("tree.json chose "));
  const Outcome other =
      run_tritax("advise --workload all-gather --gpus 4 --machine mi300x-8 --selector " + tree);
  EXPECT_EQ(other.exit_code, 2);
}

TEST(TuneTree, SaysWhatDoesNotGoTogether) {
  const ScratchDirectory folder;
  const std::string table = folder.write("times.csv", "x,a_us,b_us\n1,2,3\n2,3,4\n");
  for (const auto& [arguments, message] : std::vector<std::pair<std::string, std::string>>{
           {table, "give --selector tree"},
           {table + " --selector bush", "bush"},
           {table + " --selector tree", "--times: missing"},
           {table + " --selector tree --times a_us,b_us", "--features: missing"},
           {table + " --selector tree --times a_us,b_us --features y", "has no column 'y'"},
           {table + " --selector tree --times a_us,b_us --features x --folds 3", "--folds: 2 groups"},
           {table + " --selector tree --times a_us,b_us --features x --machine h100-4",
            "--machine: a table has its own times"},
           {table + " --selector tree --times a_us,b_us --features x --vary tile=64x64x64",
            "--vary: a table"},
           {"llm --depth 3", "--depth: only decision trees"},
           {"llm --selector tree --machine mi300x-8 --features length", "there is no 'length'"},
           {"llm --selector tree --machine mi300x-8 --times a_us", "--times: only a table"},
           {"llm --selector tree --machine mi300x-8 --vary size=3", "is not a knob"},
           {"llm --selector tree --machine mi300x-8 --gathered m", "--gather-time: missing"},
           {"llm --selector tree --machine mi300x-8 --gathered m --gather-time soon", "'soon' is not a time"},
           {"--corpus stream-k --selector tree --gathered m --gather-time 1us", "--gathered: corpora"},
           {"--corpus stream-k --selector tree --sieve s.json", "--sieve: only a sieve"}}) {
    const Outcome outcome = run_tritax("tune " + arguments);
    EXPECT_EQ(outcome.exit_code, 2) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr(message)) << arguments;
  }
}

}  // namespace
}  // namespace tritax::test
