// Selectors decide which candidates of a question are worth a simulation.
//
// A candidate is a pattern with knobs. A *selector* proposes candidates; *trials* return the time of each
// candidate, or that it cannot be built, or that a lower bound of its time (bounds.hpp) rules it out. A
// selector knows no simulator, trials know no strategy. The result per pattern is the fastest simulated
// candidate, so a selector returns nothing: it only decides what to try next, from the outcomes so far.
//
// A selector is a function, declared in selectors.hpp, and a row of selectors(). This selector tries the
// default knobs of every pattern:
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
// The answer must not depend on the number of threads: proposals of a selector depend on outcomes alone, and
// outcomes come in the order of the proposals.
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
  std::optional<KnobSpace> space;  // what may be tried; empty if nothing can be built …
  std::string refusal;             // … and why
};

struct Choices {
  const Problem* problem = nullptr;
  const Machine* machine = nullptr;
  std::vector<PatternChoices> patterns;  // all of the workload, in the order of its table
};

// `pins`: given knobs of the workload stay fixed; may be empty. Libraries and own patterns are launched in
// one mode (model/workload/launching.hpp). A workload without a knob space has only the default knobs.
Choices choices_of(const Problem& problem, const Machine& machine, const Values& pins);

struct Proposal {
  std::size_t pattern = 0;  // its place in Choices::patterns
  Values knobs;
  bool bound_only = false;      // requests only the lower bound
  double worth_ns = kNever;     // not simulated unless a lower bound of its time is below this
  double give_up_after_ns = 0;  // its simulation stops when it certainly takes longer; 0: never
};

enum class Outcome : std::uint8_t {
  stopped,    // unknown: the search was stopped
  refused,    // the schedule cannot be built
  bounded,    // only the bound was requested
  pruned,     // its bound is not below `worth_ns`, or above `give_up_after_ns`
  gave_up,    // it takes longer than `give_up_after_ns`
  simulated,  // in full; only this outcome has a time
};

struct Trial {
  Outcome outcome = Outcome::stopped;
  TimeBound bound;  // of its schedule, if the schedule was built
  double time_ns = kNever;
};

class Trials {
 public:
  // Evaluates proposals in parallel; the outcomes come in the order of the proposals.
  virtual std::vector<Trial> evaluate(std::span<const Proposal> proposals) = 0;

  // Lower bound of the time of every schedule with these knobs, without building one; nothing for invalid
  // knobs.
  virtual std::optional<double> least_ns(std::size_t pattern, const Values& knobs) = 0;

  // Progress report after a batch: how many candidates were ruled out by their bounds since the last report,
  // and how many listed candidates are undecided.
  virtual void report(std::int64_t ruled_out, std::int64_t remaining) = 0;

  // Nothing more will be tried of this pattern, so its time can be analysed in parallel.
  virtual void settled(std::size_t pattern) = 0;

  // The search of a pattern has ended before it was tuned: no tried candidate takes less than `at_least_ns`,
  // and other patterns are far ahead.
  virtual void not_tuned(std::size_t pattern, double at_least_ns) = 0;

  // Whether to end with the best result so far.
  virtual bool stopped() const = 0;

 protected:
  ~Trials() = default;  // a selector does not own trials
};

struct Selector {
  std::string_view name;     // "search"
  std::string_view summary;  // what it tries, one line
  std::function<void(const Choices& choices, Trials& trials)> select;
  // Reason for its candidates for a problem, in a sentence; empty if the summary says everything.
  std::function<std::string(const Problem& problem)> why = nullptr;

  // Whether the selector tries more than default knobs.
  bool searches() const { return name != "defaults"; }
};

// The first is the default.
std::span<const Selector> selectors();

// Throws UserError that lists the names, with the nearest one offered. `where` is the option to blame.
const Selector& find_selector(std::string_view name, const std::string& where);

}  // namespace tritax
