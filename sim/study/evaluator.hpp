// Evaluates candidates of a search: builds the schedule of a pattern with some knobs, bounds it, and
// simulates it unless the bound rules it out. Batches run in parallel; what is evaluated does not depend on
// the number of threads.
#pragma once

#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "model/machine/topology.hpp"
#include "model/select/bounds.hpp"
#include "model/workload/workload.hpp"
#include "sim/simulate.hpp"

namespace tritax {

// What a candidate has to beat.
struct Limits {
  double best_ns = 0;           // one whose lower bound is not below it is not simulated
  double give_up_after_ns = 0;  // a simulation that takes longer stops; 0: never
};

enum class Outcome : std::uint8_t { stopped, refused, pruned, simulated };

struct Evaluation {
  Outcome outcome = Outcome::stopped;
  TimeBound bound;
  std::string refusal;  // why it cannot be built
  SimulationResult result;
};

class Evaluator {
 public:
  // `threads`: 0 for all cores. When `stop` becomes true, what has not begun is left out.
  Evaluator(const Problem& problem, const Machine& machine, std::uint64_t seed, int threads,
            const std::atomic<bool>* stop);

  const Problem& problem() const { return problem_; }
  const Machine& machine() const { return machine_; }
  std::uint64_t seed() const { return seed_; }
  bool stopped() const { return stop_ != nullptr && stop_->load(std::memory_order_relaxed); }

  Schedule build(const Pattern& pattern, const Values& knobs) const {
    return build_schedule(pattern, problem_, machine_, knobs);
  }
  // A time below which no schedule of the knobs comes, without building one. Throws UserError for knobs that
  // cannot be.
  double least_ns(const Pattern& pattern, const Values& knobs) const;

  // On any thread: it changes nothing.
  Evaluation evaluate(const Pattern& pattern, const Values& knobs, const Limits& limits) const;

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

  const Problem& problem_;
  const Machine& machine_;
  std::uint64_t seed_;
  const std::atomic<bool>* stop_;
  Topology topology_;
  const int threads_;
  tbb::global_control thread_limit_;  // of search and background together
  tbb::task_arena arena_;
  Background background_;
};

}  // namespace tritax
