// The search behind `tritax advise`: which pattern, with which knobs, is fastest for a workload on a machine.
//
// Coarse to fine. First every pattern's tiles × CU splits are simulated at default order knobs; then the
// neighbours of the best few of each pattern, one group of knobs at a time, until none is better. A candidate
// is skipped when a lower bound of its time (model/select/bounds.hpp) is not below the best of its own
// pattern, and a simulation stops once it is clearly slower than that best, so the answer has the best knobs
// found of every pattern.
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
#include "model/patterns/pattern.hpp"
#include "model/select/bounds.hpp"
#include "model/select/candidates.hpp"
#include "model/workload/gemm_all_scatter.hpp"
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
  KnobPins pins;
  const std::atomic<bool>* stop = nullptr;  // when it becomes true the search ends with the best so far
  std::function<void(const AdviseProgress&)> progress;  // called between batches, on the calling thread
};

// The best found of one pattern.
struct Candidate {
  std::string_view pattern;
  Knobs knobs;
  double time_ns = 0;
  std::optional<double> speedup;  // time of the library baseline / time; empty if that has not been simulated
  Taxes taxes;
  SimulationResult result;  // of the run with these knobs
  TimeBound bound;
  Rounds rounds;
  double fixed_order_ns = 0;  // time with peers in the fixed order; 0: the knobs are not of staggered peers
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

// Throws UserError for a workload or pins that no pattern can be built with, and what `simulate` throws.
Advice advise(const GemmAllScatter& workload, const Machine& machine, const AdviseOptions& options = {});

}  // namespace tritax
