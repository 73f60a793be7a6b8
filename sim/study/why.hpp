// Why the winner of a search wins: two to four sentences, each computed from the runs that are compared.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/study/advise.hpp"

namespace tritax {

// `candidates`: one a pattern, best first, as in Advice. Empty for no candidates.
std::vector<std::string> explain_winner(std::span<const Candidate> candidates, const Problem& problem);

// What is to be known first: that the best of the other patterns is slower than the baseline, the vendor's
// libraries, or faster by less than `band` (relative; 0: how far predictions are off is unknown), and what it
// pays that the baseline does not. "" where it is ahead, or one of the two is missing.
std::string verdict_on_baseline(std::span<const Candidate> candidates, const Problem& problem, double band);

}  // namespace tritax
