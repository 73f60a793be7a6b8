#include "sim/study/advise.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include "model/core/error.hpp"
#include "sim/same_time.hpp"
#include "sim/study/evaluator.hpp"
#include "sim/study/why.hpp"

namespace tritax {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr std::size_t kBatch = 16;  // candidates between two pruning decisions, for any number of threads
constexpr std::size_t kFrontier =
    2;                           // shapes of tiles of a pattern, of which the best's neighbours are tried
constexpr int kRefinements = 4;  // rounds of that, while there is something to gain
// Then every single change of a knob is tried on the best of the patterns that are so near to the fastest …
constexpr double kInReach = 1.05;
constexpr int kPolishings = 6;            // … in so many rounds at most
constexpr double kWorthRefining = 0.003;  // a pattern is done once a round gains less than this share
// Neither does it matter how exactly a pattern takes so many times as long as the fastest.
constexpr double kFarBehind = 1.5;
// A simulation ends once it is so much slower than its pattern's best: nobody would look at its time.
constexpr double kHopelessFactor = 1.03;

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
constexpr CounterfactualMakespans kUnknownMakespans{kUnknown, kUnknown, kUnknown, kUnknown};

struct Contender {
  std::size_t pattern = 0;
  KnobChoice choice;
  Values knobs;
  double least_ns = 0;     // no schedule of the knobs is faster; known before any is built
  TimeBound bound;         // of the schedule
  std::string refusal;     // why it cannot be built; empty if it can
  bool simulated = false;  // in full; only then has it a time
  double time_ns = kNever;
  bool expanded = false;  // its neighbours have been listed
};

struct PatternSearch {
  const Pattern* pattern = nullptr;
  std::optional<KnobSpace> space;
  std::string refusal;                        // why nothing of it can be built
  std::set<std::vector<std::int64_t>> known;  // the knobs that have been listed
  std::optional<std::size_t> best;
  // The fastest member of every one of the fastest groups (tile shapes m × n), fastest first: those whose
  // neighbours are tried. Not just the fastest members, which are one tile with a knob that hardly matters.
  std::vector<std::size_t> frontier;
  double refined_ns = kNever;           // time of the best when its neighbours were last listed
  std::optional<std::size_t> polished;  // the best when all its single changes were listed
  SimulationResult best_result;
  bool accounted = false;  // the following three are known or being computed
  CounterfactualMakespans makespans;
  Rounds rounds;
  std::vector<OtherTime> others;
};

// What a search may try: of a workload that does not say, the defaults alone.
KnobSpace space_of(const Pattern& pattern, const Problem& problem, const Machine& machine,
                   const Values& pins) {
  const Workload& workload = *problem.workload;
  if (workload.space != nullptr) return workload.space(pattern, problem, machine, pins);
  KnobSpace space;
  space.base = resolved_knobs(problem, machine, pins);
  return space;
}

std::vector<std::int64_t> numbers_of(const Values& knobs) {
  std::vector<std::int64_t> numbers;
  for (std::size_t i = 0; i < knobs.columns(); ++i) numbers.push_back(knobs.at(i));
  return numbers;
}

class Search {
 public:
  Search(const Problem& problem, const Machine& machine, const AdviseOptions& options);
  Advice run();

 private:
  void list(std::size_t pattern, std::vector<Option> found);
  void evaluate_listed();
  std::vector<std::size_t> by_promise(std::size_t first) const;
  void evaluate_batch(const std::vector<std::size_t>& batch);
  void take(std::size_t contender, SimulationResult result);
  double give_up_after_ns(const Contender& contender) const;
  bool refine();
  bool polish();
  void account(std::size_t pattern);
  void list_best_of_others(std::size_t pattern);
  std::vector<Candidate> winners();
  bool stopped() const { return evaluator_.stopped(); }
  double best_ns(std::size_t pattern) const;
  double worth_ns(std::size_t pattern) const;
  bool same_group(const Contender& a, const Contender& b) const;
  double fastest_ns() const;
  bool in_reach(std::size_t pattern) const;
  bool far_behind(std::size_t pattern) const;
  bool is_baseline(const PatternSearch& search) const { return search.pattern->name == workload_.baseline; }
  void report(std::size_t remaining) const;

  const Problem& problem_;
  const Workload& workload_;
  const AdviseOptions& options_;
  std::vector<PatternSearch> searches_;
  std::vector<Contender> contenders_;
  std::size_t listed_ = 0;  // contenders before this one have been decided
  bool polishing_ = false;  // only what gains is of use
  Advice advice_;
  Evaluator evaluator_;  // last: its background tasks use the others
};

Search::Search(const Problem& problem, const Machine& machine, const AdviseOptions& options)
    : problem_(problem),
      workload_(*problem.workload),
      options_(options),
      evaluator_(problem, machine, options.seed, options.threads, options.stop) {
  const Values pins = options.pins.columns() > 0 ? options.pins : Values(workload_.knobs);
  for (const Pattern& pattern : workload_.patterns) {
    PatternSearch search;
    search.pattern = &pattern;
    try {
      search.space = space_of(pattern, problem, machine, pins);
    } catch (const UserError& error) {
      search.refusal = error.what();
    }
    searches_.push_back(std::move(search));
  }
}

double Search::best_ns(std::size_t pattern) const {
  const PatternSearch& search = searches_[pattern];
  return search.best ? contenders_[*search.best].time_ns : kNever;
}

// What a contender has to beat to be of use.
double Search::worth_ns(std::size_t pattern) const {
  return (polishing_ ? 1 - kWorthRefining : 1) * best_ns(pattern);
}

bool Search::same_group(const Contender& a, const Contender& b) const {
  const KnobSpace& space = *searches_[a.pattern].space;
  return group_of(space, a.choice) == group_of(space, b.choice);
}

void Search::report(std::size_t remaining) const {
  if (options_.progress) {
    options_.progress({advice_.evaluated, advice_.pruned, static_cast<std::int64_t>(remaining)});
  }
}

// Adds the knobs that have not been listed before.
void Search::list(std::size_t pattern, std::vector<Option> found) {
  PatternSearch& search = searches_[pattern];
  for (Option& wanted : found) {
    if (!search.known.insert(numbers_of(wanted.knobs)).second) continue;
    Contender contender;
    contender.pattern = pattern;
    contender.choice = std::move(wanted.choice);
    contender.knobs = std::move(wanted.knobs);
    try {
      contender.least_ns = evaluator_.least_ns(*search.pattern, contender.knobs);
    } catch (const UserError& error) {
      contender.refusal = error.what();
      if (search.refusal.empty()) search.refusal = contender.refusal;
    }
    contenders_.push_back(std::move(contender));
  }
}

// The contenders from `first` on: the most promising of every pattern, then the second of every pattern, …
// At the start of the search the default knobs go first: from then on there is an answer, and a time to beat.
std::vector<std::size_t> Search::by_promise(std::size_t first) const {
  std::vector<std::vector<std::size_t>> queues(searches_.size());
  for (std::size_t i = first; i < contenders_.size(); ++i) {
    if (contenders_[i].refusal.empty()) queues[contenders_[i].pattern].push_back(i);
  }
  std::size_t longest = 0;
  for (auto& queue : queues) {
    const auto sorted = queue.begin() + (first == 0 && !queue.empty() ? 1 : 0);
    std::stable_sort(sorted, queue.end(), [&](std::size_t a, std::size_t b) {
      return contenders_[a].least_ns < contenders_[b].least_ns;
    });
    longest = std::max(longest, queue.size());
  }
  std::vector<std::size_t> order;
  for (std::size_t place = 0; place < longest; ++place) {
    for (const auto& queue : queues) {
      if (place < queue.size()) order.push_back(queue[place]);
    }
  }
  return order;
}

// How long it may take to be of use: to be the fastest of its pattern, or of a group of the frontier.
double Search::give_up_after_ns(const Contender& contender) const {
  const PatternSearch& search = searches_[contender.pattern];
  if (!search.best) return 0;
  if (polishing_) return worth_ns(contender.pattern);
  const double hopeless = std::min(kHopelessFactor * best_ns(contender.pattern), kFarBehind * fastest_ns());
  for (const std::size_t member : search.frontier) {
    if (same_group(contenders_[member], contender)) {
      return std::min(hopeless, contenders_[member].time_ns);
    }
  }
  if (search.frontier.size() < kFrontier) return hopeless;
  return std::min(hopeless, contenders_[search.frontier.back()].time_ns);
}

// Enters a full simulation of a contender.
void Search::take(std::size_t index, SimulationResult result) {
  Contender& contender = contenders_[index];
  PatternSearch& search = searches_[contender.pattern];
  contender.simulated = true;
  contender.time_ns = result.makespan_ns;
  if (later(best_ns(contender.pattern), contender.time_ns)) {  // rounding decides nothing
    search.best = index;
    search.best_result = std::move(result);
  }
  auto& frontier = search.frontier;
  const auto same = std::find_if(frontier.begin(), frontier.end(), [&](std::size_t member) {
    return same_group(contenders_[member], contender);
  });
  if (same == frontier.end()) {
    frontier.push_back(index);
  } else if (later(contenders_[*same].time_ns, contender.time_ns)) {
    *same = index;
  }
  std::stable_sort(frontier.begin(), frontier.end(), [&](std::size_t a, std::size_t b) {
    return contenders_[a].time_ns < contenders_[b].time_ns;
  });
  if (frontier.size() > kFrontier) frontier.resize(kFrontier);
}

void Search::evaluate_batch(const std::vector<std::size_t>& batch) {
  std::vector<Evaluation> evaluations(batch.size());
  evaluator_.parallel(batch.size(), [&](std::size_t i) {
    const Contender& contender = contenders_[batch[i]];
    evaluations[i] = evaluator_.evaluate(*searches_[contender.pattern].pattern, contender.knobs,
                                         {worth_ns(contender.pattern), give_up_after_ns(contender)});
  });
  for (std::size_t i = 0; i < batch.size(); ++i) {
    Contender& contender = contenders_[batch[i]];
    Evaluation& evaluation = evaluations[i];
    contender.bound = evaluation.bound;
    contender.refusal = std::move(evaluation.refusal);
    std::string& refusal = searches_[contender.pattern].refusal;
    if (refusal.empty()) refusal = contender.refusal;
    advice_.pruned += evaluation.outcome == Outcome::pruned;
    if (evaluation.outcome != Outcome::simulated) continue;
    ++advice_.evaluated;
    if (evaluation.result.gave_up) {
      ++advice_.given_up;
    } else {
      take(batch[i], std::move(evaluation.result));
    }
  }
}

// Decides every contender that has been listed since the last call.
void Search::evaluate_listed() {
  const std::vector<std::size_t> order = by_promise(listed_);
  const bool starts = listed_ == 0;
  listed_ = contenders_.size();
  std::size_t next = 0;
  while (next < order.size() && !stopped()) {
    std::vector<std::size_t> batch;
    // The first batch is small: nothing can be given up before each pattern has a best.
    const std::size_t size = starts && next == 0 ? searches_.size() : kBatch;
    for (; next < order.size() && batch.size() < size; ++next) {
      const Contender& contender = contenders_[order[next]];
      if (contender.least_ns >= worth_ns(contender.pattern)) {
        ++advice_.pruned;
      } else {
        batch.push_back(order[next]);
      }
    }
    evaluate_batch(batch);
    report(order.size() - next);
  }
}

// Lists the pattern's best with what is best for the other patterns and does not depend on the pattern: the
// tiles.
void Search::list_best_of_others(std::size_t pattern) {
  const PatternSearch& search = searches_[pattern];
  const KnobChoice own = contenders_[*search.best].choice;
  for (const PatternSearch& other : searches_) {
    if (&other == &search || !other.best || other.pattern->own_choice != nullptr) continue;
    auto found = with_travelling(*search.space, own, *other.space, contenders_[*other.best].choice);
    if (found) list(pattern, {std::move(*found)});
  }
}

// Lists the neighbours of the best few of every pattern that still gains, and what is best for the other
// patterns; false if there is nothing new.
bool Search::refine() {
  const std::size_t first = contenders_.size();
  for (std::size_t p = 0; p < searches_.size(); ++p) {
    PatternSearch& search = searches_[p];
    if (!search.best || search.accounted) continue;
    const std::size_t listed = contenders_.size();
    if (!far_behind(p) && best_ns(p) <= (1 - kWorthRefining) * search.refined_ns) {
      search.refined_ns = best_ns(p);
      for (const std::size_t member : search.frontier) {
        if (contenders_[member].expanded) continue;
        contenders_[member].expanded = true;
        list(p, neighbours(*search.space, contenders_[member].choice));
      }
    }
    list_best_of_others(p);
    if (contenders_.size() == listed && !in_reach(p)) account(p);  // its best stays the best
  }
  return contenders_.size() > first;
}

// Whether the pattern may still become the fastest.
bool Search::in_reach(std::size_t pattern) const { return best_ns(pattern) <= kInReach * fastest_ns(); }

bool Search::far_behind(std::size_t pattern) const { return best_ns(pattern) > kFarBehind * fastest_ns(); }

double Search::fastest_ns() const {
  double fastest_ns = kNever;
  for (std::size_t p = 0; p < searches_.size(); ++p) fastest_ns = std::min(fastest_ns, best_ns(p));
  return fastest_ns;
}

// Lists every single change of a knob of the best of the patterns in reach, so that none is left that gains;
// false if there is nothing new.
bool Search::polish() {
  polishing_ = true;
  const std::size_t first = contenders_.size();
  for (std::size_t p = 0; p < searches_.size(); ++p) {
    PatternSearch& search = searches_[p];
    if (!search.best || search.accounted) continue;
    if (!in_reach(p)) {
      account(p);
      continue;
    }
    const bool gained =
        !search.polished || best_ns(p) <= (1 - kWorthRefining) * contenders_[*search.polished].time_ns;
    if (gained) {
      search.polished = search.best;
      list(p, neighbours(*search.space, contenders_[*search.best].choice, Reach::all));
    }
    list_best_of_others(p);
  }
  return contenders_.size() > first;
}

// Starts to find out where the time of the pattern's best goes. Two tasks, so that the slowest pattern does
// not keep the others waiting.
void Search::account(std::size_t pattern) {
  PatternSearch& search = searches_[pattern];
  if (search.accounted) return;
  search.accounted = true;
  SimulationOptions options;
  options.seed = options_.seed;
  options.stop = options_.stop;
  const Values knobs = contenders_[*search.best].knobs;
  const bool counterfactual = options_.counterfactual;
  if (counterfactual) {
    evaluator_.in_background([this, &search, options, knobs] {
      if (stopped()) return;
      const Schedule schedule = evaluator_.build(*search.pattern, knobs);
      simulate_by_dependences(schedule, evaluator_.machine(), options, search.makespans);
    });
  }
  evaluator_.in_background([this, &search, options, knobs, counterfactual] {
    if (stopped()) return;
    const Schedule schedule = evaluator_.build(*search.pattern, knobs);
    if (counterfactual) simulate_in_order(schedule, evaluator_.machine(), options, search.makespans);
    search.rounds = gemm_rounds(schedule, evaluator_.machine());
    for (const Spec& spec : knobs.specs()) {
      if (!spec.what_if || knobs[spec.name] != spec.what_if->when) continue;
      Values other = knobs;
      other.assume(spec.name, spec.what_if->instead);
      const Schedule changed = evaluator_.build(*search.pattern, other);
      search.others.push_back(
          {spec.what_if->sentence, simulate(changed, evaluator_.machine(), options).makespan_ns});
    }
  });
}

// The best of every pattern with its taxes, best first.
std::vector<Candidate> Search::winners() {
  for (std::size_t p = 0; p < searches_.size(); ++p) {
    if (searches_[p].best && !stopped()) account(p);
  }
  evaluator_.finish_background();
  std::vector<Candidate> candidates;
  for (const PatternSearch& search : searches_) {
    if (!search.best) continue;
    const Contender& contender = contenders_[*search.best];
    Candidate& candidate = candidates.emplace_back();
    candidate.pattern = search.pattern;
    candidate.knobs = contender.knobs;
    candidate.time_ns = contender.time_ns;
    candidate.taxes.account = search.best_result.account;
    candidate.taxes.makespan_ns = search.best_result.makespan_ns;
    if (options_.counterfactual) {
      // An interrupted account is none.
      candidate.taxes = taxes_of(search.best_result, stopped() ? kUnknownMakespans : search.makespans);
    }
    candidate.result = search.best_result;
    candidate.bound = contender.bound;
    candidate.rounds = search.rounds;
    candidate.others = search.others;
  }
  for (std::size_t p = 0; p < searches_.size(); ++p) {
    if (!is_baseline(searches_[p]) || !searches_[p].best) continue;
    for (Candidate& candidate : candidates) candidate.speedup = best_ns(p) / candidate.time_ns;
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.time_ns < b.time_ns; });
  return candidates;
}

Advice Search::run() {
  for (std::size_t p = 0; p < searches_.size(); ++p) {
    if (searches_[p].space) list(p, coarse_choices(*searches_[p].space));
  }
  evaluate_listed();
  // Pins that leave only the baseline, which has no knobs, answer nobody's question.
  const auto impossible = [](const PatternSearch& search) { return !search.best && !search.refusal.empty(); };
  const auto counts = [&](const PatternSearch& search) {
    return searches_.size() == 1 || !is_baseline(search);
  };
  const bool none = std::all_of(searches_.begin(), searches_.end(), [&](const PatternSearch& search) {
    return !counts(search) || impossible(search);
  });
  if (!stopped() && none) throw UserError(std::find_if(searches_.begin(), searches_.end(), counts)->refusal);
  for (int round = 0; round < kRefinements && !stopped() && refine(); ++round) evaluate_listed();
  for (int round = 0; round < kPolishings && !stopped() && polish(); ++round) evaluate_listed();

  for (const PatternSearch& search : searches_) {
    if (impossible(search))
      advice_.left_out.push_back(std::string(search.pattern->name) + ": " + search.refusal);
  }
  advice_.candidates = winners();
  advice_.interrupted = stopped();
  if (!stopped()) advice_.explanation = explain_winner(advice_.candidates, problem_);
  return std::move(advice_);
}

}  // namespace

Advice advise(const Problem& problem, const Machine& machine, const AdviseOptions& options) {
  return Search(problem, machine, options).run();
}

}  // namespace tritax
