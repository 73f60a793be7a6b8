// The search behind `tritax advise`: which pattern, with which knobs, is fastest for a workload on a machine.
//
// Coarse to fine. First the values of every pattern that decide most (tiles × CU splits, for a GEMM) are
// simulated at the start of all others; then the neighbours of the best few of each pattern, one axis at a
// time (model/workload/knob_space.hpp), until none is better; last, every single change of a knob of the best
// of the patterns in reach of the fastest, so that none of them gains. A candidate is skipped when a lower
// bound of its time (model/select/bounds.hpp) is not below the best of its own pattern, and a simulation
// stops once it is clearly slower than that best, so the answer has the best knobs found of every pattern.
// Of patterns that take half as long again as the fastest only what is best for others is tried.
//
// The answer does not depend on the number of threads: candidates go in batches of a fixed size, and what to
// skip and when to give up is decided between batches.
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
#include "model/workload/workload.hpp"
#include "sim/simulate.hpp"

namespace tritax {

struct AdviseProgress {
  std::int64_t evaluated = 0;
  std::int64_t pruned = 0;
  std::int64_t remaining = 0;  // listed and not yet decided; refinement may list more
};

struct AdviseOptions {
  int threads = 0;  // 0: all cores
  std::uint64_t seed = 1;
  bool counterfactual = true;  // find the second account of the taxes (Taxes) of every candidate too
  Values pins;                 // knobs of the workload that are given are held fixed; may be empty
  const std::atomic<bool>* stop = nullptr;  // when it becomes true the search ends with the best so far
  std::function<void(const AdviseProgress&)> progress;  // called between batches, on the calling thread
};

// The same run with another value of one knob (Spec::what_if).
struct OtherTime {
  std::string_view sentence;  // with {} for the time
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
};

struct Advice {
  std::int64_t evaluated = 0;         // simulations of different candidates that were started …
  std::int64_t given_up = 0;          // … of which so many were stopped early, being slower than the best
  std::int64_t pruned = 0;            // candidates that their lower bound ruled out, not simulated
  std::vector<Candidate> candidates;  // one a pattern, best first
  std::vector<std::string> explanation;  // sentences: why the first one wins
  std::vector<std::string> left_out;     // "pattern: reason" for patterns that cannot be built at all
  bool interrupted = false;
};

// `problem` is complete. Throws UserError for a problem or pins that no pattern can be built with, and what
// `simulate` throws.
Advice advise(const Problem& problem, const Machine& machine, const AdviseOptions& options = {});

}  // namespace tritax
