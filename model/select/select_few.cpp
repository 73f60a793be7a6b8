#include <algorithm>
#include <set>

#include "model/select/selectors.hpp"

namespace tritax {

namespace {

// Simulations per pattern besides its start.
constexpr std::size_t kFew = 4;

// The start of a search of every pattern.
std::vector<Proposal> starts_of(const Choices& choices) {
  std::vector<Proposal> starts;
  for (std::size_t p = 0; p < choices.patterns.size(); ++p) {
    const std::optional<KnobSpace>& space = choices.patterns[p].space;
    if (!space) continue;
    if (auto knobs = compose(*space, start_of(*space))) starts.push_back({p, std::move(*knobs)});
  }
  return starts;
}

// Candidates for bounds, and their groups (shapes of tiles).
struct Listed {
  std::vector<Proposal> proposals;
  std::vector<int> groups;
  std::int64_t ruled_out = 0;
};

// The coarse choices of all patterns that may beat `best_ns` of their pattern, by the bound before a schedule
// is built.
Listed promising(const Choices& choices, const std::vector<double>& best_ns, Trials& trials) {
  Listed listed;
  for (std::size_t p = 0; p < choices.patterns.size(); ++p) {
    const std::optional<KnobSpace>& space = choices.patterns[p].space;
    if (!space) continue;
    for (Option& option : coarse_choices(*space)) {
      const std::optional<double> least_ns = trials.least_ns(p, option.knobs);
      if (!least_ns) continue;
      if (*least_ns >= best_ns[p]) {
        ++listed.ruled_out;
      } else {
        listed.proposals.push_back({p, std::move(option.knobs), true});
        listed.groups.push_back(group_of(*space, option.choice));
      }
    }
  }
  return listed;
}

// The `kFew` candidates per pattern with the lowest bounds, to be simulated while they beat `best_ns`. One
// candidate of every group comes first: a bound sees no contention, and may rate all splits of one tile
// equally.
std::vector<Proposal> lowest(const Listed& listed, std::span<const Trial> bounds,
                             const std::vector<double>& best_ns) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    if (bounds[i].outcome == Outcome::bounded) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return bounds[a].bound.total_ns < bounds[b].bound.total_ns;
  });
  std::set<std::pair<std::size_t, int>> seen;
  std::stable_partition(order.begin(), order.end(), [&](std::size_t i) {
    return seen.insert({listed.proposals[i].pattern, listed.groups[i]}).second;
  });
  std::vector<std::size_t> taken(best_ns.size(), 0);
  std::vector<Proposal> few;
  for (const std::size_t i : order) {
    const std::size_t pattern = listed.proposals[i].pattern;
    if (taken[pattern]++ >= kFew) continue;
    const double limit_ns = best_ns[pattern];
    few.push_back({pattern, listed.proposals[i].knobs, false, limit_ns, limit_ns == kNever ? 0 : limit_ns});
  }
  return few;
}

}  // namespace

void select_defaults(const Choices& choices, Trials& trials) {
  trials.evaluate(starts_of(choices));
  trials.report(0, 0);
}

void select_by_bound(const Choices& choices, Trials& trials) {
  const std::vector<Proposal> starts = starts_of(choices);
  const std::vector<Trial> begun = trials.evaluate(starts);
  std::vector<double> best_ns(choices.patterns.size(), kNever);
  for (std::size_t i = 0; i < starts.size(); ++i) best_ns[starts[i].pattern] = begun[i].time_ns;
  const Listed listed = promising(choices, best_ns, trials);
  trials.report(listed.ruled_out, static_cast<std::int64_t>(listed.proposals.size()));
  if (trials.stopped()) return;
  const std::vector<Trial> bounds = trials.evaluate(listed.proposals);
  const std::vector<Proposal> few = lowest(listed, bounds, best_ns);
  trials.evaluate(few);
  const auto bounded = std::count_if(bounds.begin(), bounds.end(),
                                     [](const Trial& one) { return one.outcome == Outcome::bounded; });
  trials.report(bounded - static_cast<std::int64_t>(few.size()), 0);
}

}  // namespace tritax
