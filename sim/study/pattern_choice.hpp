// Which pattern to run for each of many problems, as a table of choices: every pattern of their workload at
// its default knobs, or with some of them given, simulated.
#pragma once

#include <cstddef>
#include <vector>

#include "model/machine/machine.hpp"
#include "model/scenario/scenario.hpp"
#include "model/select/select_by_tree.hpp"
#include "sim/study/choices.hpp"

namespace tritax {

struct PatternTable {
  ChoiceTable table;                  // options: patterns; numbers: the fields of the problem
  std::vector<Scenario> scenarios;    // of its rows: a problem, and the knobs that hold for it
  std::vector<std::size_t> by_bound;  // of every problem the pattern with the lowest bound
  double simulation_ns = 0;           // to simulate one problem's patterns, mean on one core
  double bound_ns = 0;                // to bound them
};

// One problem a scenario; its knobs hold for all patterns, and what it names as pattern does not count.
// Problems that no pattern can run are left out. Throws UserError when the scenarios are of several workloads
// or machines, or when there are none left.
PatternTable pattern_table(const std::vector<Scenario>& scenarios, const Machine& machine);
// The same among `options` of their workload, at most kMostSievedPolicies.
PatternTable pattern_table(const std::vector<Scenario>& scenarios, const Machine& machine,
                           const std::vector<PatternOption>& options);

// Every pattern but those of vendors, as many as a table may have.
std::vector<PatternOption> pattern_options(const Workload& workload);

}  // namespace tritax
