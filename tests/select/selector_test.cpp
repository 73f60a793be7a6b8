// Selectors with trials whose times are known: their proposals, and when they stop.
#include "model/select/selector.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "model/core/error.hpp"
#include "tests/workloads/gemm_all_scatter.hpp"

namespace tritax {
namespace {

// Times and bounds by a law instead of a simulator; keeps what was proposed.
class LawTrials final : public Trials {
 public:
  std::function<double(const Proposal&)> time_ns;
  std::function<double(const Proposal&)> bound_ns = [](const Proposal&) { return 0.0; };
  std::size_t stop_after = std::size_t(-1);  // so many proposals

  std::vector<Trial> evaluate(std::span<const Proposal> proposals) override {
    std::vector<Trial> trials;
    for (const Proposal& proposal : proposals) {
      Trial& trial = trials.emplace_back();
      if (stopped()) continue;
      all.push_back(proposal);
      trial.bound.total_ns = bound_ns(proposal);
      const double ns = time_ns(proposal);
      const bool slow = proposal.give_up_after_ns > 0 && ns > proposal.give_up_after_ns;
      trial.outcome = proposal.bound_only                         ? Outcome::bounded
                      : trial.bound.total_ns >= proposal.worth_ns ? Outcome::pruned
                      : slow                                      ? Outcome::gave_up
                                                                  : Outcome::simulated;
      if (trial.outcome != Outcome::simulated) continue;
      trial.time_ns = ns;
      simulated.push_back(proposal);
      double& best = best_ns.try_emplace(proposal.pattern, kNever).first->second;
      best = std::min(best, ns);
    }
    return trials;
  }
  std::optional<double> least_ns(std::size_t, const Values&) override { return 0; }
  void report(std::int64_t ruled_out, std::int64_t remaining) override {
    all_ruled_out += ruled_out;
    last_remaining = remaining;
  }
  void settled(std::size_t pattern) override { settled_patterns.insert(pattern); }
  void not_tuned(std::size_t pattern, double at_least_ns) override { untuned[pattern] = at_least_ns; }
  bool stopped() const override { return all.size() >= stop_after; }

  std::vector<Proposal> all, simulated;
  std::map<std::size_t, double> best_ns;
  std::set<std::size_t> settled_patterns;
  std::map<std::size_t, double> untuned;  // what it takes at least
  std::int64_t all_ruled_out = 0, last_remaining = -1;
};

class Selectors : public testing::Test {
 protected:
  const Machine machine = find_machine("mi300x-8");
  const Problem problem = problem_of(GemmAllScatter{2048, 4096, 4096, DType::fp16, 8});
  const Choices choices = choices_of(problem, machine, {});

  void select(std::string_view name, LawTrials& trials) const {
    find_selector(name, "test").select(choices, trials);
  }
};

// A knob has its own best value whatever the others are; a change by a factor counts the same everywhere.
double off_by(const Values& knobs, std::string_view column, double best) {
  return std::abs(std::log2(static_cast<double>(knobs.get_or(column, 1)) / best));
}
double separable_ns(const Proposal& proposal) {
  return 1000 * (1 + off_by(proposal.knobs, "tile_m", 128) + off_by(proposal.knobs, "tile_n", 64) +
                 off_by(proposal.knobs, "waves", 8) + off_by(proposal.knobs, "group_m", 4));
}

TEST_F(Selectors, SearchFindsTheLowestPointOfALawWhoseKnobsDoNotInteract) {
  LawTrials trials;
  trials.time_ns = separable_ns;
  select("search", trials);
  for (std::size_t p = 0; p < choices.patterns.size(); ++p) {
    if (!choices.patterns[p].pattern->uses("tile")) continue;
    EXPECT_DOUBLE_EQ(trials.best_ns.at(p), 1000) << choices.patterns[p].pattern->name;
  }
}

TEST_F(Selectors, SearchProposesNothingTwice) {
  LawTrials trials;
  trials.time_ns = separable_ns;
  select("search", trials);
  std::set<std::string> seen;
  for (const Proposal& proposal : trials.all) {
    EXPECT_TRUE(seen.insert(std::to_string(proposal.pattern) + key_of(proposal.knobs)).second);
  }
}

TEST_F(Selectors, SearchSettlesWhatIsOutOfReach) {
  LawTrials trials;
  trials.time_ns = [](const Proposal& proposal) {
    return separable_ns(proposal) * (proposal.pattern == 1 ? 1 : 3);
  };
  select("search", trials);
  EXPECT_FALSE(trials.settled_patterns.contains(1));
  EXPECT_EQ(trials.settled_patterns.size(), choices.patterns.size() - 1);
}

TEST_F(Selectors, BoundsSimulateTheStartAndFourWithTheLowestBoundsOfEveryPattern) {
  LawTrials trials;
  trials.bound_ns = separable_ns;
  trials.time_ns = [](const Proposal& proposal) { return 1.01 * separable_ns(proposal); };
  select("bounds", trials);
  for (std::size_t p = 0; p < choices.patterns.size(); ++p) {
    if (!choices.patterns[p].pattern->uses("tile")) continue;
    double lowest_ns = kNever;
    for (const Option& option : coarse_choices(*choices.patterns[p].space)) {
      lowest_ns = std::min(lowest_ns, separable_ns({p, option.knobs}));
    }
    EXPECT_DOUBLE_EQ(trials.best_ns.at(p), 1.01 * lowest_ns) << choices.patterns[p].pattern->name;
    const auto tried = std::count_if(trials.all.begin(), trials.all.end(), [&](const Proposal& proposal) {
      return proposal.pattern == p && !proposal.bound_only;
    });
    EXPECT_LE(tried, 5) << choices.patterns[p].pattern->name;
  }
  EXPECT_GT(trials.all_ruled_out, 0);
  EXPECT_EQ(trials.last_remaining, 0);
}

TEST_F(Selectors, DefaultsSimulateTheStartOfEveryPatternAndNothingElse) {
  LawTrials trials;
  trials.time_ns = separable_ns;
  select("defaults", trials);
  ASSERT_EQ(trials.all.size(), choices.patterns.size());
  for (std::size_t p = 0; p < choices.patterns.size(); ++p) {
    EXPECT_EQ(trials.all[p].pattern, p);
    EXPECT_EQ(trials.all[p].knobs,
              *compose(*choices.patterns[p].space, start_of(*choices.patterns[p].space)));
  }
}

TEST_F(Selectors, AllTryTheDefaultsFirstAndEndWhenStopped) {
  for (const Selector& selector : selectors()) {
    LawTrials trials;
    trials.time_ns = separable_ns;
    trials.stop_after = choices.patterns.size();
    selector.select(choices, trials);
    ASSERT_EQ(trials.simulated.size(), choices.patterns.size()) << selector.name;
    for (const Proposal& proposal : trials.simulated) {
      const KnobSpace& space = *choices.patterns[proposal.pattern].space;
      EXPECT_EQ(proposal.knobs, *compose(space, start_of(space))) << selector.name;
    }
  }
}

TEST_F(Selectors, ChoicesSayWhyNothingOfAPatternFits) {
  Values pins(problem.workload->knobs);
  pins.give("comm_cus", 304);
  pins.give("gemm_cus", 304);
  const Choices pinned = choices_of(problem, machine, pins);
  ASSERT_EQ(pinned.patterns.size(), problem.workload->patterns.size());
  for (const PatternChoices& row : pinned.patterns) {
    EXPECT_NE(row.space.has_value(), !row.refusal.empty()) << row.pattern->name;
  }
}

TEST(FindSelector, RefusesAnUnknownNameWithTheListAndTheNearest) {
  EXPECT_EQ(&find_selector("search", "--selector"), &selectors().front());
  try {
    find_selector("bound", "--selector");
    FAIL() << "accepted";
  } catch (const UserError& error) {
    EXPECT_STREQ(
        error.what(),
        "--selector: unknown selector 'bound', did you mean 'bounds'?; the selectors are search, bounds, "
        "defaults");
  }
}

}  // namespace
}  // namespace tritax
