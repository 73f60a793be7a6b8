// tritax tune --selector tree: trains decision trees on a table of times or on simulations, and scores their
// choices for problems outside the training set.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/output.hpp"
#include "model/scenario/scenario.hpp"
#include "sim/study/timed_problems.hpp"

namespace tritax::cli {

struct TreeTuning {
  std::string times, features, gathered, gather_time, group, heuristic, baseline;  // of a table
  std::vector<std::string> vary;                                                   // knobs, of scenarios
  std::optional<std::int32_t> depth, leaves, leaf_examples, folds;
  std::string tree;  // output file, as JSON

  // The first option that asks for trees; "" if none does.
  std::string given() const;
};

void add_tree_options(CLI::App& app, TreeTuning& tuning);

// Training data: a CSV; scenarios of one workload, each simulated with all patterns; a table of choices.
TimedProblems problems_of_csv(const TreeTuning& tuning, const std::string& path);
TimedProblems problems_of_scenarios(const TreeTuning& tuning, const std::vector<Scenario>& scenarios,
                                    const Machine& machine);
TimedProblems problems_of_choices(const TreeTuning& tuning, const ChoiceTable& table);

// Outputs of the answer; null: none.
struct TreeOutputs {
  Outputs& outputs;
  std::optional<OutputFile>& tree;
  std::optional<OutputFile>& header;
  std::optional<OutputFile>& plot;
};

// `what`: source of the times, for titles.
void tune_trees(const TreeTuning& tuning, const TimedProblems& problems, std::uint64_t seed,
                const std::string& what, TreeOutputs outputs);

}  // namespace tritax::cli
