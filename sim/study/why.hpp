// Why the winner of a search wins: two to four sentences, each computed from the runs that are compared.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/study/advise.hpp"

namespace tritax {

// `candidates`: one a pattern, best first, as in Advice. Empty for no candidates.
std::vector<std::string> explain_winner(std::span<const Candidate> candidates, const Problem& problem);

// What is to be known first, one sentence: whether building the best of the other patterns pays against the
// baseline, the vendor's libraries. Where it is slower, or faster by less than `band` (relative), what it
// pays that the baseline does not; where it is faster by more, by how much; whether that is to be trusted
// depends on whether the band is known (not 0) and anything like it was ever `compared` with a measurement.
// "" where one of the two is missing.
std::string verdict_on_baseline(std::span<const Candidate> candidates, const Problem& problem, double band,
                                bool compared);

}  // namespace tritax
