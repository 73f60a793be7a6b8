// The pattern to run for each of many problems, as a table of choices: every pattern of the workload is
// simulated with its default knobs, or with some given knobs.
#pragma once

#include <cstddef>
#include <vector>

#include "model/machine/machine.hpp"
#include "model/scenario/scenario.hpp"
#include "model/select/select_by_tree.hpp"
#include "sim/study/choices.hpp"

namespace tritax {

struct PatternTable {
  ChoiceTable table;                  // options: patterns; numbers: fields of the problem
  std::vector<Scenario> scenarios;    // by row: the problem, and the given knobs
  std::vector<std::size_t> by_bound;  // by problem: the pattern with the lowest bound
  double simulation_ns = 0;           // for all patterns of one problem, mean on one core
  double bound_ns = 0;                // to compute their bounds
};

// One problem per scenario; its knobs hold for all patterns, and its pattern does not count. Problems that no
// pattern can run are left out. Throws UserError if the scenarios belong to several workloads or machines, or
// if none is left.
PatternTable pattern_table(const std::vector<Scenario>& scenarios, const Machine& machine);
// The same with the patterns of `options`, at most kMostSievedPolicies.
PatternTable pattern_table(const std::vector<Scenario>& scenarios, const Machine& machine,
                           const std::vector<PatternOption>& options);

// Every pattern except the vendors', up to the limit of a table.
std::vector<PatternOption> pattern_options(const Workload& workload);

}  // namespace tritax
