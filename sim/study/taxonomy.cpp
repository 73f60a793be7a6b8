#include "sim/study/taxonomy.hpp"

#include <algorithm>
#include <cmath>

namespace tritax {

namespace {

// The time of a pattern at a point; none if it cannot be built.
std::optional<double> time_of(const SweepPoint& point, const Pattern& pattern) {
  const auto found = std::find_if(point.candidates->begin(), point.candidates->end(),
                                  [&](const Candidate& one) { return one.pattern == &pattern; });
  return found == point.candidates->end() ? std::nullopt : std::optional(found->time_ns);
}

Crossover crossover_between(const SweepPoint& a, const SweepPoint& b) {
  Crossover change;
  const Candidate& first = a.candidates->front();
  const Candidate& second = b.candidates->front();
  change.from = first.pattern;
  change.to = second.pattern;
  const std::optional<double> to_before = time_of(a, *change.to);
  const std::optional<double> from_after = time_of(b, *change.from);
  const auto tied = [](const SweepPoint& at, const Candidate& best, const Pattern& other, double other_ns) {
    return is_tie(best.time_ns, other_ns, at.trust->between(*best.pattern, best.time_ns, other, other_ns));
  };
  change.tie_before = to_before && tied(a, first, *change.to, *to_before);
  change.tie_after = from_after && tied(b, second, *change.from, *from_after);
  if (!to_before || !from_after || !a.value || !b.value) return change;
  const double behind = std::log(*to_before / first.time_ns);
  const double ahead = std::log(*from_after / second.time_ns);
  const double share = behind + ahead > 0 ? behind / (behind + ahead) : 0.5;  // equally fast on both sides
  change.at = *a.value * std::pow(*b.value / *a.value, share);
  return change;
}

}  // namespace

std::vector<Crossover> crossovers_of(const std::vector<SweepPoint>& sweep) {
  std::vector<Crossover> changes;
  std::optional<std::size_t> last;  // the last point with an answer
  for (std::size_t i = 0; i < sweep.size(); ++i) {
    if (sweep[i].candidates->empty()) continue;
    if (last && sweep[*last].candidates->front().pattern != sweep[i].candidates->front().pattern) {
      Crossover& change = changes.emplace_back(crossover_between(sweep[*last], sweep[i]));
      change.before = *last;
      change.after = i;
    }
    last = i;
  }
  return changes;
}

}  // namespace tritax
