// Evaluates the proposals of a selector (model/select/selector.hpp): builds the schedule of a pattern with
// the proposed knobs, bounds it, and simulates it unless the bound rules it out; a simulation that turns out
// too slow gives up. Known results are not computed again. Batches run in parallel; the evaluated candidates
// do not depend on the number of threads. The fastest run of every pattern is kept.
//
// Candidates are compared by runs in which GPUs that behave alike are simulated once (Symmetry::ranks): for
// eight GPUs such a run takes about a third of the time, and only misses that the slowest of eight GPUs is
// slower than one. The final time of a pattern comes from a run of all GPUs: `confirm` simulates the few
// candidates that random shares might put first. All GPUs are simulated at once in two cases: for patterns
// whose first candidate has few operations, as at decode sizes, because many candidates are about as fast as
// the best there, and runs are cheap; and for patterns whose first candidate takes longer in a full run, for
// example if GPUs wait for each other in a ring, because random delays add up.
#pragma once

#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/machine/topology.hpp"
#include "model/select/selector.hpp"
#include "sim/simulate.hpp"

namespace tritax {

struct AdviseProgress {
  std::int64_t evaluated = 0;
  std::int64_t pruned = 0;
  std::int64_t remaining = 0;  // listed and undecided; the selector may list more
};

struct EvaluatorOptions {
  std::uint64_t seed = 1;
  int threads = 0;                          // 0: all cores
  const std::atomic<bool>* stop = nullptr;  // once true, candidates not begun are left out; may be null
  std::function<void(const AdviseProgress&)>
      progress;                                      // between batches, on the calling thread; may be empty
  std::function<void(std::size_t pattern)> settled;  // Trials::settled; may be empty
};

class Evaluator final : public Trials {
 public:
  // The fastest run of a pattern; the first of equal runs.
  struct Best {
    Values knobs;
    TimeBound bound;
    SimulationResult result;
    double time_ns() const { return result.makespan_ns; }
  };

  // `choices`, and the problem and machine that they name, must outlive the evaluator.
  Evaluator(const Choices& choices, EvaluatorOptions options);

  std::vector<Trial> evaluate(std::span<const Proposal> proposals) override;
  std::optional<double> least_ns(std::size_t pattern, const Values& knobs) override;
  void report(std::int64_t ruled_out, std::int64_t remaining) override;
  void settled(std::size_t pattern) override;
  void not_tuned(std::size_t pattern, double at_least_ns) override { not_tuned_[pattern] = at_least_ns; }
  bool stopped() const override {
    return options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed);
  }

  // Lower bound of all times tried for a pattern that was not tuned; nothing for a pattern that was tuned.
  std::optional<double> at_least_ns(std::size_t pattern) const { return not_tuned_[pattern]; }

  // The best by the runs that compare candidates.
  const std::optional<Best>& best(std::size_t pattern) const { return best_[pattern]; }
  struct Finalist {
    Values knobs;
    double compared_ns = 0;  // by the comparing run
  };
  // For a pattern with a best run: the candidates that random shares might put first, the fastest first.
  std::vector<Finalist> finalists(std::size_t pattern) const;
  // The fastest of `finalists` in runs of all GPUs; nothing if the search was stopped. Callable on any
  // thread.
  std::optional<Best> confirm(std::size_t pattern, const std::vector<Finalist>& finalists) const;
  // Why no tried candidate of the pattern could be built; "" if none was refused.
  const std::string& refusal(std::size_t pattern) const { return refusals_[pattern]; }
  std::int64_t evaluated() const { return evaluated_; }  // started simulations
  std::int64_t given_up() const { return given_up_; }    // … of which so many were stopped early
  std::int64_t pruned() const { return pruned_; }        // candidates ruled out by their lower bound

  Schedule build(std::size_t pattern, const Values& knobs) const {
    return build_schedule(*choices_.patterns[pattern].pattern, *choices_.problem, *choices_.machine, knobs);
  }

  // Calls `body(i)` for i in [0, count) on the threads of the evaluator.
  template <typename Body>
  void parallel(std::size_t count, const Body& body) {
    arena_.execute([&] {
      tbb::parallel_for(
          tbb::blocked_range<std::size_t>(0, count, 1),
          [&](const tbb::blocked_range<std::size_t>& range) {
            for (std::size_t i = range.begin(); i < range.end(); ++i) body(i);
          },
          tbb::simple_partitioner{});
    });
  }

  // Work that nothing waits for yet: idle threads of the search run it, for example at the end of a batch
  // with one long simulation.
  template <typename Task>
  void in_background(const Task& task) {
    background_.arena.execute([&] { background_.tasks.run(task); });
  }
  // Helps until all background work is done.
  void finish_background() { background_.finish(); }

 private:
  struct Background {
    explicit Background(int threads) : arena(threads, 1, tbb::task_arena::priority::low) {}
    Background(const Background&) = delete;
    Background& operator=(const Background&) = delete;
    ~Background();
    void finish() {
      arena.execute([&] { tasks.wait(); });
    }
    tbb::task_arena arena;
    tbb::task_group tasks;
  };

  struct Evaluation {
    Trial trial;
    std::string refusal;
    SimulationResult result;
  };
  // A known candidate, and the time limit of its run if it gave up.
  struct Known {
    Trial trial;
    double gave_up_after_ns = 0;
    Values knobs;
  };
  using Key = std::pair<std::size_t, std::vector<std::int64_t>>;

  bool compared_in_full(const Best& best) const;
  std::optional<bool> needs_full_runs(const Proposal& proposal) const;
  void find_out_how_to_compare(std::span<const Proposal> proposals);
  const Trial* known(const Proposal& proposal) const;
  Evaluation find_out(const Proposal& proposal) const;
  void enter(const Proposal& proposal, Evaluation evaluation);
  void refuse(std::size_t pattern, const std::string& refusal);

  const Choices& choices_;
  const EvaluatorOptions options_;
  const Topology topology_;
  std::vector<std::optional<Best>> best_;
  std::vector<std::string> refusals_;
  std::vector<std::optional<double>> not_tuned_;
  std::vector<std::optional<bool>> in_full_;  // by pattern: all GPUs run; nothing until a candidate is built
  std::map<Key, Known> known_;
  std::int64_t evaluated_ = 0, given_up_ = 0, pruned_ = 0;
  const int threads_;
  tbb::global_control thread_limit_;  // of search and background together
  tbb::task_arena arena_;
  Background background_;  // last: its tasks may use the other members
};

}  // namespace tritax
