// Trains decision trees by scikit-learn: a script of Python that the program has inside
// (python/tritax/train_tree.py) is run on a table of problems, and its trees are read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/select/decision_tree.hpp"
#include "sim/study/timed_problems.hpp"

namespace tritax {

struct TreeLimits {
  std::int32_t depth = 6;              // most questions in a row
  std::optional<std::int32_t> leaves;  // most answers of a tree
  std::int32_t leaf_examples = 10;     // least problems behind an answer
};

struct TrainedTrees {
  std::vector<TreeSelector> by_fold;  // each trained on all problems but those of its fold
  TreeSelector all;                   // trained on all of them
};

// `folds`: of each row, below `fold_count`. Throws UserError when there is no Python with scikit-learn.
TrainedTrees train_trees(const TimedProblems& problems, std::span<const std::size_t> folds,
                         std::size_t fold_count, const TreeLimits& limits);

}  // namespace tritax
