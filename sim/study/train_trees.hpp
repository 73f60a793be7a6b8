// Trains decision trees with scikit-learn: runs an embedded Python script (python/tritax/train_tree.py) on a
// table of problems, and reads the trees that it prints.
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
  std::int32_t leaf_examples = 10;     // fewest problems behind an answer
};

struct TrainedTrees {
  std::vector<TreeSelector> by_fold;  // each trained on all problems outside of its fold
  TreeSelector all;                   // trained on all problems
};

// `folds`: by row, below `fold_count`. Throws UserError if there is no Python with scikit-learn.
TrainedTrees train_trees(const TimedProblems& problems, std::span<const std::size_t> folds,
                         std::size_t fold_count, const TreeLimits& limits);

}  // namespace tritax
