#include "sim/study/evaluator.hpp"

#include <tbb/info.h>

#include <algorithm>
#include <memory>

#include "model/core/error.hpp"
#include "model/core/same_time.hpp"
#include "model/schedule/builder.hpp"
#include "model/schedule/operations.hpp"

namespace tritax {

namespace {

// Two runs of a pattern that differ by less may change places in runs of all GPUs. kFinalists of them are
// confirmed, and more while the best full run takes longer than the comparing run of the next finalist.
constexpr double kWithinSpread = 1.04;
constexpr std::size_t kFinalists = 4, kMostFinalists = 12;
// A pattern is compared by full runs if its first candidate takes so many times longer with all GPUs.
constexpr double kWithinSpreadOfOne = 1.03;
constexpr std::uint64_t kFewOperations = 4096;  // of all GPUs: a run of some milliseconds

std::vector<std::int64_t> numbers_of(const Values& knobs) {
  std::vector<std::int64_t> numbers;
  for (std::size_t i = 0; i < knobs.columns(); ++i) numbers.push_back(knobs.at(i));
  return numbers;
}

}  // namespace

Evaluator::Background::~Background() {
  try {
    tasks.cancel();
    finish();
  } catch (...) {  // the search has failed already, or it would have finished
  }
}

Evaluator::Evaluator(const Choices& choices, EvaluatorOptions options)
    : choices_(choices),
      options_(std::move(options)),
      topology_(build_topology(*choices.machine, choices.problem->gpus())),
      best_(choices.patterns.size()),
      not_tuned_(choices.patterns.size()),
      in_full_(choices.patterns.size()),
      threads_(options_.threads > 0 ? options_.threads : tbb::info::default_concurrency()),
      thread_limit_(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(threads_)),
      arena_(threads_),
      background_(threads_) {
  for (const PatternChoices& row : choices.patterns) refusals_.push_back(row.refusal);
}

// The earlier result of a candidate, if it answers the proposal too.
const Trial* Evaluator::known(const Proposal& proposal) const {
  const auto found = known_.find({proposal.pattern, numbers_of(proposal.knobs)});
  if (found == known_.end()) return nullptr;
  const Known& before = found->second;
  switch (before.trial.outcome) {
    case Outcome::refused:
    case Outcome::simulated:
      return &before.trial;
    case Outcome::gave_up: {
      const bool asks_no_more =
          proposal.give_up_after_ns > 0 && proposal.give_up_after_ns <= before.gave_up_after_ns;
      return asks_no_more ? &before.trial : nullptr;
    }
    case Outcome::bounded:
    case Outcome::pruned:
    case Outcome::stopped:
      return nullptr;
  }
  return nullptr;
}

// Callable on any thread: it changes no state.
Evaluator::Evaluation Evaluator::find_out(const Proposal& proposal) const {
  Evaluation evaluation;
  Trial& trial = evaluation.trial;
  if (stopped()) return evaluation;
  try {
    Schedule schedule = build(proposal.pattern, proposal.knobs);
    const auto give_back = [](Schedule* used) { recycle(std::move(*used)); };
    const std::unique_ptr<Schedule, decltype(give_back)> until_the_end(&schedule, give_back);
    // If alike GPUs are simulated once, the bound is the bound of one of them.
    const bool in_full = in_full_[proposal.pattern].value_or(false);
    trial.bound = time_bound(schedule, *choices_.machine, topology_,
                             proposal.bound_only || in_full ? schedule.ranks : 1);
    trial.outcome = proposal.bound_only ? Outcome::bounded : Outcome::pruned;
    // A run that certainly gives up need not begin.
    constexpr double kSurely = 1 + 1e-9;
    const bool gives_up =
        proposal.give_up_after_ns > 0 && trial.bound.total_ns > kSurely * proposal.give_up_after_ns;
    if (proposal.bound_only || gives_up || trial.bound.total_ns >= proposal.worth_ns) return evaluation;
    trial.outcome = Outcome::stopped;
    if (stopped()) return evaluation;
    SimulationOptions options;
    options.seed = options_.seed;
    options.give_up_after_ns = proposal.give_up_after_ns;
    options.stop = options_.stop;
    if (!in_full) options.symmetry = Symmetry::ranks;
    evaluation.result = simulate(schedule, *choices_.machine, options);
    if (evaluation.result.gave_up && stopped()) return evaluation;
    trial.outcome = evaluation.result.gave_up ? Outcome::gave_up : Outcome::simulated;
    if (!evaluation.result.gave_up) trial.time_ns = evaluation.result.makespan_ns;
  } catch (const UserError& error) {
    trial.outcome = Outcome::refused;
    evaluation.refusal = error.what();
  }
  return evaluation;
}

void Evaluator::refuse(std::size_t pattern, const std::string& refusal) {
  if (refusals_[pattern].empty()) refusals_[pattern] = refusal;
}

void Evaluator::enter(const Proposal& proposal, Evaluation evaluation) {
  const Trial& trial = evaluation.trial;
  pruned_ += trial.outcome == Outcome::pruned;
  evaluated_ += trial.outcome == Outcome::gave_up || trial.outcome == Outcome::simulated;
  given_up_ += trial.outcome == Outcome::gave_up;
  if (trial.outcome == Outcome::refused) refuse(proposal.pattern, evaluation.refusal);
  known_.insert_or_assign({proposal.pattern, numbers_of(proposal.knobs)},
                          Known{trial, proposal.give_up_after_ns, proposal.knobs});
  if (trial.outcome != Outcome::simulated) return;
  std::optional<Best>& best = best_[proposal.pattern];
  const bool faster = !best || later(best->time_ns(), trial.time_ns);  // rounding must not decide
  if (faster) best = Best{proposal.knobs, trial.bound, std::move(evaluation.result)};
}

// Only alike nodes were left out, as in every run.
bool Evaluator::compared_in_full(const Best& best) const {
  return best.result.simulated_ranks >= std::min(choices_.problem->gpus(), choices_.machine->gpus_per_node);
}

std::vector<Evaluator::Finalist> Evaluator::finalists(std::size_t pattern) const {
  const Best& best = *best_[pattern];
  std::vector<Finalist> finalists{{best.knobs, best.time_ns()}};
  if (compared_in_full(best)) return finalists;
  std::vector<const Known*> near;
  for (const auto& [key, known] : known_) {
    if (key.first == pattern && known.trial.outcome == Outcome::simulated &&
        known.trial.time_ns <= kWithinSpread * best.time_ns() &&
        numbers_of(known.knobs) != numbers_of(best.knobs)) {
      near.push_back(&known);
    }
  }
  std::stable_sort(near.begin(), near.end(),
                   [](const Known* a, const Known* b) { return a->trial.time_ns < b->trial.time_ns; });
  for (const Known* known : near) {
    if (finalists.size() == kMostFinalists) break;
    finalists.push_back({known->knobs, known->trial.time_ns});
  }
  return finalists;
}

std::optional<Evaluator::Best> Evaluator::confirm(std::size_t pattern,
                                                  const std::vector<Finalist>& finalists) const {
  const Best& best = *best_[pattern];
  std::optional<Best> confirmed;
  if (compared_in_full(best)) {
    confirmed = best;
    const bool of_all = in_full_[pattern].value_or(false);
    if (!of_all) confirmed->bound = time_bound(build(pattern, best.knobs), *choices_.machine, topology_);
    return confirmed;
  }
  for (std::size_t i = 0; i < finalists.size(); ++i) {
    const auto& [knobs, compared_ns] = finalists[i];
    if (i >= kFinalists && confirmed && compared_ns >= confirmed->time_ns()) break;
    const Schedule schedule = build(pattern, knobs);
    SimulationOptions options;
    options.seed = options_.seed;
    options.stop = options_.stop;
    if (confirmed) options.give_up_after_ns = confirmed->time_ns();
    SimulationResult result = simulate(schedule, *choices_.machine, options);
    if (stopped()) return std::nullopt;
    if (result.gave_up || (confirmed && !later(confirmed->time_ns(), result.makespan_ns))) continue;
    confirmed = Best{knobs, time_bound(schedule, *choices_.machine, topology_), std::move(result)};
  }
  return confirmed;
}

// Whether candidates of this pattern have to be compared by full runs; nothing if it cannot be built.
std::optional<bool> Evaluator::needs_full_runs(const Proposal& proposal) const {
  try {
    const Schedule schedule = build(proposal.pattern, proposal.knobs);
    // A pattern without knobs has one candidate, which is never compared.
    const bool alone = choices_.patterns[proposal.pattern].pattern->knobs.empty();
    if (alone || executed_operations(schedule) <= kFewOperations) return true;
    SimulationOptions options;
    options.seed = options_.seed;
    options.stop = options_.stop;
    const double all_ns = simulate(schedule, *choices_.machine, options).makespan_ns;
    options.symmetry = Symmetry::ranks;
    const double one_ns = simulate(schedule, *choices_.machine, options).makespan_ns;
    return all_ns > kWithinSpreadOfOne * one_ns;
  } catch (const UserError&) {  // `find_out` reports it
    return std::nullopt;
  }
}

// Decides by the first candidate of each pattern, before any is compared.
void Evaluator::find_out_how_to_compare(std::span<const Proposal> proposals) {
  std::vector<const Proposal*> first;
  for (const Proposal& proposal : proposals) {
    const auto same = [&](const Proposal* other) { return other->pattern == proposal.pattern; };
    if (proposal.bound_only || in_full_[proposal.pattern]) continue;
    if (std::none_of(first.begin(), first.end(), same)) first.push_back(&proposal);
  }
  std::vector<std::optional<bool>> answers(first.size());
  parallel(first.size(), [&](std::size_t i) { answers[i] = needs_full_runs(*first[i]); });
  for (std::size_t i = 0; i < first.size(); ++i) in_full_[first[i]->pattern] = answers[i];
}

std::vector<Trial> Evaluator::evaluate(std::span<const Proposal> proposals) {
  std::vector<Trial> trials(proposals.size());
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < proposals.size(); ++i) {
    const Trial* before = known(proposals[i]);
    if (before == nullptr) {
      open.push_back(i);
    } else {
      trials[i] = *before;
    }
  }
  find_out_how_to_compare(proposals);
  std::vector<Evaluation> evaluations(open.size());
  parallel(open.size(), [&](std::size_t i) { evaluations[i] = find_out(proposals[open[i]]); });
  for (std::size_t i = 0; i < open.size(); ++i) {
    trials[open[i]] = evaluations[i].trial;
    enter(proposals[open[i]], std::move(evaluations[i]));
  }
  return trials;
}

std::optional<double> Evaluator::least_ns(std::size_t pattern, const Values& knobs) {
  try {
    return least_time_ns(*choices_.patterns[pattern].pattern, *choices_.problem, *choices_.machine, knobs);
  } catch (const UserError& error) {
    refuse(pattern, error.what());
    return std::nullopt;
  }
}

void Evaluator::report(std::int64_t ruled_out, std::int64_t remaining) {
  pruned_ += ruled_out;
  if (options_.progress) options_.progress({evaluated_, pruned_, remaining});
}

void Evaluator::settled(std::size_t pattern) {
  if (options_.settled) options_.settled(pattern);
}

}  // namespace tritax
