// How good the choices of trained trees are, on problems outside of their training, against other ways to
// choose.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "sim/study/timed_problems.hpp"
#include "sim/study/train_trees.hpp"

namespace tritax {

// The score of one way to choose, over all problems. A choice that cannot run costs the time of the best
// single option; if that cannot run either, of the slowest option that can.
struct ChoiceScore {
  std::string name;
  std::size_t problems = 0;
  double right = 0;      // share of problems with the fastest option
  double within_5 = 0;   // … or with an option at most 5 % slower, the pass included
  double over_best = 1;  // geometric mean of its time over the fastest option's
  double worst = 1;      // the largest
  double over_baseline =
      0;  // geometric mean of the baseline's time over its own, for problems with a baseline; else NaN
  double gathered = 0;         // share of problems that paid for the pass
  std::size_t impossible = 0;  // choices that cannot run
  double sum_ns = 0;
};

struct TreeScores {
  std::vector<ChoiceScore> ways;  // trees first
  // Number of problems, by the fastest option, then by the tree's choice.
  std::vector<std::vector<std::size_t>> confusion;
  std::size_t best_single = 0;  // the option with the least geometric mean of times
};

// Every problem is decided by the selector of its fold.
TreeScores score_trees(const TimedProblems& problems, std::span<const std::size_t> folds,
                       std::span<const TreeSelector> by_fold);

}  // namespace tritax
