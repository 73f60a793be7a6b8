#include "cli/tune_tree.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "cli/axes.hpp"
#include "cli/options.hpp"
#include "cli/tree_picture.hpp"
#include "cli/version.hpp"
#include "model/core/error.hpp"
#include "sim/study/pattern_choice.hpp"
#include "sim/study/tree_scores.hpp"

namespace tritax::cli {

namespace {

constexpr std::int32_t kMostTreeDepth = 30;
constexpr std::int32_t kMostTreeLeaves = 1000;
constexpr std::int32_t kUsualFolds = 10;
constexpr std::size_t kMostTreeOptions = kMostSievedPolicies;

std::vector<std::string> listed(const std::string& text, const std::string& flag) {
  return text.empty() ? std::vector<std::string>{} : parts_of(text, flag);
}

TreeLimits limits_of(const TreeTuning& tuning) {
  TreeLimits limits;
  limits.depth = tuning.depth.value_or(limits.depth);
  limits.leaf_examples = tuning.leaf_examples.value_or(limits.leaf_examples);
  limits.leaves = tuning.leaves;
  return limits;
}

// Patterns crossed with the values of the varied knobs that they use.
std::vector<PatternOption> options_with(const Workload& workload, const std::vector<std::string>& vary) {
  std::vector<PatternOption> options = pattern_options(workload);
  for (const std::string& text : vary) {
    const std::size_t equals = std::min(text.find('='), text.size());
    const std::string knob = text.substr(0, equals);
    if (equals == text.size()) {
      throw UserError(fmt::format("--vary: '{}' is not a knob with values; give KNOB=VALUE,VALUE", text));
    }
    std::vector<PatternOption> crossed;
    for (const PatternOption& option : options) {
      for (const std::string& value : parts_of(text.substr(equals + 1), "--vary")) {
        const PatternOption given = parse_pattern_option(
            workload, fmt::format("{} {}={}", option.pattern->name, knob, value), "--vary: ");
        if (!option.pattern->uses(knob)) {
          crossed.push_back(option);
          break;
        }
        crossed.push_back({option.pattern, option.knobs.with(given.knobs)});
      }
    }
    options = std::move(crossed);
  }
  if (options.size() <= kMostTreeOptions) return options;
  throw UserError(fmt::format("--vary: {} patterns with knobs are too many to choose among; allowed: {}",
                              options.size(), kMostTreeOptions));
}

// Gathering time, for problems without a column of it.
double gather_ns_of(const TreeTuning& tuning) {
  TimesColumns columns;
  columns.gathered = listed(tuning.gathered, "--gathered");
  columns.gather_time = tuning.gather_time;
  require_gather_time(columns);
  if (tuning.gather_time.empty()) return 0;
  const std::optional<double> time_ns = written_time(tuning.gather_time);
  if (time_ns) return *time_ns;
  throw UserError(fmt::format("--gather-time: '{}' is not a time; give a number with ns, us, ms or s",
                              tuning.gather_time));
}

// Throws UserError for columns: gathered features may be fields of a problem too; `what` has no columns.
void refuse_columns(const TreeTuning& tuning, const std::string& what, bool may_gather) {
  if (!may_gather && !tuning.gathered.empty()) {
    throw UserError(fmt::format("--gathered: {} have nothing to gather; leave it out", what));
  }
  for (const auto& [text, flag] :
       {std::pair{&tuning.times, "--times"}, std::pair{&tuning.group, "--group"},
        std::pair{&tuning.heuristic, "--heuristic"}, std::pair{&tuning.baseline, "--baseline"}}) {
    if (!text->empty())
      throw UserError(fmt::format("{}: only a table (CSV) has columns; {} have none", flag, what));
  }
}

Table ways_table(const TreeScores& scores, bool gathers, bool baseline) {
  Table table{{{"choice", "choice"},
               {"problems", "problems"},
               {"right_pct", "fastest", "%"},
               {"within_5_pct", "within 5 %", "%"},
               {"over_best", "time over oracle", "", 3},
               {"worst", "worst", "", 2}},
              {}};
  if (baseline) table.columns.push_back({"over_baseline", "speedup over baseline", "", 3});
  if (gathers) table.columns.push_back({"gathered_pct", "gathers", "%"});
  table.columns.push_back({"impossible", "cannot run"});
  table.columns.push_back({"sum_ms", "sum", "ms", 2});
  for (const ChoiceScore& way : scores.ways) {
    std::vector<Cell> cells{way.name,        static_cast<std::int64_t>(way.problems),
                            100 * way.right, 100 * way.within_5,
                            way.over_best,   way.worst};
    if (baseline) cells.emplace_back(way.over_baseline);
    if (gathers) cells.emplace_back(100 * way.gathered);
    cells.emplace_back(static_cast<std::int64_t>(way.impossible));
    cells.emplace_back(way.sum_ns / 1e6);
    table.add(std::move(cells));
  }
  return table;
}

// Without options that are neither fastest nor chosen; columns are numbered as the rows.
Table confusion_table(const TreeScores& scores, const std::vector<std::string>& options) {
  std::vector<std::size_t> shown;
  for (std::size_t i = 0; i < options.size(); ++i) {
    bool any = false;
    for (std::size_t j = 0; j < options.size(); ++j)
      any |= scores.confusion[i][j] + scores.confusion[j][i] > 0;
    if (any) shown.push_back(i);
  }
  Table table{{{"fastest", "fastest is"}}, {}};
  for (std::size_t i = 0; i < shown.size(); ++i) {
    table.columns.push_back({fmt::format("chosen_{}", shown[i]), fmt::format("chose {}", i + 1)});
  }
  for (std::size_t i = 0; i < shown.size(); ++i) {
    std::vector<Cell> cells{fmt::format("{} {}", i + 1, options[shown[i]])};
    for (const std::size_t j : shown)
      cells.emplace_back(static_cast<std::int64_t>(scores.confusion[shown[i]][j]));
    table.add(std::move(cells));
  }
  return table;
}

nlohmann::ordered_json ways_json(const TreeScores& scores) {
  nlohmann::ordered_json ways = nlohmann::ordered_json::array();
  for (const ChoiceScore& way : scores.ways) {
    ways.push_back(
        {{"choice", way.name},
         {"problems", way.problems},
         {"right", way.right},
         {"within_5", way.within_5},
         {"over_best", way.over_best},
         {"worst", way.worst},
         {"over_baseline", std::isnan(way.over_baseline) ? nlohmann::ordered_json()
                                                         : nlohmann::ordered_json(way.over_baseline)},
         {"gathered", way.gathered},
         {"impossible", way.impossible},
         {"sum_ms", way.sum_ns / 1e6}});
  }
  return ways;
}

// "12 answers behind at most 6 questions", or "always csr"
std::string size_of_tree(const DecisionTree& tree, std::span<const std::string> answers) {
  if (tree.depth() == 0) return fmt::format("always {}", answers[tree.answer({})]);
  return fmt::format("{} answers behind at most {} questions", tree.leaves(), tree.depth());
}

// "of all problems: 12 answers …; gathering first …"
std::string sizes_of_trees(const TreeSelector& trees) {
  static const std::array<std::string, 2> gather{"no", "yes"};
  std::string text = fmt::format("of all problems: {}", size_of_tree(trees.choose_known, trees.options));
  bool constant = trees.choose_known.depth() == 0;
  if (trees.gather_first) {
    text += fmt::format("; gathering first: {}; then {}", size_of_tree(*trees.gather_first, gather),
                        size_of_tree(*trees.choose_all, trees.options));
    constant = constant || trees.gather_first->depth() == 0 || trees.choose_all->depth() == 0;
  }
  if (constant) text += "\nalways: no tree chose better for unseen problems";
  return text;
}

}  // namespace

std::string TreeTuning::given() const {
  for (const auto& [text, flag] :
       {std::pair{&times, "--times"}, std::pair{&features, "--features"}, std::pair{&gathered, "--gathered"},
        std::pair{&gather_time, "--gather-time"}, std::pair{&group, "--group"},
        std::pair{&heuristic, "--heuristic"}, std::pair{&baseline, "--baseline"},
        std::pair{&tree, "--tree"}}) {
    if (!text->empty()) return flag;
  }
  for (const auto& [number, flag] :
       {std::pair{&depth, "--depth"}, std::pair{&leaves, "--leaves"},
        std::pair{&leaf_examples, "--leaf-examples"}, std::pair{&folds, "--folds"}}) {
    if (*number) return flag;
  }
  return vary.empty() ? "" : "--vary";
}

void add_tree_options(CLI::App& app, TreeTuning& tuning) {
  constexpr const char* kTrees = "Decision trees";
  const auto text = [&](const char* flag, std::string& target, const char* form, const char* help) {
    app.add_option(flag, target, help)->type_name(form)->group(kTrees);
  };
  text("--times", tuning.times, "A,B,C",
       "Columns of a table with the times of the options; names end in _us, _ms …");
  text("--features", tuning.features, "A,B,C",
       "Features that need no pass: columns, fields, their products and quotients (default: all fields of "
       "problems)");
  text("--gathered", tuning.gathered, "A,B,C",
       "Features that need a pass over the data: columns or fields, and what follows from them");
  text("--gather-time", tuning.gather_time, "COLUMN|TIME", "Time of that pass: a column, or 12us");
  text("--group", tuning.group, "COLUMN", "Column whose equal values stay in one fold (a matrix)");
  text("--heuristic", tuning.heuristic, "COLUMN",
       "Column with the options that a rule chose, to compare with");
  text("--baseline", tuning.baseline, "COLUMN", "Column with times of other code, the base of speedups");
  app.add_option("--vary", tuning.vary,
                 "Choose patterns with each of these values of a knob: tile=64x64x64,128x128x64")
      ->type_name("KNOB=A,B")
      ->group(kTrees)
      ->allow_extra_args(false);
  const auto number = [&](const char* flag, std::optional<std::int32_t>& target, const char* help,
                          std::int32_t lowest, std::int32_t highest) {
    add_integer(app, flag, target, help, lowest, highest);
    app.get_option(flag)->group(kTrees);
  };
  number("--depth", tuning.depth, "Largest depth of a tree (default: 6)", 1, kMostTreeDepth);
  number("--leaves", tuning.leaves, "Most leaves of a tree (default: no limit)", 2, kMostTreeLeaves);
  number("--leaf-examples", tuning.leaf_examples, "Fewest problems per leaf (default: 10)", 1, 1'000'000);
  number("--folds", tuning.folds, "Folds of the problems, each scored by trees of the others (default: 10)",
         2, 100);
}

TimedProblems problems_of_csv(const TreeTuning& tuning, const std::string& path) {
  if (!tuning.vary.empty()) throw UserError("--vary: a table has no knobs; give scenarios, or leave it out");
  if (tuning.times.empty()) throw UserError("--times: missing; name the columns of times to choose among");
  TimesColumns columns;
  columns.times = listed(tuning.times, "--times");
  columns.known = listed(tuning.features, "--features");
  columns.gathered = listed(tuning.gathered, "--gathered");
  columns.gather_time = tuning.gather_time;
  columns.group = tuning.group;
  columns.heuristic = tuning.heuristic;
  columns.baseline = tuning.baseline;
  return read_timed_problems(path, columns);
}

TimedProblems problems_of_scenarios(const TreeTuning& tuning, const std::vector<Scenario>& scenarios,
                                    const Machine& machine) {
  refuse_columns(tuning, "scenarios", true);
  const double gather_ns = gather_ns_of(tuning);
  const Workload& workload = *scenarios.front().problem.workload;
  const std::vector<std::string> features = listed(tuning.features, "--features");
  const std::vector<std::string> gathered = listed(tuning.gathered, "--gathered");
  for (const auto& [list, flag] :
       {std::pair{&features, "--features: "}, std::pair{&gathered, "--gathered: "}}) {
    for (const std::string& feature : *list) problem_feature(scenarios.front().problem, feature, flag);
  }
  const PatternTable found = pattern_table(scenarios, machine, options_with(workload, tuning.vary));
  TimedProblems problems = timed_problems(found.table, {});
  problems.workload = workload.name;
  problems.machine = machine.title();
  problems.known = features;
  problems.gathered = gathered;
  if (features.empty()) {
    for (const std::string& number : problem_numbers(workload)) {
      if (std::find(gathered.begin(), gathered.end(), number) == gathered.end())
        problems.known.push_back(number);
    }
  }
  for (std::size_t i = 0; i < problems.rows.size(); ++i) {
    std::vector<double>& values = problems.rows[i].features;
    values.clear();
    problems.rows[i].gather_ns = gather_ns;
    for (const std::string& feature : problems.features()) {
      values.push_back(problem_feature(found.scenarios[i].problem, feature, "--features: "));
    }
  }
  return problems;
}

TimedProblems problems_of_choices(const TreeTuning& tuning, const ChoiceTable& table) {
  refuse_columns(tuning, "corpora", false);
  gather_ns_of(tuning);
  if (!tuning.vary.empty()) throw UserError("--vary: a corpus has no knobs; give scenarios, or leave it out");
  return timed_problems(table, listed(tuning.features, "--features"));
}

void tune_trees(const TreeTuning& tuning, const TimedProblems& problems, std::uint64_t seed,
                const std::string& what, TreeOutputs outputs) {
  const auto fold_count = static_cast<std::size_t>(tuning.folds.value_or(static_cast<std::int32_t>(
      std::min<std::size_t>(kUsualFolds, std::max<std::size_t>(2, problems.groups)))));
  const std::vector<std::size_t> folds = folds_of(problems, fold_count, seed);
  const TrainedTrees trained = train_trees(problems, folds, fold_count, limits_of(tuning));
  const TreeScores scores = score_trees(problems, folds, trained.by_fold);
  const bool gathers = !problems.gathered.empty();
  const bool baseline = std::any_of(problems.rows.begin(), problems.rows.end(),
                                    [](const TimedProblem& row) { return row.baseline_ns.has_value(); });
  std::string text = fmt::format(
      "{}: {} problems in {} groups, {} options; {} folds, each scored by trees of the others\n{}", what,
      problems.rows.size(), problems.groups, problems.options.size(), fold_count,
      sizes_of_trees(trained.all));
  if (problems.left_out > 0) text += fmt::format("\n{} rows have no time and are skipped", problems.left_out);
  const Table ways = ways_table(scores, gathers, baseline);
  outputs.outputs.print(text + "\n\n");
  outputs.outputs.print(ways);
  outputs.outputs.print("\n");
  outputs.outputs.print(confusion_table(scores, problems.options));
  outputs.outputs.csv(ways);
  outputs.outputs.json({{"schema", "tritax.tune-tree/1"},
                        {"version", version()},
                        {"problems", problems.rows.size()},
                        {"groups", problems.groups},
                        {"left_out", problems.left_out},
                        {"machine", problems.machine},
                        {"folds", fold_count},
                        {"seed", seed},
                        {"choices", ways_json(scores)},
                        {"options", problems.options},
                        {"confusion", scores.confusion},
                        {"best_single", problems.options[scores.best_single]},
                        {"tree", nlohmann::ordered_json::parse(trained.all.to_json())}});
  if (outputs.tree) outputs.tree->commit(trained.all.to_json());
  if (outputs.header) outputs.header->commit(trained.all.to_header("tritax_tuned"));
  if (outputs.plot) {
    outputs.plot->commit(tree_picture(
        trained.all, what,
        fmt::format("trained on {} problems; in brackets: problems per leaf", problems.rows.size())));
  }
}

}  // namespace tritax::cli
