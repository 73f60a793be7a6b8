// The answer of a search with the known quality of its predictions: which candidates are a tie, and which
// times are known to be doubtful.
#pragma once

#include <string>
#include <vector>

#include "sim/study/advise.hpp"
#include "sim/study/trust.hpp"
#include "sim/study/verdict.hpp"

namespace tritax {

// The assessment of an answer.
struct Assessment {
  Trust trust;
  double band = 0;                   // of the ratio of the rivals (why.hpp), spread included; 0: unknown
  std::vector<double> bands;         // by candidate: of its time, spread included; 0: unknown
  std::vector<int> tied_with;        // by candidate: first rank that no band separates from it
  std::vector<const Doubt*> doubts;  // by candidate; nullptr for most
};

// Judges candidates, best first.
Assessment assess(const Problem& problem, const Machine& machine, const std::vector<Candidate>& candidates,
                  const std::vector<ComparedSet>& compared = shipped_comparisons());

// The verdict on the rivals among candidates (verdict.hpp, why.hpp), and its sentence. `alone` and "" if
// there are no two to compare.
struct Answered {
  Verdict verdict = Verdict::alone;
  std::string sentence;
};
Answered verdict_of(const Problem& problem, const std::vector<Candidate>& candidates,
                    const Assessment& assessment);

// The verdict on one own pattern, which takes `time_ns` with knobs that were not searched, against the
// library of its workload in the same launch mode. `alone` and "" if the pattern is a library, or if there is
// none. Throws the errors of `build_schedule` and `simulate`.
Answered verdict_beside_library(const Problem& problem, const Machine& machine, const Pattern& pattern,
                                const Values& knobs, double time_ns, std::uint64_t seed);

// The verdict with own kernels of another class (model/workload/kernel_class.hpp): on the fastest own pattern
// of that class, with the knobs of its row. These knobs were not searched for that class, and no band belongs
// to it: it may pay, or the answer is unknown. One per class for which any candidate has a time; none if the
// pattern that is there is no library.
struct ClassVerdict {
  const Pattern* pattern = nullptr;
  ClassTime time;
  Verdict verdict = Verdict::alone;
};
std::vector<ClassVerdict> class_verdicts(const Problem& problem, const std::vector<Candidate>& candidates,
                                         const Assessment& assessment);

}  // namespace tritax
