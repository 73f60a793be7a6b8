#include "sim/study/judged.hpp"

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
  const double luck = candidates.empty() ? 0 : candidates.front().spread.relative();
  judgement.band = residual > 0 ? widened(residual, luck) : 0;
  judgement.tied_with = ranks_with_ties(times_ns, judgement.band);
  return judgement;
}

}  // namespace tritax
