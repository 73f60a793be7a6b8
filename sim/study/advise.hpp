// The answer of `tritax advise`: which pattern, with which knobs, is fastest for a problem on a machine, and
// why.
//
// A selector (model/select/selector.hpp) decides which candidates are simulated, an evaluator
// (sim/study/evaluator.hpp) simulates them. `advise` runs the selector, and then finds where the best
// candidate of every pattern spends its time. The answer does not depend on the number of threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/machine/machine.hpp"
#include "model/select/bounds.hpp"
#include "model/select/selector.hpp"
#include "model/workload/kernel_class.hpp"
#include "model/workload/workload.hpp"
#include "sim/simulate.hpp"
#include "sim/study/evaluator.hpp"
#include "sim/study/message_rates.hpp"
#include "sim/study/spread.hpp"

namespace tritax {

struct AdviseOptions {
  int threads = 0;  // 0: all cores
  std::uint64_t seed = 1;
  bool counterfactual = true;          // also find the second account of the taxes (Taxes) of every candidate
  Values pins;                         // given knobs are held fixed; may be empty
  const Selector* selector = nullptr;  // null: the first of selectors()
  const std::atomic<bool>* stop = nullptr;  // once true, the search ends with the best result so far
  std::function<void(const AdviseProgress&)> progress;  // called between batches, on the calling thread
};

// The time of the same run with another value of one knob (Spec::what_if).
struct OtherTime {
  std::string_view sentence;  // with {} for the time
  double time_ns = 0;
};

// The time of the same run with the library called in another form (model/workload/launching.hpp).
struct FormTime {
  std::string_view form;
  double time_ns = 0;
};

// The time with the same knobs, but own kernels of another class (model/workload/kernel_class.hpp).
struct ClassTime {
  KernelClass kernels = KernelClass::own;
  double time_ns = 0;
};

// The best candidate of one pattern.
struct Candidate {
  const Pattern* pattern = nullptr;
  Values knobs;
  double time_ns = 0;
  std::optional<double> speedup;  // time of the baseline / time; empty if the baseline has not been simulated
  Taxes taxes;                    // counterfactual parts are NaN if the search was interrupted
  SimulationResult result;        // run with these knobs
  TimeBound bound;
  Rounds rounds;
  std::vector<OtherTime> others;
  std::vector<FormTime> forms;          // for a library: other forms of the call
  std::vector<ClassTime> classes;       // for the fastest own patterns, if kernels are asked for as `own`
  std::optional<MessageRates> message;  // of a collective alone
  bool searched = true;                 // knobs other than the defaults were tried
  Spread spread;                        // for the winner and the baseline, unless interrupted
  // For a pattern that was stopped before it was tuned, because it is far behind: a lower bound of the time
  // of all tried knobs. The knobs and their time are then the best of a few.
  std::optional<double> at_least_ns;
};

struct Advice {
  std::int64_t evaluated = 0;  // started simulations of candidates …
  std::int64_t given_up = 0;  // … of which so many were stopped early, because they were slower than the best
  std::int64_t pruned = 0;    // candidates ruled out by their lower bound, not simulated
  std::vector<Candidate> candidates;  // one per pattern, best first
  // Sentences: why the first candidate wins. For an interrupted search: why it is ahead so far, without
  // reasons that need another simulation.
  std::vector<std::string> explanation;
  std::vector<std::string> left_out;  // "pattern: reason" for patterns that cannot be built
  bool interrupted = false;
};

// `problem` is complete. Throws UserError for a problem or pins with which no pattern can be built, and the
// errors of `simulate`.
Advice advise(const Problem& problem, const Machine& machine, const AdviseOptions& options = {});

}  // namespace tritax
