#include "sim/study/judged.hpp"

#include <algorithm>

#include "sim/study/why.hpp"

namespace tritax {

Judged judged(const Problem& problem, const Machine& machine, const std::vector<Candidate>& candidates) {
  Judged judgement;
  judgement.standing = standing_of(problem, machine);
  std::vector<double> times_ns;
  for (const Candidate& candidate : candidates) {
    times_ns.push_back(candidate.time_ns);
    judgement.doubts.push_back(doubt_of(problem, candidate.pattern->name, machine));
  }
  const double residual = judgement.standing.residual;
  // Spreads are those of the winner and of the baseline.
  double luck = 0;
  for (const Candidate& candidate : candidates) luck = std::max(luck, candidate.spread.relative());
  judgement.band = residual > 0 ? widened(residual, luck) : 0;
  judgement.tied_with = ranks_with_ties(times_ns, judgement.band);
  return judgement;
}

namespace {

// Of an own pattern and a library among the candidates.
Contest contest_of(const Candidate& own, const Candidate& there, const std::vector<Candidate>& candidates,
                   const Judged& judgement) {
  const auto doubted = [&](const Candidate& one) {
    return judgement.doubts[static_cast<std::size_t>(&one - candidates.data())] != nullptr;
  };
  Contest contest;
  contest.own_ns = own.time_ns;
  contest.there_ns = there.time_ns;
  contest.band = judgement.band;
  contest.compared = judgement.standing.cautions.empty();
  contest.own_doubted = doubted(own);
  contest.library_doubted = doubted(there);
  contest.searched = own.searched;
  return contest;
}

}  // namespace

Answered verdict_of(const Problem& problem, const std::vector<Candidate>& candidates,
                    const Judged& judgement) {
  const Workload& workload = *problem.workload;
  const Rivals rivals = rivals_of(candidates, workload);
  if (rivals.own == nullptr || rivals.there == nullptr) return {};
  const Contest contest = contest_of(*rivals.own, *rivals.there, candidates, judgement);
  return {verdict_on(contest), verdict_sentence(rivals, workload, contest)};
}

std::vector<ClassVerdict> class_verdicts(const Problem& problem, const std::vector<Candidate>& candidates,
                                         const Judged& judgement) {
  const Rivals rivals = rivals_of(candidates, *problem.workload);
  std::vector<ClassVerdict> verdicts;
  if (rivals.there == nullptr || !rivals.there->pattern->vendor) return verdicts;
  for (const KernelClass kernels : {KernelClass::vendor, KernelClass::triton}) {
    const Candidate* fastest = nullptr;
    ClassVerdict best;
    for (const Candidate& candidate : candidates) {
      for (const ClassTime& one : candidate.classes) {
        if (one.kernels != kernels || (fastest != nullptr && one.time_ns >= best.time.time_ns)) continue;
        fastest = &candidate;
        best = {candidate.pattern, one, Verdict::alone};
      }
    }
    if (fastest == nullptr) continue;
    Contest contest = contest_of(*fastest, *rivals.there, candidates, judgement);
    contest.own_ns = best.time.time_ns;
    contest.compared = false;
    best.verdict = verdict_on(contest);
    verdicts.push_back(best);
  }
  return verdicts;
}

}  // namespace tritax
