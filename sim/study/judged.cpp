#include "sim/study/judged.hpp"

#include <fmt/format.h>

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
  const double luck = candidates.empty() ? 0 : candidates.front().spread.relative();
  judgement.band = residual > 0 ? widened(residual, luck) : 0;
  judgement.tied_with = ranks_with_ties(times_ns, judgement.band);
  return judgement;
}

std::string verdict_of(const Problem& problem, const std::vector<Candidate>& candidates,
                       const Judged& judgement) {
  const Workload& workload = *problem.workload;
  const Rivals rivals = rivals_of(candidates, workload);
  std::string verdict =
      verdict_on_rivals(rivals, workload, judgement.band, judgement.standing.cautions.empty());
  if (verdict.empty()) return verdict;
  for (const Candidate* rival : {rivals.own, rivals.there}) {
    if (judgement.doubts[static_cast<std::size_t>(rival - candidates.data())] == nullptr) continue;
    verdict += fmt::format(" But the time of {} is uncertain.", rival->pattern->name);
  }
  return verdict;
}

}  // namespace tritax
