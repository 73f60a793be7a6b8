// The answer of a search beside what is known of its predictions: which candidates are a tie, and which times
// are known to be doubtful.
#pragma once

#include <string>
#include <vector>

#include "sim/study/advise.hpp"
#include "sim/study/standing.hpp"

namespace tritax {

// What is said of the answer to a question.
struct Judged {
  Standing standing;
  double band = 0;                   // the residual, widened by the luck of the first candidate; 0: unknown
  std::vector<int> tied_with;        // of every candidate the first rank that the band cannot part it from
  std::vector<const Doubt*> doubts;  // of every candidate; nullptr for most
};

// Of candidates, best first.
Judged judged(const Problem& problem, const Machine& machine, const std::vector<Candidate>& candidates);

// Whether building pays (why.hpp), and which of the two times that this compares is doubted. "" where there
// are no two to compare.
std::string verdict_of(const Problem& problem, const std::vector<Candidate>& candidates,
                       const Judged& judgement);

}  // namespace tritax
