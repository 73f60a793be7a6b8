// How good the choices of trained trees are, on problems that they have not seen, beside what else one could
// do.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "sim/study/timed_problems.hpp"
#include "sim/study/train_trees.hpp"

namespace tritax {

// Of one way to choose, over all problems. A choice that cannot run is followed by the best single option,
// whose time is charged; where that cannot either, the slowest that can.
struct ChoiceScore {
  std::string name;
  std::size_t problems = 0;
  double right = 0;      // share of problems with the fastest option
  double within_5 = 0;   // … or one at most 5 % slower, the pass included
  double over_best = 1;  // geometric mean of its time over the fastest option's
  double worst = 1;      // the largest
  double over_baseline =
      0;                // geometric mean of the baseline's time over its own, where there is one; else NaN
  double gathered = 0;  // share of problems that paid for the pass
  std::size_t impossible = 0;  // choices that cannot run
  double sum_ns = 0;
};

struct TreeScores {
  std::vector<ChoiceScore> ways;  // trees first
  // By the fastest option, then by the tree's choice: how many problems.
  std::vector<std::vector<std::size_t>> confusion;
  std::size_t best_single = 0;  // the option with the least geometric mean of times
};

// Every problem by the selector of its fold.
TreeScores score_trees(const TimedProblems& problems, std::span<const std::size_t> folds,
                       std::span<const TreeSelector> by_fold);

}  // namespace tritax
