#include "sim/study/assessment.hpp"

#include <algorithm>
#include <utility>

#include "model/workload/launching.hpp"
#include "sim/simulate.hpp"
#include "sim/study/why.hpp"

namespace tritax {

Assessment assess(const Problem& problem, const Machine& machine, const std::vector<Candidate>& candidates,
                  const std::vector<ComparedSet>& compared) {
  Assessment assessment;
  Trust& trust = assessment.trust = trust_of(problem, machine, compared);
  const auto with_spread = [](double band, double spread) { return band > 0 ? widened(band, spread) : 0; };
  std::vector<double> times_ns;
  // Only the winner and the baseline have spreads.
  double spread = 0;
  for (const Candidate& one : candidates) {
    times_ns.push_back(one.time_ns);
    spread = std::max(spread, one.spread.relative());
    assessment.doubts.push_back(doubt_of(problem, one.pattern->name, machine));
    assessment.bands.push_back(with_spread(trust.of(*one.pattern, one.time_ns), one.spread.relative()));
    const std::string_view untimed = untimed_of(*problem.workload, *one.pattern, one.knobs);
    if (!untimed.empty() &&
        std::find(trust.cautions.begin(), trust.cautions.end(), untimed) == trust.cautions.end())
      trust.cautions.emplace_back(untimed);
  }
  const auto between = [&](const Candidate& a, const Candidate& b) {
    return with_spread(trust.between(*a.pattern, a.time_ns, *b.pattern, b.time_ns), spread);
  };
  assessment.tied_with = ranks_with_ties(
      times_ns, [&](std::size_t i, std::size_t j) { return between(candidates[i], candidates[j]); });
  const Rivals rivals = rivals_of(candidates, *problem.workload);
  if (rivals.own != nullptr && rivals.there != nullptr) assessment.band = between(*rivals.own, *rivals.there);
  return assessment;
}

namespace {

// The contest of an own pattern and a library among the candidates.
Contest contest_of(const Candidate& own, const Candidate& there, const std::vector<Candidate>& candidates,
                   const Assessment& assessment) {
  const auto doubted = [&](const Candidate& one) {
    return assessment.doubts[static_cast<std::size_t>(&one - candidates.data())] != nullptr;
  };
  Contest contest;
  contest.own_ns = own.time_ns;
  contest.there_ns = there.time_ns;
  contest.band = assessment.band;
  contest.compared = assessment.trust.cautions.empty();
  contest.own_doubted = doubted(own);
  contest.library_doubted = doubted(there);
  contest.searched = own.searched;
  return contest;
}

}  // namespace

Answered verdict_of(const Problem& problem, const std::vector<Candidate>& candidates,
                    const Assessment& assessment) {
  const Workload& workload = *problem.workload;
  const Rivals rivals = rivals_of(candidates, workload);
  if (rivals.own == nullptr || rivals.there == nullptr) return {};
  const Contest contest = contest_of(*rivals.own, *rivals.there, candidates, assessment);
  return {verdict_on(contest), verdict_sentence(rivals, workload, contest)};
}

Answered verdict_beside_library(const Problem& problem, const Machine& machine, const Pattern& pattern,
                                const Values& knobs, double time_ns, std::uint64_t seed) {
  const Workload& workload = *problem.workload;
  const Pattern* library = baseline_of(workload);
  if (library == nullptr || !library->vendor || is_there(pattern, workload)) return {};
  std::vector<Candidate> both(2);
  Candidate &own = both[0], &there = both[1];
  own.pattern = &pattern;
  own.knobs = knobs;
  own.time_ns = time_ns;
  own.searched = false;
  there.pattern = library;
  Values library_knobs(workload.knobs);
  for (const std::string_view knob : {std::string_view("host_barriers"), kProcessesKnob}) {
    if (knobs.has(knob)) library_knobs.give(knob, knobs[knob]);
  }
  const bool graph =
      knobs.has(kLaunchKnob) && static_cast<LaunchMode>(knobs[kLaunchKnob]) == LaunchMode::graph;
  library_knobs = in_mode(library_knobs, graph ? LaunchMode::graph : LaunchMode::stream, machine);
  there.knobs = resolved_knobs(problem, machine, library_knobs);
  SimulationOptions options;
  options.seed = seed;
  there.time_ns =
      simulate(build_schedule(*library, problem, machine, there.knobs), machine, options).makespan_ns;
  if (there.time_ns < own.time_ns) std::swap(own, there);
  Rivals rivals = rivals_of(both, workload);
  rivals.chosen = true;
  const Contest contest = contest_of(*rivals.own, *rivals.there, both, assess(problem, machine, both));
  return {verdict_on(contest), verdict_sentence(rivals, workload, contest)};
}

std::vector<ClassVerdict> class_verdicts(const Problem& problem, const std::vector<Candidate>& candidates,
                                         const Assessment& assessment) {
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
    Contest contest = contest_of(*fastest, *rivals.there, candidates, assessment);
    contest.own_ns = best.time.time_ns;
    contest.compared = contest.searched = false;
    best.verdict = verdict_on(contest);
    verdicts.push_back(best);
  }
  return verdicts;
}

}  // namespace tritax
