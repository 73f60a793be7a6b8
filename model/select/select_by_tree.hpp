// Turns answers of decision trees (decision_tree.hpp) into patterns with knobs and numbers of a problem into
// features, and defines a selector that tries the choice of the trees and the baseline for comparison.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/select/decision_tree.hpp"
#include "model/select/selector.hpp"

namespace tritax {

// An option of a tree: "producer-consumer", or with knobs, "producer-consumer tile=256x256x64 waves=8".
struct PatternOption {
  const Pattern* pattern = nullptr;
  Values knobs;  // named knobs are given

  std::string name() const;
};

// Throws UserError that begins with `place` for a pattern or knob that the workload does not have, or an
// invalid value of a knob.
PatternOption parse_pattern_option(const Workload& workload, const std::string& text,
                                   const std::string& place);

// Names for features of a problem: the columns of its fields, "flops" of all GPUs, and "bytes" that one GPU
// exchanges, 0 if the workload does not say. Products and quotients of names may be features too.
std::vector<std::string> problem_numbers(const Workload& workload);
// The value of a feature. Throws UserError that begins with `place` for a name that the workload does not
// have.
double problem_feature(const Problem& problem, std::string_view feature, const std::string& place);

// `trees` outlives the selector; messages begin with `origin`. Selecting throws UserError for a problem of
// another workload, and for options and features that the workload does not have. If the choice cannot be
// built, the selector tries the default knobs of all patterns.
Selector tree_selector(const TreeSelector& trees, const std::string& origin);

}  // namespace tritax
