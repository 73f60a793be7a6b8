#include "model/select/decision_tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "model/core/error.hpp"
#include "model/schedule/json_reader.hpp"

namespace tritax {

namespace {

constexpr std::string_view kTreeSchema = "tritax.tree/1";
constexpr std::array<std::string_view, 2> kGatherAnswers{"choose", "gather"};
constexpr double kLeastThreshold = -1e300;
constexpr std::size_t kMostTreeNodes = 1 << 20;

bool is_name_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

std::vector<std::string> options_of(const JsonValue& value) {
  value.expect_array();
  std::vector<std::string> options;
  for (std::size_t i = 0; i < value.size(); ++i) {
    options.push_back(value.item(i).string());
    if (!is_option_name(options.back())) value.item(i).refuse("give letters, digits, blanks and -=.,+/_");
  }
  return options;
}

std::vector<std::string> features_of(const JsonValue& value, const std::string& origin) {
  value.expect_array();
  std::vector<std::string> features;
  for (std::size_t i = 0; i < value.size(); ++i) {
    features.push_back(value.item(i).string());
    names_in_feature(features.back(), origin + ": ");
  }
  return features;
}

TreeNode node_of(const JsonValue& value, std::size_t own, std::size_t nodes,
                 std::span<const std::string_view> features, std::span<const std::string_view> answers) {
  static constexpr std::array<std::string_view, 4> question{"feature", "most", "yes", "no"};
  static constexpr std::array<std::string_view, 2> answer{"answer", "examples"};
  TreeNode node;
  if (value.has("answer")) {
    value.expect_object(answer);
    node.answer = static_cast<std::int32_t>(value.at("answer").one_of(answers));
    node.examples = value.at("examples").integer(0, std::int64_t{1} << 53);
    return node;
  }
  value.expect_object(question);
  node.feature = static_cast<int>(value.at("feature").one_of(features));
  node.most = value.at("most").number(kLeastThreshold);
  const auto behind = [&](const char* key) {
    const std::int64_t last = static_cast<std::int64_t>(nodes) - 1;
    return static_cast<std::int32_t>(value.at(key).integer(static_cast<std::int64_t>(own) + 1, last));
  };
  node.yes = behind("yes");
  node.no = behind("no");
  return node;
}

DecisionTree tree_of(const JsonValue& value, std::span<const std::string_view> features,
                     std::span<const std::string_view> answers) {
  value.expect_array();
  if (value.size() == 0 || value.size() > kMostTreeNodes) {
    value.refuse(fmt::format("give 1 to {} nodes", kMostTreeNodes));
  }
  DecisionTree tree;
  std::vector<int> before(value.size(), 0);  // questions that lead to a node
  for (std::size_t i = 0; i < value.size(); ++i) {
    const TreeNode& node =
        tree.nodes.emplace_back(node_of(value.item(i), i, value.size(), features, answers));
    if (i > 0 && before[i] != 1)
      value.item(i).refuse(fmt::format("{} nodes lead to it; one must", before[i]));
    if (node.feature < 0) continue;
    ++before[static_cast<std::size_t>(node.yes)];
    ++before[static_cast<std::size_t>(node.no)];
  }
  return tree;
}

template <typename Names, typename Answers>
nlohmann::ordered_json nodes_json(const DecisionTree& tree, const Names& features, const Answers& answers) {
  nlohmann::ordered_json nodes = nlohmann::ordered_json::array();
  for (const TreeNode& node : tree.nodes) {
    if (node.feature < 0) {
      nodes.push_back(
          {{"answer", answers[static_cast<std::size_t>(node.answer)]}, {"examples", node.examples}});
    } else {
      nodes.push_back({{"feature", features[static_cast<std::size_t>(node.feature)]},
                       {"most", node.most},
                       {"yes", node.yes},
                       {"no", node.no}});
    }
  }
  return nodes;
}

}  // namespace

bool is_option_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return is_name_letter(c) || std::string_view(" -=.,+/").find(c) != std::string_view::npos;
  });
}

std::size_t DecisionTree::answer(std::span<const double> features) const {
  std::size_t at = 0;
  while (nodes[at].feature >= 0) {
    const TreeNode& node = nodes[at];
    at = static_cast<std::size_t>(features[static_cast<std::size_t>(node.feature)] <= node.most ? node.yes
                                                                                                : node.no);
  }
  return static_cast<std::size_t>(nodes[at].answer);
}

std::string DecisionTree::path(std::span<const double> features, std::span<const std::string> names) const {
  std::string text;
  for (std::size_t at = 0; nodes[at].feature >= 0;) {
    const TreeNode& node = nodes[at];
    const auto feature = static_cast<std::size_t>(node.feature);
    const bool yes = features[feature] <= node.most;
    text +=
        fmt::format("{}{} {} {:.6g}", text.empty() ? "" : ", ", names[feature], yes ? "<=" : ">", node.most);
    at = static_cast<std::size_t>(yes ? node.yes : node.no);
  }
  return text;
}

std::size_t DecisionTree::leaves() const {
  return static_cast<std::size_t>(
      std::count_if(nodes.begin(), nodes.end(), [](const TreeNode& node) { return node.feature < 0; }));
}

std::size_t DecisionTree::depth() const {
  std::vector<std::size_t> depths(nodes.size(), 0);
  std::size_t deepest = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {  // parents before children
    deepest = std::max(deepest, depths[i]);
    if (nodes[i].feature < 0) continue;
    for (const std::int32_t next : {nodes[i].yes, nodes[i].no}) {
      std::size_t& depth = depths[static_cast<std::size_t>(next)];
      depth = std::max(depth, depths[i] + 1);
    }
  }
  return deepest;
}

std::vector<std::string> names_in_feature(std::string_view feature, const std::string& place) {
  std::vector<std::string> names(1);
  bool good = true;
  for (const char c : feature) {
    if (c == '*' || c == '/') {
      good = good && !names.back().empty();
      names.emplace_back();
    } else {
      good = good && is_name_letter(c);
      names.back() += c;
    }
  }
  if (!good || names.back().empty()) {
    throw UserError(fmt::format(
        "{}'{}' is not a feature; give names of letters, digits and _, multiplied and divided: nnz, nnz/rows",
        place, feature));
  }
  return names;
}

double feature_value(std::string_view feature, const std::function<double(std::string_view)>& of) {
  double value = 1;
  char operation = '*';
  while (true) {
    const std::size_t end = std::min(feature.find_first_of("*/"), feature.size());
    const double factor = of(feature.substr(0, end));
    if (operation == '*') {
      value *= factor;
    } else {
      value = factor == 0 ? 0 : value / factor;
    }
    if (end == feature.size()) return value;
    operation = feature[end];
    feature.remove_prefix(end + 1);
  }
}

TreeChoice choose(const TreeSelector& selector, std::span<const double> features) {
  const std::span<const double> known = features.first(selector.known.size());
  if (selector.gather_first && selector.gather_first->answer(known) == 1) {
    return {selector.choose_all->answer(features), true};
  }
  return {selector.choose_known.answer(known), false};
}

std::string TreeSelector::to_json() const {
  std::vector<std::string> all = known;
  all.insert(all.end(), gathered.begin(), gathered.end());
  nlohmann::ordered_json tree{{"schema", kTreeSchema}, {"workload", workload}, {"machine", machine},
                              {"options", options},    {"known", known},       {"gathered", gathered}};
  tree["choose_known"] = nodes_json(choose_known, known, options);
  if (gather_first) {
    tree["gather_first"] = nodes_json(*gather_first, known, kGatherAnswers);
    tree["choose_all"] = nodes_json(*choose_all, all, options);
  }
  return tree.dump(1) + '\n';
}

TreeSelector TreeSelector::from_json(std::string_view text, const std::string& origin) {
  static constexpr std::array<std::string_view, 9> keys{"schema",       "workload",     "machine",
                                                        "options",      "known",        "gathered",
                                                        "choose_known", "gather_first", "choose_all"};
  static constexpr std::array<std::string_view, 1> schemas{kTreeSchema};
  const nlohmann::json tree = parse_json(text, origin);
  const JsonValue root(tree, origin);
  root.expect_object(keys);
  root.at("schema").one_of(schemas);
  TreeSelector selector;
  selector.workload = root.at("workload").string();
  selector.machine = root.at("machine").string();
  selector.options = options_of(root.at("options"));
  selector.known = features_of(root.at("known"), origin);
  selector.gathered = features_of(root.at("gathered"), origin);
  if (selector.options.empty()) root.at("options").refuse("give at least one option");
  const std::vector<std::string_view> options(selector.options.begin(), selector.options.end());
  const std::vector<std::string_view> known_names(selector.known.begin(), selector.known.end());
  selector.choose_known = tree_of(root.at("choose_known"), known_names, options);
  if (selector.gathered.empty()) return selector;
  std::vector<std::string_view> all = known_names;
  all.insert(all.end(), selector.gathered.begin(), selector.gathered.end());
  selector.gather_first = tree_of(root.at("gather_first"), known_names, kGatherAnswers);
  selector.choose_all = tree_of(root.at("choose_all"), all, options);
  return selector;
}

}  // namespace tritax
