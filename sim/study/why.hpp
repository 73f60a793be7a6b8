// Why the winner of a search wins: two to four sentences, each computed from the runs that are compared.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/study/advise.hpp"

namespace tritax {

// `candidates`: one a pattern, best first, as in Advice. Empty for no candidates.
std::vector<std::string> explain_winner(std::span<const Candidate> candidates, const Problem& problem);

}  // namespace tritax
