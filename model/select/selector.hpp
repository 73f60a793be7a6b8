// Which candidates of a question are worth a simulation.
//
// A candidate is a pattern with knobs. A *selector* proposes candidates; *trials* say how long each takes, or
// that it cannot be built, or that a lower bound of its time (bounds.hpp) rules it out. The one knows no
// simulator, the other no strategy. Of every pattern the fastest candidate that was simulated counts, so a
// selector returns nothing: all it decides is what to try next, with what it has heard so far.
//
// A selector is a function, declared in selectors.hpp, and a row of selectors(). This one tries what every
// pattern does by default:
//
//   void select_defaults(const Choices& choices, Trials& trials) {
//     std::vector<Proposal> starts;
//     for (std::size_t p = 0; p < choices.patterns.size(); ++p) {
//       const auto& space = choices.patterns[p].space;
//       if (space) starts.push_back({p, *compose(*space, start_of(*space))});
//     }
//     trials.evaluate(starts);
//   }
//
// The answer must not depend on the number of threads: what a selector proposes follows from outcomes alone,
// and outcomes come in the order of the proposals.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/machine/machine.hpp"
#include "model/select/bounds.hpp"
#include "model/workload/knob_space.hpp"
#include "model/workload/workload.hpp"

namespace tritax {

inline constexpr double kNever = std::numeric_limits<double>::infinity();

struct PatternChoices {
  const Pattern* pattern = nullptr;
  std::optional<KnobSpace> space;  // what may be tried; empty if nothing of it can be built …
  std::string refusal;             // … and why
};

struct Choices {
  const Problem* problem = nullptr;
  const Machine* machine = nullptr;
  std::vector<PatternChoices> patterns;  // all of the workload, in the order of its table
};

// `pins`: knobs of the workload that are given are held fixed; may be empty. Libraries and own patterns are
// launched in one mode (model/workload/launching.hpp). A workload that does not say what may be varied has
// the default knobs alone.
Choices choices_of(const Problem& problem, const Machine& machine, const Values& pins);

struct Proposal {
  std::size_t pattern = 0;  // its place in Choices::patterns
  Values knobs;
  bool bound_only = false;      // only its lower bound is asked for
  double worth_ns = kNever;     // not simulated if a lower bound of its time is not below this
  double give_up_after_ns = 0;  // its simulation stops once it is certain to take longer; 0: never
};

enum class Outcome : std::uint8_t {
  stopped,    // nobody knows: somebody stopped the search
  refused,    // it cannot be built
  bounded,    // its bound alone was asked for
  pruned,     // its bound is not below `worth_ns`, or above `give_up_after_ns`
  gave_up,    // it takes longer than `give_up_after_ns`
  simulated,  // in full; only then has it a time
};

struct Trial {
  Outcome outcome = Outcome::stopped;
  TimeBound bound;  // of its schedule, if that was built
  double time_ns = kNever;
};

class Trials {
 public:
  // Side by side; the outcomes come in the order of the proposals.
  virtual std::vector<Trial> evaluate(std::span<const Proposal> proposals) = 0;

  // A time below which no schedule of the knobs comes, without building one; nothing for knobs that cannot
  // be.
  virtual std::optional<double> least_ns(std::size_t pattern, const Values& knobs) = 0;

  // For who watches, after a batch: how many the selector has ruled out by their bounds since the last
  // report, and how many that it has listed are not decided yet.
  virtual void report(std::int64_t ruled_out, std::int64_t remaining) = 0;

  // Nothing more will be tried of this pattern: where its time goes can be found out meanwhile.
  virtual void settled(std::size_t pattern) = 0;

  // The search of a pattern has ended before it was tuned: nothing that was tried of it takes less than
  // `at_least_ns`, by which others are far ahead.
  virtual void not_tuned(std::size_t pattern, double at_least_ns) = 0;

  // Whether to end with the best so far.
  virtual bool stopped() const = 0;

 protected:
  ~Trials() = default;  // a selector owns none
};

struct Selector {
  std::string_view name;     // "search"
  std::string_view summary;  // what it tries, one line
  std::function<void(const Choices& choices, Trials& trials)> select;
  // Why it tries what it tries for a problem, in a sentence; empty where its summary says all.
  std::function<std::string(const Problem& problem)> why = nullptr;

  // Whether it tries more than default knobs.
  bool searches() const { return name != "defaults"; }
};

// The first is the usual one.
std::span<const Selector> selectors();

// Throws UserError that lists the names, with the nearest one offered. `where` is the option to blame.
const Selector& find_selector(std::string_view name, const std::string& where);

}  // namespace tritax
