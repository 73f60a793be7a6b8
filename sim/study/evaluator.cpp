#include "sim/study/evaluator.hpp"

#include <tbb/info.h>

#include "model/core/error.hpp"

namespace tritax {

Evaluator::Background::~Background() {
  try {
    tasks.cancel();
    finish();
  } catch (...) {  // the search has failed already, or it would have finished
  }
}

Evaluator::Evaluator(const Problem& problem, const Machine& machine, std::uint64_t seed, int threads,
                     const std::atomic<bool>* stop)
    : problem_(problem),
      machine_(machine),
      seed_(seed),
      stop_(stop),
      topology_(build_topology(machine, problem.gpus())),
      threads_(threads > 0 ? threads : tbb::info::default_concurrency()),
      thread_limit_(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(threads_)),
      arena_(threads_),
      background_(threads_) {}

double Evaluator::least_ns(const Pattern& pattern, const Values& knobs) const {
  const Workload& workload = *problem_.workload;
  return workload.bound_ns == nullptr ? 0 : workload.bound_ns(pattern, problem_, machine_, knobs);
}

Evaluation Evaluator::evaluate(const Pattern& pattern, const Values& knobs, const Limits& limits) const {
  Evaluation evaluation;
  if (stopped()) return evaluation;
  try {
    const Schedule schedule = build(pattern, knobs);
    evaluation.bound = time_bound(schedule, machine_, topology_);
    evaluation.outcome = Outcome::pruned;
    if (evaluation.bound.total_ns >= limits.best_ns) return evaluation;
    evaluation.outcome = Outcome::stopped;
    if (stopped()) return evaluation;
    SimulationOptions options;
    options.seed = seed_;
    options.give_up_after_ns = limits.give_up_after_ns;
    options.stop = stop_;
    evaluation.result = simulate(schedule, machine_, options);
    if (evaluation.result.gave_up && stopped()) return evaluation;
    evaluation.outcome = Outcome::simulated;
  } catch (const UserError& error) {
    evaluation.outcome = Outcome::refused;
    evaluation.refusal = error.what();
  }
  return evaluation;
}

}  // namespace tritax
