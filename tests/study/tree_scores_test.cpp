// Training tables of trees and scores of their choices: refusals, folds, charges.
#include "sim/study/tree_scores.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>

#include "model/core/error.hpp"
#include "model/select/selector.hpp"

namespace tritax {
namespace {

using testing::HasSubstr;

class TimesTable : public testing::Test {
 protected:
  TimesTable() : path_((std::filesystem::temp_directory_path() / "tritax-times-test.csv").string()) {}
  ~TimesTable() override { std::filesystem::remove(path_); }

  TimedProblems read(const std::string& text) {
    std::ofstream(path_) << text;
    return read_timed_problems(path_, columns);
  }
  std::string refusal_of(const std::string& text) {
    try {
      read(text);
    } catch (const UserError& error) {
      return error.what();
    }
    return "none";
  }

  std::string path_;
  TimesColumns columns{{"a_us", "b_ms"}, {"rows", "nnz/rows"}, {}, "", "matrix", "rule", "lib_us"};
};

constexpr const char* kTwoRows =
    "matrix,rows,nnz,a_us,b_ms,lib_us,rule\nx,10,40,3,0.002,9,a\nx,20,40,,0.004,8,b\n";

TEST_F(TimesTable, ReadsUnitsFeaturesAndWhatCannotRun) {
  const TimedProblems problems = read(kTwoRows);
  ASSERT_EQ(problems.rows.size(), 2U);
  EXPECT_EQ(problems.options, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(problems.rows[0].features, (std::vector<double>{10, 4}));
  EXPECT_EQ(problems.rows[0].time_ns, (std::vector<double>{3000, 2000}));
  EXPECT_EQ(problems.rows[1].time_ns[0], kNever);
  EXPECT_EQ(problems.rows[1].heuristic, 1U);
  EXPECT_EQ(problems.rows[0].baseline_ns, 9000);
  EXPECT_EQ(problems.groups, 1U);  // one matrix
}

TEST_F(TimesTable, RefusesWhatItCannotUse) {
  EXPECT_THAT(refusal_of("matrix,rows,nnz,a_us,b_ms,lib_us,rule\nx,1,2,3,4,5,c\n"),
              HasSubstr(":2: column 'rule'"));
  EXPECT_THAT(refusal_of("matrix,rows,nnz,a_us,b_ms,lib_us,rule\nx,1,2,-3,4,5,a\n"),
              HasSubstr("column 'a_us': '-3'"));
  EXPECT_THAT(refusal_of("matrix,rows,a_us,b_ms,lib_us,rule\nx,1,3,4,5,a\n"),
              HasSubstr("has no column 'nnz'"));
  columns.times = {"a_us", "rows"};
  EXPECT_THAT(refusal_of(kTwoRows), HasSubstr("does not say its unit"));
  columns.times = {"a_us", "b(2)_us"};
  EXPECT_THAT(refusal_of(kTwoRows), HasSubstr("--times: 'b(2)_us' cannot be the name"));
  columns.times = {"a_us"};
  EXPECT_THAT(refusal_of(kTwoRows), HasSubstr("at least two"));
  columns.times = {"a_us", "b_ms"};
  columns.gathered = {"nnz"};
  EXPECT_THAT(refusal_of(kTwoRows), HasSubstr("--gather-time: missing"));
  columns.gather_time = "3 parsecs";
  EXPECT_THAT(refusal_of(kTwoRows), HasSubstr("is not a time"));
  columns.gather_time = "3us";
  EXPECT_EQ(read(kTwoRows).rows[1].gather_ns, 3000);
}

// Option 0 is best for x <= 1 and 1 above; a pass finds y, which tells nothing.
TimedProblems two_kinds() {
  TimedProblems problems;
  problems.options = {"a", "b"};
  problems.known = {"x"};
  problems.gathered = {"y"};
  for (std::size_t i = 0; i < 4; ++i) {
    TimedProblem& row = problems.rows.emplace_back();
    row.features = {static_cast<double>(i), 0};
    row.time_ns = i <= 1 ? std::vector<double>{100, 200} : std::vector<double>{400, 100};
    row.gather_ns = 50;
    row.group = i;
    row.baseline_ns = 400;
  }
  problems.rows[3].time_ns[0] = kNever;
  problems.groups = 4;
  return problems;
}

TreeSelector always(const TimedProblems& problems, std::int32_t known, std::int32_t gather,
                    std::int32_t all) {
  TreeSelector trees;
  trees.options = problems.options;
  trees.known = problems.known;
  trees.gathered = problems.gathered;
  const auto leaf = [](std::int32_t answer) { return DecisionTree{{TreeNode{-1, 0, 0, 0, answer, 1}}}; };
  trees.choose_known = leaf(known);
  trees.gather_first = leaf(gather);
  trees.choose_all = leaf(all);
  return trees;
}

TEST(TreeScores, ChargeThePassAndWhatCannotRun) {
  const TimedProblems problems = two_kinds();
  const std::vector<std::size_t> folds(4, 0);
  const std::vector<TreeSelector> gathers{always(problems, 1, 1, 0)};
  const TreeScores scores = score_trees(problems, folds, gathers);
  EXPECT_EQ(scores.best_single, 1U);
  const ChoiceScore& trees = scores.ways[0];
  EXPECT_EQ(trees.gathered, 1);
  EXPECT_EQ(trees.impossible, 1U);  // what cannot run is followed by the best single option
  EXPECT_EQ(trees.right, 0.5);
  EXPECT_EQ(trees.within_5, 0);  // the pass is half of the best time
  EXPECT_NEAR(trees.over_best, std::pow(1.5 * 1.5 * 4.5 * 1.5, 0.25), 1e-12);
  EXPECT_NEAR(trees.sum_ns, 150 + 150 + 450 + 150, 1e-9);
  const ChoiceScore& blind = scores.ways[1];
  EXPECT_NEAR(blind.over_best, std::sqrt(2), 1e-12);
  EXPECT_NEAR(blind.over_baseline, std::pow(2 * 2 * 4 * 4, 0.25), 1e-12);
  EXPECT_EQ(scores.ways.back().name, "oracle");
  EXPECT_EQ(scores.ways.back().over_best, 1);
  EXPECT_EQ(scores.confusion, (std::vector<std::vector<std::size_t>>{{2, 0}, {2, 0}}));
}

RC_GTEST_PROP(TreeFoldLaws, AGroupIsInOneFoldAndFoldsAreEven, ()) {
  const auto folds = *rc::gen::inRange<std::size_t>(2, 8);
  TimedProblems problems;
  problems.groups = folds + *rc::gen::inRange<std::size_t>(0, 40);
  for (std::size_t i = 0; i < 3 * problems.groups; ++i)
    problems.rows.emplace_back().group = i % problems.groups;
  const std::vector<std::size_t> of_row = folds_of(problems, folds, *rc::gen::arbitrary<std::uint64_t>());
  std::map<std::size_t, std::set<std::size_t>> groups_of_fold;
  std::map<std::size_t, std::set<std::size_t>> folds_of_group;
  for (std::size_t i = 0; i < of_row.size(); ++i) {
    groups_of_fold[of_row[i]].insert(problems.rows[i].group);
    folds_of_group[problems.rows[i].group].insert(of_row[i]);
  }
  for (const auto& [group, its] : folds_of_group) RC_ASSERT(its.size() == 1);
  RC_ASSERT(groups_of_fold.size() == folds);
  for (const auto& [fold, its] : groups_of_fold) {
    RC_ASSERT(its.size() == problems.groups / folds || its.size() == problems.groups / folds + 1);
  }
}

}  // namespace
}  // namespace tritax
