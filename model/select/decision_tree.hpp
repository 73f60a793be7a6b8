// Selects the option to run for a problem by readable decision trees, as Seer does (arXiv:2403.17017) for
// irregular problems: some features of the data are known without cost, others cost a pass over the data.
//
//   if gather_first(known):  choose_all(known, gathered)     its time and the pass are paid
//   else:                    choose_known(known)             its time is paid
//
// Only the abstract of the paper is public; the three trees are this project's interpretation. Without
// gathered features there is only choose_known. sim/study/train_trees.hpp trains the trees; this file
// evaluates them.
//
//   Example: options csr, ell; known rows, nnz/rows. The tree
//     nnz/rows <= 12 ? (rows <= 5000 ? csr : ell) : csr
//   chooses ell for 9,000 rows of 10 entries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tritax {

// A question (feature >= 0) or an answer. `yes` and `no` are greater than the node's own number, so every
// walk ends.
struct TreeNode {
  int feature = -1;           // index of the feature; -1: the node is an answer
  double most = 0;            // yes: the feature is at most this
  std::int32_t yes = 0;       // next node if true
  std::int32_t no = 0;        // next node if false
  std::int32_t answer = 0;    // index of the option
  std::int64_t examples = 0;  // problems of the training set that reach the node
};

struct DecisionTree {
  std::vector<TreeNode> nodes;  // every walk begins at the first

  std::size_t answer(std::span<const double> features) const;
  // The questions of the walk with their answers: "nnz <= 9985, rows > 12".
  std::string path(std::span<const double> features, std::span<const std::string> names) const;
  std::size_t leaves() const;
  std::size_t depth() const;  // most questions of a walk; 0: always the same answer
};

// A feature is a name ("nnz") or a product and quotient of names, from the left ("m*n/k"). A quotient by 0 is
// 0. `of` returns the value of a name.
double feature_value(std::string_view feature, const std::function<double(std::string_view)>& of);
// The names in a feature, in order. Throws UserError that begins with `place` for an invalid feature.
std::vector<std::string> names_in_feature(std::string_view feature, const std::string& place);

// Whether a text is a valid name of an option, also in a comment and between quotation marks of a header:
// letters, digits, blanks and -=.,+/_
bool is_option_name(std::string_view text);

struct TreeSelector {
  std::string workload;  // workload of the problems; "": kernels of a table of times
  std::string machine;   // machine of the learnt times; "": unknown
  std::vector<std::string> options;
  std::vector<std::string> known;     // features without cost
  std::vector<std::string> gathered;  // features that cost a pass; may be empty
  DecisionTree choose_known;
  std::optional<DecisionTree> gather_first;  // answers: 0 no, 1 yes; present if `gathered` is not empty
  std::optional<DecisionTree> choose_all;    // features: known, then gathered

  // {"schema": "tritax.tree/1", "workload", "machine", "options", "known", "gathered", "choose_known":
  // [node…], "gather_first", "choose_all"}; a node is {"feature", "most", "yes", "no"} or {"answer",
  // "examples"}.
  std::string to_json() const;
  // Throws UserError for anything that to_json does not write.
  static TreeSelector from_json(std::string_view text, const std::string& origin);

  // A C++17 header without dependences, with `choose(known, gather)` in namespace `name`, an identifier.
  std::string to_header(const std::string& name) const;
};

struct TreeChoice {
  std::size_t option = 0;
  bool gathered = false;  // the pass over the data was made
};

// `features`: known features, then gathered features, which are read only if the trees ask for the pass.
TreeChoice choose(const TreeSelector& selector, std::span<const double> features);

}  // namespace tritax
