#include "sim/study/advise.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "model/core/error.hpp"
#include "model/core/same_time.hpp"
#include "model/workload/kernel_class.hpp"
#include "model/workload/launching.hpp"
#include "sim/study/evaluator.hpp"
#include "sim/study/why.hpp"

namespace tritax {

namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

// The best run of a pattern and its account of time; known, or being computed once `begun`.
struct PatternAccount {
  bool begun = false;
  std::optional<Evaluator::Best> best;  // with all GPUs simulated
  CounterfactualMakespans makespans{kUnknown, kUnknown, kUnknown, kUnknown};
  std::optional<Rounds> rounds;
  std::vector<OtherTime> others;
  std::vector<FormTime> forms;
};

constexpr std::size_t kOfOtherClasses = 3;  // own patterns that are also asked for with other kernel classes

class Study {
 public:
  Study(const Problem& problem, const Machine& machine, const AdviseOptions& options);
  Advice run();

 private:
  const PatternChoices& row(std::size_t pattern) const { return choices_.patterns[pattern]; }
  std::size_t patterns() const { return choices_.patterns.size(); }
  bool is_baseline(std::size_t pattern) const {
    return row(pattern).pattern->name == problem_.workload->baseline;
  }
  const Selector& selector() const {
    return options_.selector == nullptr ? selectors().front() : *options_.selector;
  }
  bool impossible(std::size_t pattern) const {
    return !evaluator_.best(pattern) && !evaluator_.refusal(pattern).empty();
  }
  // The best run known so far.
  const Evaluator::Best& best_of(std::size_t pattern) const {
    const std::optional<Evaluator::Best>& confirmed = accounts_[pattern].best;
    return confirmed ? *confirmed : *evaluator_.best(pattern);
  }
  void require_an_answer() const;
  void account(std::size_t pattern);
  void account_of_best(std::size_t pattern);
  void find_others(std::size_t pattern, const Values& knobs, const SimulationOptions& options);
  void find_forms(std::size_t pattern, const Values& knobs, const SimulationOptions& options);
  void complete_rounds();
  void find_spreads(std::vector<Candidate>& candidates);
  void find_classes(std::vector<Candidate>& candidates);
  std::vector<ClassTime> classes_of(const Candidate& candidate) const;
  Candidate candidate_of(std::size_t pattern) const;
  std::vector<Candidate> winners();

  const Problem& problem_;
  const Machine& machine_;
  const AdviseOptions& options_;
  const Choices choices_;
  std::vector<PatternAccount> accounts_;
  Evaluator evaluator_;  // last: its background tasks use the others
};

Study::Study(const Problem& problem, const Machine& machine, const AdviseOptions& options)
    : problem_(problem),
      machine_(machine),
      options_(options),
      choices_(choices_of(problem, machine, options.pins)),
      accounts_(choices_.patterns.size()),
      evaluator_(choices_,
                 {options.seed, options.threads, options.stop, options.progress, [this](std::size_t pattern) {
                    if (evaluator_.best(pattern)) account(pattern);
                  }}) {}

// Pins that leave only the baseline, which has no knobs, answer no question.
void Study::require_an_answer() const {
  const std::string* refusal = nullptr;
  for (std::size_t p = 0; p < patterns(); ++p) {
    if (patterns() > 1 && is_baseline(p)) continue;
    if (!impossible(p)) return;
    if (refusal == nullptr) refusal = &evaluator_.refusal(p);
  }
  if (refusal != nullptr) throw UserError(*refusal);
}

// Starts to find the pattern's best run and its account of time.
void Study::account(std::size_t pattern) {
  if (std::exchange(accounts_[pattern].begun, true)) return;
  evaluator_.in_background([this, pattern, finalists = evaluator_.finalists(pattern)] {
    accounts_[pattern].best = evaluator_.confirm(pattern, finalists);
    if (!evaluator_.stopped()) account_of_best(pattern);
  });
}

// Two tasks, so that the slowest pattern does not delay the others.
void Study::account_of_best(std::size_t pattern) {
  PatternAccount& account = accounts_[pattern];
  SimulationOptions options;
  options.seed = options_.seed;
  options.stop = options_.stop;
  const bool counterfactual = options_.counterfactual;
  const Values knobs = best_of(pattern).knobs;
  if (counterfactual) {
    evaluator_.in_background([this, &account, options, pattern, knobs] {
      if (evaluator_.stopped()) return;
      simulate_by_dependences(evaluator_.build(pattern, knobs), machine_, options, account.makespans);
    });
  }
  evaluator_.in_background([this, &account, options, pattern, knobs, counterfactual] {
    if (evaluator_.stopped()) return;
    const Schedule schedule = evaluator_.build(pattern, knobs);
    if (counterfactual) simulate_in_order(schedule, machine_, options, account.makespans);
    account.rounds = gemm_rounds(schedule, machine_);
    find_others(pattern, knobs, options);
    find_forms(pattern, knobs, options);
  });
}

// Forms that no graph can hold have no time; equal forms are listed once.
void Study::find_forms(std::size_t pattern, const Values& knobs, const SimulationOptions& options) {
  const Spec* spec = find_spec(knobs.specs(), kFormKnob);
  if (spec == nullptr || !row(pattern).pattern->uses(kFormKnob)) return;
  std::vector<double> known{best_of(pattern).time_ns()};
  for (std::size_t form = 0; form < spec->names.size(); ++form) {
    const auto value = static_cast<std::int64_t>(form);
    if (knobs[kFormKnob] == value) continue;
    Values other = knobs;
    other.assume(kFormKnob, value);
    if (call_form_of(other) == CallForm::custom_graph &&
        !engine_is_measured(machine_, static_cast<Engine>(other[kEngineKnob])))
      continue;
    try {
      const SimulationResult run = simulate(evaluator_.build(pattern, other), machine_, options);
      if (run.gave_up) return;
      const bool same = std::any_of(known.begin(), known.end(), [&](double ns) {
        return !later(ns, run.makespan_ns) && !later(run.makespan_ns, ns);
      });
      if (same) continue;
      known.push_back(run.makespan_ns);
      accounts_[pattern].forms.push_back({spec->names[form], run.makespan_ns});
    } catch (const UserError&) {  // this form is impossible
    }
  }
}

void Study::find_others(std::size_t pattern, const Values& knobs, const SimulationOptions& options) {
  for (const Spec& spec : knobs.specs()) {
    if (!spec.what_if || knobs[spec.name] != spec.what_if->when) continue;
    Values other = knobs;
    other.assume(spec.name, spec.what_if->instead);
    const SimulationResult changed = simulate(evaluator_.build(pattern, other), machine_, options);
    if (changed.gave_up) return;
    accounts_[pattern].others.push_back({spec.what_if->sentence, changed.makespan_ns});
  }
}

// Rounds that an interrupted search has not computed: they need no simulation.
void Study::complete_rounds() {
  evaluator_.parallel(patterns(), [&](std::size_t p) {
    if (!evaluator_.best(p) || accounts_[p].rounds) return;
    accounts_[p].rounds = gemm_rounds(evaluator_.build(p, best_of(p).knobs), machine_);
  });
}

Candidate Study::candidate_of(std::size_t pattern) const {
  const Evaluator::Best& best = best_of(pattern);
  const PatternAccount& account = accounts_[pattern];
  Candidate candidate;
  candidate.pattern = row(pattern).pattern;
  candidate.knobs = best.knobs;
  candidate.time_ns = best.time_ns();
  candidate.taxes.account = best.result.account;
  candidate.taxes.makespan_ns = best.result.makespan_ns;
  if (options_.counterfactual) {
    // An interrupted account has no value.
    constexpr CounterfactualMakespans unknown{kUnknown, kUnknown, kUnknown, kUnknown};
    candidate.taxes = taxes_of(best.result, evaluator_.stopped() ? unknown : account.makespans);
  }
  candidate.result = best.result;
  candidate.bound = best.bound;
  candidate.message = message_rates(problem_, best.result);
  candidate.rounds = *account.rounds;
  candidate.others = account.others;
  candidate.forms = account.forms;
  candidate.searched = selector().searches();
  candidate.at_least_ns = evaluator_.at_least_ns(pattern);
  return candidate;
}

// Finds the random spread of the two times that readers compare.
void Study::find_spreads(std::vector<Candidate>& candidates) {
  SimulationOptions options;
  options.seed = options_.seed;
  options.stop = options_.stop;
  evaluator_.parallel(candidates.size(), [&](std::size_t i) {
    Candidate& candidate = candidates[i];
    if (evaluator_.stopped() || (i > 0 && candidate.pattern->name != problem_.workload->baseline)) return;
    const Schedule schedule = build_schedule(*candidate.pattern, problem_, machine_, candidate.knobs);
    candidate.spread = spread_of(schedule, machine_, options, candidate.time_ns);
  });
}

// Candidates that do not fit the other class have no time.
std::vector<ClassTime> Study::classes_of(const Candidate& candidate) const {
  SimulationOptions options;
  options.seed = options_.seed;
  options.stop = options_.stop;
  std::vector<ClassTime> classes;
  for (const KernelClass kernels : {KernelClass::vendor, KernelClass::triton}) {
    Values pins = options_.pins.columns() > 0 ? options_.pins : Values(problem_.workload->knobs);
    pins.give(kKernelsKnob, static_cast<std::int64_t>(kernels));
    const Values knobs = candidate.knobs.with(with_class(pins, machine_));
    try {
      const Schedule schedule = build_schedule(*candidate.pattern, problem_, machine_, knobs);
      const SimulationResult run = simulate(schedule, machine_, options);
      if (!run.gave_up) classes.push_back({kernels, run.makespan_ns});
    } catch (const UserError&) {
    }
  }
  return classes;
}

// For the fastest own patterns, in the order of candidates: the best of them may change with the class.
void Study::find_classes(std::vector<Candidate>& candidates) {
  if (find_spec(problem_.workload->knobs, kKernelsKnob) == nullptr) return;
  std::vector<Candidate*> first;
  for (Candidate& candidate : candidates) {
    if (is_there(*candidate.pattern, *problem_.workload)) continue;
    if (kernel_class_of(*candidate.pattern, candidate.knobs) != KernelClass::own) continue;
    first.push_back(&candidate);
    if (first.size() == kOfOtherClasses) break;
  }
  evaluator_.parallel(first.size(), [&](std::size_t i) {
    if (!evaluator_.stopped()) first[i]->classes = classes_of(*first[i]);
  });
}

// The best of every pattern with its taxes, best first.
std::vector<Candidate> Study::winners() {
  for (std::size_t p = 0; p < patterns(); ++p) {
    if (evaluator_.best(p) && !evaluator_.stopped()) account(p);
  }
  evaluator_.finish_background();
  complete_rounds();
  std::vector<Candidate> candidates;
  for (std::size_t p = 0; p < patterns(); ++p) {
    if (evaluator_.best(p)) candidates.push_back(candidate_of(p));
  }
  for (std::size_t p = 0; p < patterns(); ++p) {
    if (!is_baseline(p) || !evaluator_.best(p)) continue;
    for (Candidate& candidate : candidates) candidate.speedup = best_of(p).time_ns() / candidate.time_ns;
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.time_ns < b.time_ns; });
  find_spreads(candidates);
  find_classes(candidates);
  return candidates;
}

Advice Study::run() {
  selector().select(choices_, evaluator_);
  if (!evaluator_.stopped()) require_an_answer();
  Advice advice;
  for (std::size_t p = 0; p < patterns(); ++p) {
    if (!impossible(p)) continue;
    advice.left_out.push_back(std::string(row(p).pattern->name) + ": " + evaluator_.refusal(p));
  }
  advice.candidates = winners();
  advice.evaluated = evaluator_.evaluated();
  advice.given_up = evaluator_.given_up();
  advice.pruned = evaluator_.pruned();
  advice.interrupted = evaluator_.stopped();
  advice.explanation = explain_winner(advice.candidates, problem_);
  return advice;
}

}  // namespace

Advice advise(const Problem& problem, const Machine& machine, const AdviseOptions& options) {
  return Study(problem, machine, options).run();
}

}  // namespace tritax
