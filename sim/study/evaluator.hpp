// Evaluates what a selector proposes (model/select/selector.hpp): builds the schedule of a pattern with some
// knobs, bounds it, and simulates it unless the bound rules it out or it turns out too slow. What is known
// already is not found out twice. Batches run in parallel; what is evaluated does not depend on the number of
// threads. Of every pattern the fastest run is kept.
//
// Candidates are compared by runs in which GPUs that behave alike are simulated once (Symmetry::ranks): of
// eight GPUs such a run takes about a third of the time, and leaves out only that the slowest of eight
// has worse luck than one. What a pattern is said to take comes from a run of all GPUs: `confirm` gives the
// best of the few that luck might put first. All GPUs are simulated at once for patterns whose first
// candidate has few operations, as at decode sizes: many candidates are as fast as the best there, and runs
// cost little; and for patterns whose first candidate takes longer then, as where GPUs wait for each other in
// a ring: bad luck adds up.
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
  std::int64_t remaining = 0;  // listed and not yet decided; the selector may list more
};

struct EvaluatorOptions {
  std::uint64_t seed = 1;
  int threads = 0;                          // 0: all cores
  const std::atomic<bool>* stop = nullptr;  // once it is true, what has not begun is left out; may be null
  std::function<void(const AdviseProgress&)>
      progress;                                      // between batches, on the calling thread; may be empty
  std::function<void(std::size_t pattern)> settled;  // Trials::settled; may be empty
};

class Evaluator final : public Trials {
 public:
  // The fastest run of a pattern; of equal ones the first.
  struct Best {
    Values knobs;
    TimeBound bound;
    SimulationResult result;
    double time_ns() const { return result.makespan_ns; }
  };

  // `choices`, and the problem and machine that they name, must outlive it.
  Evaluator(const Choices& choices, EvaluatorOptions options);

  std::vector<Trial> evaluate(std::span<const Proposal> proposals) override;
  std::optional<double> least_ns(std::size_t pattern, const Values& knobs) override;
  void report(std::int64_t ruled_out, std::int64_t remaining) override;
  void settled(std::size_t pattern) override;
  void not_tuned(std::size_t pattern, double at_least_ns) override { not_tuned_[pattern] = at_least_ns; }
  bool stopped() const override {
    return options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed);
  }

  // What nothing that was tried of it takes less than; nothing for a pattern that was tuned.
  std::optional<double> at_least_ns(std::size_t pattern) const { return not_tuned_[pattern]; }

  // By the runs that compare.
  const std::optional<Best>& best(std::size_t pattern) const { return best_[pattern]; }
  struct Finalist {
    Values knobs;
    double compared_ns = 0;  // by the run that compared it
  };
  // Of a pattern that has a best: what is within luck of it, the fastest first.
  std::vector<Finalist> finalists(std::size_t pattern) const;
  // The fastest of `finalists` when all GPUs are simulated; nothing once somebody has stopped it. On any
  // thread.
  std::optional<Best> confirm(std::size_t pattern, const std::vector<Finalist>& finalists) const;
  // Why nothing of it could be built, as far as was tried; "" if nothing was refused.
  const std::string& refusal(std::size_t pattern) const { return refusals_[pattern]; }
  std::int64_t evaluated() const { return evaluated_; }  // simulations that were started
  std::int64_t given_up() const { return given_up_; }    // … of which so many were stopped early
  std::int64_t pruned() const { return pruned_; }        // candidates that their lower bound ruled out

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

  // Work that nothing waits for yet: threads do it while the search has none for them, as at the end of a
  // batch whose last simulation takes long.
  template <typename Task>
  void in_background(const Task& task) {
    background_.arena.execute([&] { background_.tasks.run(task); });
  }
  // Helps until all of it is done.
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
  // What is known of a candidate, and how long it was waited for if it gave up.
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
  std::vector<std::optional<bool>> in_full_;  // whether all GPUs run, by pattern; nothing before one could be
                                              // built
  std::map<Key, Known> known_;
  std::int64_t evaluated_ = 0, given_up_ = 0, pruned_ = 0;
  const int threads_;
  tbb::global_control thread_limit_;  // of search and background together
  tbb::task_arena arena_;
  Background background_;  // last: its tasks may use the others
};

}  // namespace tritax
