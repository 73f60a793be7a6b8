// The answer of a search beside what is known of its predictions: which candidates are a tie, and which times
// are known to be doubtful.
#pragma once

#include <string>
#include <vector>

#include "sim/study/advise.hpp"
#include "sim/study/standing.hpp"
#include "sim/study/verdict.hpp"

namespace tritax {

// What is said of the answer to a question.
struct Judged {
  Standing standing;
  double band = 0;                   // of the ratio of the rivals (why.hpp), with luck; 0: unknown
  std::vector<double> bands;         // of the time of every candidate, with luck; 0: unknown
  std::vector<int> tied_with;        // of every candidate the first rank that no band parts it from
  std::vector<const Doubt*> doubts;  // of every candidate; nullptr for most
};

// Of candidates, best first.
Judged judged(const Problem& problem, const Machine& machine, const std::vector<Candidate>& candidates,
              const std::vector<ComparedSet>& compared = shipped_comparisons());

// The verdict on the rivals among candidates (verdict.hpp, why.hpp), and its sentence. `alone` and "" where
// there are no two to compare.
struct Answered {
  Verdict verdict = Verdict::alone;
  std::string sentence;
};
Answered verdict_of(const Problem& problem, const std::vector<Candidate>& candidates,
                    const Judged& judgement);

// The verdict on one own pattern, which takes `time_ns` with knobs that nobody searched, beside the library
// of its workload in the same launch mode. `alone` and "" of a library, and where there is none. Throws
// what `build_schedule` and `simulate` throw.
Answered verdict_beside_library(const Problem& problem, const Machine& machine, const Pattern& pattern,
                                const Values& knobs, double time_ns, std::uint64_t seed);

// The verdict where own kernels are written otherwise (model/workload/kernel_class.hpp): on the fastest own
// pattern then, with the knobs of its row. These knobs were not searched for that class, and no band is of
// it: it may pay, or the answer is unknown. One a class that any candidate has a time for; none where no
// library is what is there.
struct ClassVerdict {
  const Pattern* pattern = nullptr;
  ClassTime time;
  Verdict verdict = Verdict::alone;
};
std::vector<ClassVerdict> class_verdicts(const Problem& problem, const std::vector<Candidate>& candidates,
                                         const Judged& judgement);

}  // namespace tritax
