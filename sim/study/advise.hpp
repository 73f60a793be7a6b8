// The answer of `tritax advise`: which pattern, with which knobs, is fastest for a problem on a machine, and
// why.
//
// A selector (model/select/selector.hpp) decides which candidates are simulated, an evaluator
// (sim/study/evaluator.hpp) simulates them; this asks the first, and then finds out where the time of the
// best of every pattern goes. The answer does not depend on the number of threads.
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
#include "sim/study/spread.hpp"

namespace tritax {

struct AdviseOptions {
  int threads = 0;  // 0: all cores
  std::uint64_t seed = 1;
  bool counterfactual = true;          // find the second account of the taxes (Taxes) of every candidate too
  Values pins;                         // knobs of the workload that are given are held fixed; may be empty
  const Selector* selector = nullptr;  // null: the first of selectors()
  const std::atomic<bool>* stop = nullptr;  // when it becomes true the search ends with the best so far
  std::function<void(const AdviseProgress&)> progress;  // called between batches, on the calling thread
};

// The same run with another value of one knob (Spec::what_if).
struct OtherTime {
  std::string_view sentence;  // with {} for the time
  double time_ns = 0;
};

// The same run of a library called otherwise (model/workload/launching.hpp).
struct FormTime {
  std::string_view form;
  double time_ns = 0;
};

// The same knobs where own kernels are written otherwise (model/workload/kernel_class.hpp).
struct ClassTime {
  KernelClass kernels = KernelClass::own;
  double time_ns = 0;
};

// The best found of one pattern.
struct Candidate {
  const Pattern* pattern = nullptr;
  Values knobs;
  double time_ns = 0;
  std::optional<double> speedup;  // time of the baseline / time; empty if that has not been simulated
  Taxes taxes;                    // those of the counterfactual are NaN where the search was interrupted
  SimulationResult result;        // of the run with these knobs
  TimeBound bound;
  Rounds rounds;
  std::vector<OtherTime> others;
  std::vector<FormTime> forms;     // of a library, in the other forms in which it can be called
  std::vector<ClassTime> classes;  // of the fastest own patterns, where kernels are asked for as `own`
  // Of a collective alone (workload.hpp): its message, and what a GPU moves of it; else 0.
  double message_bytes = 0;
  double bus_bytes = 0;
  bool searched = true;  // more than its default knobs were tried
  Spread spread;         // of the winner and the baseline, unless interrupted
  // Of a pattern that was stopped before it was tuned, being far behind: nothing that was tried of it takes
  // less. The knobs and their time are then the best of a few.
  std::optional<double> at_least_ns;
};

struct Advice {
  std::int64_t evaluated = 0;         // simulations of candidates that were started …
  std::int64_t given_up = 0;          // … of which so many were stopped early, being slower than the best
  std::int64_t pruned = 0;            // candidates that their lower bound ruled out, not simulated
  std::vector<Candidate> candidates;  // one a pattern, best first
  // Sentences: why the first one wins; of an interrupted search why it is ahead so far, without what would
  // take another simulation.
  std::vector<std::string> explanation;
  std::vector<std::string> left_out;  // "pattern: reason" for patterns that cannot be built at all
  bool interrupted = false;
};

// `problem` is complete. Throws UserError for a problem or pins that no pattern can be built with, and what
// `simulate` throws.
Advice advise(const Problem& problem, const Machine& machine, const AdviseOptions& options = {});

}  // namespace tritax
