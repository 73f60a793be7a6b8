// The answers of decision trees (decision_tree.hpp) as patterns with knobs, their features as numbers of a
// problem, and a selector of both: it tries what the trees choose, and the baseline to compare with.
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
  Values knobs;  // those that are named are given

  std::string name() const;
};

// Throws UserError that begins with `place` for a pattern or knob that the workload does not have, or a value
// that the knob does not.
PatternOption parse_pattern_option(const Workload& workload, const std::string& text,
                                   const std::string& place);

// What features of a problem are made of: the columns of its fields, "flops" of all GPUs, and "bytes" that
// one GPU exchanges, 0 where the workload does not say. Their product and quotient may be features too.
std::vector<std::string> problem_numbers(const Workload& workload);
// The value of a feature. Throws UserError that begins with `place` for what the workload does not have.
double problem_feature(const Problem& problem, std::string_view feature, const std::string& place);

// `trees` outlives the selector; `origin` stands in front of messages. Selecting throws UserError for a
// problem of another workload, and for options and features that the workload does not have. Where what is
// chosen cannot be built the default knobs of all patterns are tried.
Selector tree_selector(const TreeSelector& trees, const std::string& origin);

}  // namespace tritax
