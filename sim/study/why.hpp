// Why the winner of a search wins: two to four sentences, each computed from the runs that are compared.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/study/advise.hpp"
#include "sim/study/verdict.hpp"

namespace tritax {

// `candidates`: one a pattern, best first, as in Advice. Empty for no candidates.
std::vector<std::string> explain_winner(std::span<const Candidate> candidates, const Problem& problem);

// What a verdict compares: the best pattern that one would build, and the best of those that are there
// without, the baseline and all that stand for a vendor's libraries. Null where there is none.
struct Rivals {
  const Candidate* own = nullptr;
  const Candidate* there = nullptr;
  bool chosen = false;  // the own one was asked for; else it is the best of several
};
// Of candidates, best first.
Rivals rivals_of(std::span<const Candidate> candidates, const Workload& workload);

// What is to be known first: the verdict (verdict.hpp) and what it rests on, in a sentence or two. Where the
// own one is slower, or closer than predictions are off, also what it pays that the other does not. Of a
// rival that is no library nothing says that one would not have to build that, too: then nothing is left to
// it. "" where one of the two is missing.
std::string verdict_sentence(const Rivals& rivals, const Workload& workload, const Contest& contest);

}  // namespace tritax
