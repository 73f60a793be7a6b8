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

Answered verdict_of(const Problem& problem, const std::vector<Candidate>& candidates,
                    const Judged& judgement) {
  const Workload& workload = *problem.workload;
  const Rivals rivals = rivals_of(candidates, workload);
  if (rivals.own == nullptr || rivals.there == nullptr) return {};
  const auto doubted = [&](const Candidate* one) {
    return judgement.doubts[static_cast<std::size_t>(one - candidates.data())] != nullptr;
  };
  Contest contest;
  contest.own_ns = rivals.own->time_ns;
  contest.there_ns = rivals.there->time_ns;
  contest.band = judgement.band;
  contest.compared = judgement.standing.cautions.empty();
  contest.own_doubted = doubted(rivals.own);
  contest.library_doubted = doubted(rivals.there);
  contest.searched = rivals.own->searched;
  return {verdict_on(contest), verdict_sentence(rivals, workload, contest)};
}

}  // namespace tritax
