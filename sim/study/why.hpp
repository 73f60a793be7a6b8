// Explains why the winner of a search wins: two to four sentences, each computed from the compared runs.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/study/advise.hpp"
#include "sim/study/verdict.hpp"

namespace tritax {

// `candidates`: one per pattern, best first, as in Advice. Empty without candidates.
std::vector<std::string> explain_winner(std::span<const Candidate> candidates, const Problem& problem);

// The two sides of a verdict: the best pattern that one would have to build, and the best pattern that exists
// already: the baseline and all patterns that stand for a vendor's libraries. Null if there is none.
struct Rivals {
  const Candidate* own = nullptr;
  const Candidate* there = nullptr;
  bool chosen = false;  // the own pattern was asked for; else it is the best of several
};
// Rivals among candidates, best first.
Rivals rivals_of(std::span<const Candidate> candidates, const Workload& workload);

// The main result: the verdict (verdict.hpp) and its reason, in a sentence or two. If the own pattern is
// slower, or closer than the error of predictions, also the costs that the other does not have. If the rival
// is no library, it might have to be built, too: then the sentence does not leave the work to the rival. ""
// if one of the two is missing.
std::string verdict_sentence(const Rivals& rivals, const Workload& workload, const Contest& contest);

}  // namespace tritax
