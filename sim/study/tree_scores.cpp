#include "sim/study/tree_scores.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>

#include "model/select/selector.hpp"

namespace tritax {

namespace {

struct WayChoice {
  std::size_t option = 0;
  bool gathered = false;
};

double slowest_of(const TimedProblem& problem) {
  double slowest = 0;
  for (const double time : problem.time_ns) {
    if (time != kNever) slowest = std::max(slowest, time);
  }
  return slowest;
}

double time_with(const TimedProblem& problem, std::size_t option, std::size_t fallback) {
  if (problem.time_ns[option] != kNever) return problem.time_ns[option];
  return problem.time_ns[fallback] != kNever ? problem.time_ns[fallback] : slowest_of(problem);
}

// The option with the least geometric mean, among those that can run most problems.
std::size_t best_single_of(const TimedProblems& problems) {
  std::size_t best = 0;
  std::size_t best_impossible = std::numeric_limits<std::size_t>::max();
  double best_sum = 0;
  for (std::size_t option = 0; option < problems.options.size(); ++option) {
    std::size_t impossible = 0;
    double sum = 0;
    for (const TimedProblem& problem : problems.rows) {
      impossible += problem.time_ns[option] == kNever;
      sum += std::log(time_with(problem, option, option));
    }
    if (impossible < best_impossible || (impossible == best_impossible && sum < best_sum)) {
      best = option;
      best_impossible = impossible;
      best_sum = sum;
    }
  }
  return best;
}

using ChoiceOfRow = std::function<std::optional<WayChoice>(std::size_t row)>;

// Rows without a choice do not count.
ChoiceScore score_way(std::string name, const TimedProblems& problems, std::size_t fallback,
                      const ChoiceOfRow& choice_of) {
  ChoiceScore score;
  score.name = std::move(name);
  double log_best = 0, log_baseline = 0;
  std::size_t baselines = 0;
  for (std::size_t i = 0; i < problems.rows.size(); ++i) {
    const TimedProblem& problem = problems.rows[i];
    const std::optional<WayChoice> choice = choice_of(i);
    if (!choice) continue;
    const double best_ns = problem.best_ns();
    const double time_ns =
        time_with(problem, choice->option, fallback) + (choice->gathered ? problem.gather_ns : 0);
    ++score.problems;
    score.impossible += problem.time_ns[choice->option] == kNever;
    score.right += problem.time_ns[choice->option] == best_ns;
    score.within_5 += time_ns <= 1.05 * best_ns;
    score.gathered += choice->gathered;
    score.worst = std::max(score.worst, time_ns / best_ns);
    score.sum_ns += time_ns;
    log_best += std::log(time_ns / best_ns);
    if (!problem.baseline_ns) continue;
    log_baseline += std::log(*problem.baseline_ns / time_ns);
    ++baselines;
  }
  const double count = std::max(1.0, static_cast<double>(score.problems));
  for (double* share : {&score.right, &score.within_5, &score.gathered}) *share /= count;
  score.over_best = std::exp(log_best / count);
  score.over_baseline = baselines == 0 ? std::numeric_limits<double>::quiet_NaN()
                                       : std::exp(log_baseline / static_cast<double>(baselines));
  return score;
}

}  // namespace

TreeScores score_trees(const TimedProblems& problems, std::span<const std::size_t> folds,
                       std::span<const TreeSelector> by_fold) {
  TreeScores scores;
  const std::size_t single = scores.best_single = best_single_of(problems);
  const std::size_t known = problems.known.size();
  scores.confusion.assign(problems.options.size(), std::vector<std::size_t>(problems.options.size(), 0));
  const auto add = [&](std::string name, const ChoiceOfRow& choice_of) {
    scores.ways.push_back(score_way(std::move(name), problems, single, choice_of));
  };
  const auto by_tree = [&](std::size_t i) {
    const TreeChoice choice = choose(by_fold[folds[i]], problems.rows[i].features);
    return WayChoice{choice.option, choice.gathered};
  };
  const bool gathers = !problems.gathered.empty();
  add(gathers ? "trees, gathering where it pays" : "tree", by_tree);
  if (gathers) {
    add("tree of known features alone", [&](std::size_t i) {
      const std::span<const double> features(problems.rows[i].features);
      return WayChoice{by_fold[folds[i]].choose_known.answer(features.first(known)), false};
    });
    add("tree of all features, always gathering", [&](std::size_t i) {
      return WayChoice{by_fold[folds[i]].choose_all->answer(problems.rows[i].features), true};
    });
  }
  const bool has_rule =
      std::any_of(problems.rows.begin(), problems.rows.end(),
                  [](const TimedProblem& problem) { return problem.heuristic.has_value(); });
  if (has_rule) {
    add("heuristic of the table", [&](std::size_t i) -> std::optional<WayChoice> {
      if (!problems.rows[i].heuristic) return std::nullopt;
      return WayChoice{*problems.rows[i].heuristic, false};
    });
  }
  for (std::size_t option = 0; option < problems.options.size(); ++option) {
    add(fmt::format("always {}{}", problems.options[option], option == single ? " (best single)" : ""),
        [&](std::size_t) {
          return WayChoice{option, false};
        });
  }
  const auto fastest = [&](std::size_t i) {
    const std::vector<double>& times = problems.rows[i].time_ns;
    return static_cast<std::size_t>(std::min_element(times.begin(), times.end()) - times.begin());
  };
  add("oracle", [&](std::size_t i) { return WayChoice{fastest(i), false}; });
  for (std::size_t i = 0; i < problems.rows.size(); ++i) {
    std::size_t best = fastest(i);
    const std::size_t chosen = by_tree(i).option;
    if (problems.rows[i].time_ns[chosen] == problems.rows[i].time_ns[best]) best = chosen;  // equally fast
    ++scores.confusion[best][chosen];
  }
  return scores;
}

}  // namespace tritax
