// Writes decision trees as readable C++ headers for kernel libraries.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "model/select/decision_tree.hpp"

namespace tritax {

namespace {

constexpr const char* kNameNote = "Names of features, as they are in what was learnt from";

// A name may begin with a digit or be a keyword of C++; the member gets an underscore, and an "n" before a
// digit.
std::string member_of(std::string_view name) {
  const bool digit = name.front() >= '0' && name.front() <= '9';
  return fmt::format("{}{}_", digit ? "n" : "", name);
}

// The names of some features, each once.
std::vector<std::string> members_of(std::span<const std::string> features) {
  std::vector<std::string> members;
  for (const std::string& feature : features) {
    for (const std::string& name : names_in_feature(feature, "")) {
      const std::string member = member_of(name);
      if (std::find(members.begin(), members.end(), member) == members.end()) members.push_back(member);
    }
  }
  return members;
}

// "over(known.nnz_, known.rows_)"
std::string value_text(std::string_view feature, const std::string& of) {
  std::string text;
  char operation = ' ';
  while (true) {
    const std::size_t end = std::min(feature.find_first_of("*/"), feature.size());
    const std::string factor = of + member_of(feature.substr(0, end));
    if (operation == ' ') text = factor;
    if (operation == '*') text += " * " + factor;
    if (operation == '/') text = fmt::format("over({}, {})", text, factor);
    if (end == feature.size()) return text;
    operation = feature[end];
    feature.remove_prefix(end + 1);
  }
}

class TreeWriter {
 public:
  TreeWriter(const TreeSelector& selector, const DecisionTree& tree, bool options)
      : selector_(selector), tree_(tree), options_(options) {}

  std::string text() {
    write(0, "  ");
    return std::move(text_);
  }

 private:
  std::string value(std::size_t feature) const {
    const std::size_t known = selector_.known.size();
    if (feature < known) return value_text(selector_.known[feature], "known.");
    return value_text(selector_.gathered[feature - known], "gathered.");
  }

  void write(std::size_t at, const std::string& indent) {
    const TreeNode& node = tree_.nodes[at];
    if (node.feature < 0) {
      const auto answer = static_cast<std::size_t>(node.answer);
      const std::string meaning = options_ ? selector_.options[answer] : answer == 1 ? "gather" : "choose";
      text_ += options_ ? fmt::format("{}return {};", indent, answer)
                        : fmt::format("{}return {};", indent, answer == 1);
      text_ += fmt::format("  // {}: {} examples\n", meaning, node.examples);
      return;
    }
    text_ += fmt::format("{}if ({} <= {}) {{\n", indent, value(static_cast<std::size_t>(node.feature)),
                         literal(node.most));
    write(static_cast<std::size_t>(node.yes), indent + "  ");
    text_ += fmt::format("{}}}\n", indent);
    write(static_cast<std::size_t>(node.no), indent);
  }

  static std::string literal(double value) {
    std::string text = fmt::format("{}", value);
    if (text.find_first_of(".e") == std::string::npos) text += ".0";
    return text;
  }

  const TreeSelector& selector_;
  const DecisionTree& tree_;
  bool options_;
  std::string text_;
};

// The name of a machine may contain any text of its file; the result stays inside a comment.
std::string in_comment(std::string text) {
  for (char& letter : text) {
    if (static_cast<unsigned char>(letter) < ' ' || letter == '\\') letter = ' ';
  }
  return text;
}

std::string struct_text(const char* name, const char* meaning, const std::vector<std::string>& members) {
  std::string text = fmt::format("// {}\nstruct {} {{\n", meaning, name);
  for (const std::string& member : members) text += fmt::format("  double {};\n", member);
  return text + "};\n\n";
}

}  // namespace

std::string TreeSelector::to_header(const std::string& name) const {
  std::string text = fmt::format("// Written by tritax tune. {}, with an underscore.\n", kNameNote);
  if (!machine.empty()) text += fmt::format("// Learnt from times of {}.\n", in_comment(machine));
  text += "#pragma once\n\n";
  text += fmt::format("namespace {} {{\n\n", name);
  text += fmt::format("inline constexpr const char* kOptionNames[] = {{\"{}\"}};\n\n",
                      fmt::join(options, "\", \""));
  text += struct_text("Known", "Known without a look at the data.", members_of(known));
  if (gather_first) text += struct_text("Gathered", "What a pass over the data finds.", members_of(gathered));
  text += "inline double over(double a, double b) { return b == 0 ? 0 : a / b; }\n\n";
  text +=
      "// Which of kOptionNames to run.\ninline int choose_known([[maybe_unused]] const Known& known) {\n";
  text += TreeWriter(*this, choose_known, true).text() + "}\n\n";
  if (!gather_first) return text + fmt::format("}}  // namespace {}\n", name);
  text += "// Whether the pass is worth its time.\n";
  text += "inline bool gather_first([[maybe_unused]] const Known& known) {\n";
  text += TreeWriter(*this, *gather_first, false).text() + "}\n\n";
  text +=
      "inline int choose_all([[maybe_unused]] const Known& known, [[maybe_unused]] const Gathered& gathered) "
      "{\n";
  text += TreeWriter(*this, *choose_all, true).text() + "}\n\n";
  text +=
      "// `gather` makes the pass and returns Gathered; called only where that pays.\n"
      "template <typename Gather>\n"
      "int choose(const Known& known, Gather&& gather) {\n"
      "  return gather_first(known) ? choose_all(known, gather()) : choose_known(known);\n"
      "}\n\n";
  return text + fmt::format("}}  // namespace {}\n", name);
}

}  // namespace tritax
