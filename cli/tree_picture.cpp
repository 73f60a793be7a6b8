#include "cli/tree_picture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "cli/svg.hpp"

namespace tritax::cli {

namespace {

constexpr double kTreeLeft = 24;
constexpr double kTreeHead = 76;
constexpr double kTreeRow = 30;        // per answer
constexpr double kTreeQuestion = 190;  // distance from a question to its followers
constexpr double kTreeAnswer = 330;    // width of answers' texts
constexpr double kTreeBox = 22;        // height of a question's box
constexpr double kTreeTitle = 34;
constexpr double kTreeLetter = 6.6;  // per letter, at the size of the texts

class TreePicture {
 public:
  TreePicture(const DecisionTree& tree, std::vector<std::string> features, std::vector<std::string> answers,
              double top)
      : tree_(tree),
        features_(std::move(features)),
        answers_(std::move(answers)),
        next_(top + kTreeRow / 2) {}

  // The whole picture; `bottom` is the start of the next picture.
  std::string draw(double& bottom) {
    place(0, 0);
    bottom = next_ + kTreeRow / 2;
    return lines_ + texts_;
  }

 private:
  static double x_of(std::size_t depth) { return kTreeLeft + kTreeQuestion * static_cast<double>(depth); }

  // Height of a node: answers stand one below the other, a question between its followers.
  double place(std::size_t at, std::size_t depth) {
    const TreeNode& node = tree_.nodes[at];
    if (node.feature < 0) {
      const double y = next_;
      next_ += kTreeRow;
      answer(node, x_of(depth), y);
      return y;
    }
    const double yes = place(static_cast<std::size_t>(node.yes), depth + 1);
    const double no = place(static_cast<std::size_t>(node.no), depth + 1);
    const double y = (yes + no) / 2;
    question(node, x_of(depth), y);
    edge(x_of(depth), y, yes, "yes");
    edge(x_of(depth), y, no, "no");
    return y;
  }

  void question(const TreeNode& node, double x, double y) {
    const std::string text =
        fmt::format("{} ≤ {:.6g}", features_[static_cast<std::size_t>(node.feature)], node.most);
    texts_ += fmt::format(
        "<rect x=\"{:g}\" y=\"{:.1f}\" width=\"{:g}\" height=\"{:g}\" rx=\"4\" fill=\"#eef3f8\" "
        "stroke=\"#5a7\"/>\n",
        x, y - kTreeBox / 2, kTreeQuestion - 34, kTreeBox);
    const double room = kTreeQuestion - 42;
    const bool long_text = kTreeLetter * static_cast<double>(text.size()) > room;
    texts_ += fmt::format(
        "<text x=\"{:g}\" y=\"{:.1f}\" font-size=\"12\"{}>{}</text>\n", x + 6, y + 4,
        long_text ? fmt::format(" textLength=\"{:g}\" lengthAdjust=\"spacingAndGlyphs\"", room) : "",
        escaped(text));
  }

  void answer(const TreeNode& node, double x, double y) {
    const auto answer = static_cast<std::size_t>(node.answer);
    texts_ += fmt::format("<rect x=\"{:g}\" y=\"{:.1f}\" width=\"9\" height=\"9\" fill=\"{}\"/>\n", x, y - 5,
                          colour_of(answer));
    texts_ += fmt::format(
        "<text x=\"{:g}\" y=\"{:.1f}\" font-size=\"12\">{} <tspan fill=\"#777\">({})</tspan></text>\n",
        x + 15, y + 4, escaped(answers_[answer]), node.examples);
  }

  void edge(double x, double y, double to, const char* word) {
    const double from = x + kTreeQuestion - 34;
    lines_ += fmt::format(
        "<path d=\"M{0:g} {1:.1f} C{2:g} {1:.1f} {2:g} {3:.1f} {4:g} {3:.1f}\" fill=\"none\" "
        "stroke=\"#999\"/>\n",
        from, y, from + 17, to, from + 34);
    texts_ += fmt::format(
        "<text x=\"{:g}\" y=\"{:.1f}\" font-size=\"10\" fill=\"#777\" text-anchor=\"end\">{}</text>\n",
        from + 32, to + (to < y ? -4 : 12), word);
  }

  const DecisionTree& tree_;
  std::vector<std::string> features_;
  std::vector<std::string> answers_;
  double next_;
  std::string lines_, texts_;
};

}  // namespace

std::string tree_picture(const TreeSelector& trees, const std::string& title, const std::string& subtitle) {
  std::vector<std::string> all = trees.known;
  all.insert(all.end(), trees.gathered.begin(), trees.gathered.end());
  std::string body;
  double y = kTreeHead;
  std::size_t depth = 0;
  const auto add = [&](const char* heading, const DecisionTree& tree,
                       const std::vector<std::string>& features, const std::vector<std::string>& answers) {
    if (trees.gather_first) {
      body += fmt::format("<text x=\"{:g}\" y=\"{:g}\" font-weight=\"bold\">{}</text>\n", kTreeLeft, y + 14,
                          heading);
      y += kTreeTitle;
    }
    body += TreePicture(tree, features, answers, y).draw(y);
    depth = std::max(depth, tree.depth());
  };
  if (trees.gather_first) {
    add("Does a pass over the data pay?", *trees.gather_first, trees.known,
        {"choose at once", "gather first"});
    add("Chosen at once", trees.choose_known, trees.known, trees.options);
    add("Chosen after the pass", *trees.choose_all, all, trees.options);
  } else {
    add("", trees.choose_known, trees.known, trees.options);
  }
  const double width = std::max(640.0, kTreeLeft + kTreeQuestion * static_cast<double>(depth) + kTreeAnswer);
  return svg_head(width, y + 12, kTreeLeft, title, subtitle) + body + "</svg>\n";
}

}  // namespace tritax::cli
