#include "model/select/select_by_tree.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "model/core/error.hpp"
#include "model/select/selectors.hpp"
#include "model/workload/parse_value.hpp"

namespace tritax {

namespace {

// All features of a tree: known ones, then gathered ones.
std::vector<double> tree_features_of(const TreeSelector& trees, const Problem& problem,
                                     const std::string& origin) {
  std::vector<double> values;
  for (const auto* features : {&trees.known, &trees.gathered}) {
    for (const std::string& feature : *features) {
      values.push_back(problem_feature(problem, feature, origin + ": "));
    }
  }
  return values;
}

void require_workload(const TreeSelector& trees, const Problem& problem, const std::string& origin) {
  if (is_called(*problem.workload, trees.workload)) return;
  throw UserError(fmt::format("{}: {}, and the problem is of {}", origin,
                              trees.workload.empty()
                                  ? "it chooses among kernels of a table"
                                  : fmt::format("it chooses for problems of {}", trees.workload),
                              problem.workload->name));
}

void select_by_tree(const TreeSelector& trees, const std::string& origin, const Choices& choices,
                    Trials& trials) {
  const Problem& problem = *choices.problem;
  require_workload(trees, problem, origin);
  const TreeChoice chosen = choose(trees, tree_features_of(trees, problem, origin));
  const PatternOption option =
      parse_pattern_option(*problem.workload, trees.options[chosen.option], origin + ": ");
  std::vector<Proposal> proposals;
  for (std::size_t p = 0; p < choices.patterns.size(); ++p) {
    const PatternChoices& row = choices.patterns[p];
    const bool is_baseline = row.pattern->name == problem.workload->baseline;
    if (!row.space || (row.pattern != option.pattern && !is_baseline)) continue;
    Values wanted(problem.workload->knobs);
    if (row.pattern == option.pattern) wanted = wanted.with(option.knobs);
    Proposal proposal{p, resolved_knobs(problem, *choices.machine, wanted.with(row.space->base))};
    proposals.insert(row.pattern == option.pattern ? proposals.begin() : proposals.end(),
                     std::move(proposal));
  }
  const bool there =
      !proposals.empty() && choices.patterns[proposals.front().pattern].pattern == option.pattern;
  const std::vector<Trial> outcomes = trials.evaluate(proposals);
  if (there && outcomes.front().outcome != Outcome::refused) {
    trials.report(0, 0);
  } else {
    select_defaults(choices, trials);
  }
}

std::string why_of_tree(const TreeSelector& trees, const std::string& origin, const Problem& problem) {
  require_workload(trees, problem, origin);
  const std::vector<double> features = tree_features_of(trees, problem, origin);
  const TreeChoice chosen = choose(trees, features);
  std::vector<std::string> names = trees.known;
  names.insert(names.end(), trees.gathered.begin(), trees.gathered.end());
  const DecisionTree& tree = chosen.gathered ? *trees.choose_all : trees.choose_known;
  const std::string path = tree.path(features, names);
  return fmt::format("{} chose {}{}{}{}{}.", origin, trees.options[chosen.option],
                     chosen.gathered ? " after a pass over the data" : "",
                     path.empty() ? ", as always" : ", because ", path,
                     trees.machine.empty() ? "" : fmt::format("; it learnt on {}", trees.machine));
}

}  // namespace

std::string PatternOption::name() const {
  std::string text(pattern->name);
  for (std::size_t i = 0; i < knobs.specs().size(); ++i) {
    if (!knobs.given_at(knobs.first_column(i))) continue;
    text += fmt::format(" {}={}", knobs.specs()[i].name, text_of(knobs, i));
  }
  return text;
}

PatternOption parse_pattern_option(const Workload& workload, const std::string& text,
                                   const std::string& place) {
  PatternOption option;
  option.knobs = Values(workload.knobs);
  std::size_t end = std::min(text.find(' '), text.size());
  option.pattern = &find_pattern(workload, text.substr(0, end), place + "option");
  while (end < text.size()) {
    const std::size_t begin = end + 1;
    end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    const std::size_t equals = std::min(word.find('='), word.size());
    const Spec* spec = find_spec(workload.knobs, word.substr(0, equals));
    if (spec == nullptr || equals == word.size()) {
      std::vector<std::string_view> names;
      for (const Spec& knob : workload.knobs) names.push_back(knob.name);
      throw UserError(fmt::format("{}'{}' is not a knob with its value; give KNOB=VALUE with one of {}",
                                  place, word, fmt::join(names, ", ")));
    }
    const auto at = static_cast<std::size_t>(spec - workload.knobs.data());
    std::string value = word.substr(equals + 1);
    if (spec->kind == ValueKind::boolean) {  // as PatternOption::name() writes it
      value = value == "true" ? "on" : value == "false" ? "off" : value;
    }
    const std::vector<std::int64_t> numbers = parse_value(value, place + std::string(spec->name), *spec);
    for (std::size_t part = 0; part < numbers.size(); ++part) {
      option.knobs.give_at(option.knobs.first_column(at) + part, numbers[part]);
    }
  }
  return option;
}

std::vector<std::string> problem_numbers(const Workload& workload) {
  std::vector<std::string> names;
  for (const Spec& field : workload.fields) {
    for (std::size_t part = 0; part < field.columns(); ++part) names.push_back(field.column(part));
  }
  names.emplace_back("flops");
  names.emplace_back("bytes");
  return names;
}

double problem_feature(const Problem& problem, std::string_view feature, const std::string& place) {
  names_in_feature(feature, place);
  return feature_value(feature, [&](std::string_view name) {
    if (problem.values.has(name)) return static_cast<double>(problem[name]);
    if (name == "flops") return work_of(problem).flops;
    if (name == "bytes") return work_of(problem).bytes_per_gpu;
    throw UserError(fmt::format("{}there is no '{}' of {}; features are of {}", place, name,
                                problem.workload->name, fmt::join(problem_numbers(*problem.workload), ", ")));
  });
}

Selector tree_selector(const TreeSelector& trees, const std::string& origin) {
  return {"tree", "what decision trees choose, and the baseline",
          [&trees, origin](const Choices& choices, Trials& trials) {
            select_by_tree(trees, origin, choices, trials);
          },
          [&trees, origin](const Problem& problem) { return why_of_tree(trees, origin, problem); }};
}

}  // namespace tritax
