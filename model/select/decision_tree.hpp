// Which option to run for a problem, by decision trees that people can read: Seer's idea (arXiv:2403.17017)
// for irregular problems, where some features of the data are known for nothing and others cost a pass.
//
//   if gather_first(known):  choose_all(known, gathered)     its time and the pass are paid
//   else:                    choose_known(known)             its time is paid
//
// The paper's abstract alone is public; the three trees are what this project makes of it. Without gathered
// features there is the one tree. Trees are trained elsewhere (sim/study/train_trees.hpp) and evaluated here.
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

// A question (feature >= 0) or an answer. Questions are asked before their followers: yes and no are greater
// than the node's own number, so every walk ends.
struct TreeNode {
  int feature = -1;           // index of the feature asked about; -1: this is an answer
  double most = 0;            // yes: the feature is at most this
  std::int32_t yes = 0;       // node to go on with
  std::int32_t no = 0;        // …
  std::int32_t answer = 0;    // index of the option
  std::int64_t examples = 0;  // problems of the training set that came here
};

struct DecisionTree {
  std::vector<TreeNode> nodes;  // the first is where every walk begins

  std::size_t answer(std::span<const double> features) const;
  // The questions on the way, as they were answered: "nnz <= 9985, rows > 12".
  std::string path(std::span<const double> features, std::span<const std::string> names) const;
  std::size_t leaves() const;
  std::size_t depth() const;  // most questions on a walk; 0: always the same answer
};

// A feature is a name ("nnz") or a product and quotient of names, from the left ("m*n/k"). What is divided by
// 0 counts as 0. `of` says the value of a name.
double feature_value(std::string_view feature, const std::function<double(std::string_view)>& of);
// The names in a feature, in order. Throws UserError that begins with `place` for what is no feature.
std::vector<std::string> names_in_feature(std::string_view feature, const std::string& place);

// Whether an option may be called so, in a comment and between quotation marks of a header too: letters,
// digits, blanks and -=.,+/_
bool is_option_name(std::string_view text);

struct TreeSelector {
  std::string workload;  // whose problems these are; "": kernels of a table of times
  std::string machine;   // whose times were learnt; "": not known
  std::vector<std::string> options;
  std::vector<std::string> known;     // features for nothing
  std::vector<std::string> gathered;  // features that cost a pass; may be empty
  DecisionTree choose_known;
  std::optional<DecisionTree> gather_first;  // answers: 0 no, 1 yes; there if anything is gathered
  std::optional<DecisionTree> choose_all;    // of known features, then gathered ones

  // {"schema": "tritax.tree/1", "workload", "machine", "options", "known", "gathered", "choose_known":
  // [node…], "gather_first", "choose_all"}; a node is {"feature", "most", "yes", "no"} or {"answer",
  // "examples"}.
  std::string to_json() const;
  // Throws UserError for anything that to_json does not write.
  static TreeSelector from_json(std::string_view text, const std::string& origin);

  // A C++17 header without dependences that has `choose(known, gather)` in namespace `name`, an identifier.
  std::string to_header(const std::string& name) const;
};

struct TreeChoice {
  std::size_t option = 0;
  bool gathered = false;  // the pass was worth its time
};

// `features`: known ones, then gathered ones, which are looked at only if the trees ask for the pass.
TreeChoice choose(const TreeSelector& selector, std::span<const double> features);

}  // namespace tritax
