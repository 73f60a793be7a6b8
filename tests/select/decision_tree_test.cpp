// Decision trees: evaluation, features, JSON and its refusals, the header that kernel libraries compile.
#include "model/select/decision_tree.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "model/core/error.hpp"

namespace tritax {
namespace {

TreeNode question(int feature, double most, std::int32_t yes, std::int32_t no) {
  TreeNode node;
  node.feature = feature;
  node.most = most;
  node.yes = yes;
  node.no = no;
  return node;
}

TreeNode leaf(std::int32_t answer, std::int64_t examples) {
  TreeNode node;
  node.answer = answer;
  node.examples = examples;
  return node;
}

// The example of the header.
TreeSelector csr_or_ell() {
  TreeSelector trees;
  trees.options = {"csr", "ell"};
  trees.known = {"rows", "nnz/rows"};
  trees.choose_known.nodes = {question(1, 12, 1, 4), question(0, 5000, 2, 3), leaf(0, 7), leaf(1, 9),
                              leaf(0, 30)};
  return trees;
}

// It gathers what has many entries, and then the longest row decides.
TreeSelector two_stages() {
  TreeSelector trees = csr_or_ell();
  trees.gathered = {"longest", "longest*rows/nnz"};
  trees.gather_first = DecisionTree{{question(0, 1000.5, 1, 2), leaf(0, 20), leaf(1, 26)}};
  trees.choose_all = DecisionTree{{question(3, 2.25, 1, 2), leaf(1, 10), leaf(0, 16)}};
  return trees;
}

TEST(DecisionTree, AsksUntilItHasAnAnswer) {
  const TreeSelector trees = csr_or_ell();
  EXPECT_EQ(choose(trees, std::vector<double>{9000, 10}).option, 1U);
  EXPECT_EQ(choose(trees, std::vector<double>{5000, 12}).option, 0U);  // at most
  EXPECT_EQ(choose(trees, std::vector<double>{9000, 12.1}).option, 0U);
  EXPECT_EQ(trees.choose_known.leaves(), 3U);
  EXPECT_EQ(trees.choose_known.depth(), 2U);
  EXPECT_EQ(trees.choose_known.path(std::vector<double>{9000, 10}, trees.known),
            "nnz/rows <= 12, rows > 5000");
}

TEST(DecisionTree, LooksAtGatheredFeaturesOnlyWhereThatPays) {
  const TreeSelector trees = two_stages();
  const TreeChoice blind = choose(trees, std::vector<double>{900, 10, -1, -1});
  EXPECT_FALSE(blind.gathered);
  const TreeChoice informed = choose(trees, std::vector<double>{9000, 10, 30, 3});
  EXPECT_TRUE(informed.gathered);
  EXPECT_EQ(informed.option, 0U);
}

TEST(DecisionTree, FeaturesMultiplyAndDivideFromTheLeft) {
  const auto of = [](std::string_view name) { return name == "m" ? 6.0 : name == "n" ? 4.0 : 0.0; };
  EXPECT_EQ(feature_value("m", of), 6);
  EXPECT_EQ(feature_value("m*n/m", of), 4);
  EXPECT_EQ(feature_value("m/n*n", of), 6);
  EXPECT_EQ(feature_value("m/k", of), 0);
  for (const char* bad : {"", "m//n", "*m", "m/", "m+n", "m n"}) {
    EXPECT_THROW(names_in_feature(bad, "--features: "), UserError) << bad;
  }
}

TEST(DecisionTree, JsonIsReadAsItWasWritten) {
  for (const TreeSelector& trees : {csr_or_ell(), two_stages()}) {
    const TreeSelector again = TreeSelector::from_json(trees.to_json(), "t.json");
    EXPECT_EQ(again.to_json(), trees.to_json());
    EXPECT_EQ(again.to_header("t"), trees.to_header("t"));
  }
}

TEST(DecisionTree, RefusesJsonThatIsNone) {
  const std::string good = two_stages().to_json();
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"tree/1", "tree/2"},             // another schema
           {"\"yes\": 1", "\"yes\": 0"},     // a walk that would never end
           {"\"no\": 4", "\"no\": 99"},      // no such node
           {"\"no\": 4", "\"no\": 3"},       // a node with two before it, and one with none
           {"\"ell\"", "\"e\\\"l\""},        // no name for a header
           {"\"csr\"", "\"coo\""},           // an answer that is no option
           {"\"longest\"", "\"long est\""},  // no feature
           {"choose_all", "choose_any"}}) {
    std::string bad = good;
    const std::size_t at = bad.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    EXPECT_THROW(TreeSelector::from_json(bad.replace(at, from.size(), to), "t.json"), UserError) << from;
  }
  EXPECT_THROW(TreeSelector::from_json(good.substr(0, good.size() / 2), "t.json"), UserError);
}

// A random tree of full depth, its features below 100 halves.
DecisionTree random_tree(int depth, int features, int answers) {
  DecisionTree tree;
  const int inner = (1 << depth) - 1;
  for (int i = 0; i < 2 * inner + 1; ++i) {
    if (i < inner) {
      tree.nodes.push_back(
          question(*rc::gen::inRange(0, features), *rc::gen::inRange(0, 100) / 2.0, 2 * i + 1, 2 * i + 2));
    } else {
      tree.nodes.push_back(leaf(*rc::gen::inRange(0, answers), 1));
    }
  }
  return tree;
}

RC_GTEST_PROP(DecisionTreeLaws, ReadBackAnswersTheSame, ()) {
  TreeSelector trees;
  trees.options = {"a", "b", "c"};
  trees.known = {"x", "y", "x*y"};
  trees.choose_known = random_tree(*rc::gen::inRange(0, 5), 3, 3);
  const TreeSelector again = TreeSelector::from_json(trees.to_json(), "t.json");
  for (int i = 0; i < 20; ++i) {
    const std::vector<double> features{*rc::gen::inRange(0, 100) / 2.0, *rc::gen::inRange(0, 100) / 2.0,
                                       *rc::gen::inRange(0, 100) / 2.0};
    RC_ASSERT(choose(again, features).option == choose(trees, features).option);
    // The path names as many questions as were asked, none of which is asked beyond the depth.
    const std::string path = trees.choose_known.path(features, trees.known);
    const auto asked =
        path.empty() ? 0U : 1U + static_cast<std::size_t>(std::count(path.begin(), path.end(), ','));
    RC_ASSERT(asked <= trees.choose_known.depth());
  }
}

TEST(DecisionTree, TheHeaderCompilesAloneAndSaysTheSame) {
  const TreeSelector trees = two_stages();
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / fmt::format("tritax-tree-{}", ::getpid());
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "tree.hpp") << trees.to_header("tuned");
  std::string program = "#include \"tree.hpp\"\n#include \"tree.hpp\"\nint main() {\n  int passes = 0;\n";
  int passes = 0;
  for (int i = 0; i < 40; ++i) {
    const double rows = 250.0 * i, nnz = rows * (i % 7 + 8), longest = 3.0 * i;
    const double per_row = rows == 0 ? 0 : nnz / rows;
    const TreeChoice chosen =
        choose(trees, std::vector<double>{rows, per_row, longest, nnz == 0 ? 0 : longest * rows / nnz});
    passes += chosen.gathered;
    program += fmt::format(
        "  if (tuned::choose({{{}, {}}}, [&] {{ ++passes; return tuned::Gathered{{{}, {}, {}}}; }}) "
        "!= {}) return {};\n",
        rows, nnz, longest, rows, nnz, chosen.option, i + 1);
  }
  EXPECT_GT(passes, 0);
  std::ofstream(folder / "main.cpp") << program << "  return passes == " << passes << " ? 0 : 99;\n}\n";
  const std::string path = (folder / "main").string();
  const std::string command =
      fmt::format("'{}' -std=c++17 -Wall -Wextra -Wconversion -Werror -o '{}' '{}.cpp' && '{}'",
                  TRITAX_CXX_COMPILER, path, path, path);
  EXPECT_EQ(std::system(command.c_str()), 0) << command << '\n' << trees.to_header("tuned");
  std::filesystem::remove_all(folder);
}

TEST(DecisionTree, TheHeaderNamesTheMachineWhoseTimesWereLearnt) {
  TreeSelector trees = csr_or_ell();
  trees.machine = "4x H200\nint broken = 1; // \\";
  EXPECT_NE(trees.to_header("t").find("// Learnt from times of 4x H200 int broken = 1; //  .\n"),
            std::string::npos)
      << trees.to_header("t");
  trees.machine.clear();
  EXPECT_EQ(trees.to_header("t").find("Learnt"), std::string::npos);
}

}  // namespace
}  // namespace tritax
