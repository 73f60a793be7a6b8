#include "sim/study/advise.hpp"

#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include <algorithm>
#include <atomic>
#include <limits>

#include "model/core/error.hpp"
#include "model/machine/topology.hpp"
#include "model/select/gemm_bound.hpp"
#include "sim/same_time.hpp"
#include "sim/study/why.hpp"

namespace tritax {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr std::size_t kBatch = 32;  // candidates between two pruning decisions, for any number of threads
constexpr std::size_t kFrontier =
    2;                           // shapes of tiles of a pattern, of which the best's neighbours are tried
constexpr int kRefinements = 4;  // rounds of that, while there is something to gain
constexpr double kWorthRefining = 0.003;  // a pattern is done once a round gains less than this share
// A simulation ends once it is so much slower than its pattern's best: nobody would look at its time.
constexpr double kHopelessFactor = 1.03;

struct Contender {
  std::size_t pattern = 0;
  Knobs knobs;
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
  std::string refusal;               // why nothing of it can be built
  std::vector<std::size_t> members;  // contenders, in order of listing
  std::optional<std::size_t> best;
  // The fastest member of every one of the fastest tile shapes m × n, fastest first: those whose neighbours
  // are tried. Not just the fastest members, which are one tile with a knob that hardly matters.
  std::vector<std::size_t> frontier;
  double refined_ns = kNever;  // time of the best when its neighbours were last listed
  SimulationResult best_result;
  bool accounted = false;  // the following three are known or being computed
  CounterfactualMakespans makespans;
  Rounds rounds;
  double fixed_order_ns = 0;
};

// Work that nothing waits for yet: threads do it while the search has none for them, as at the end of a batch
// whose last simulation takes long.
class Background {
 public:
  explicit Background(int threads) : arena_(threads, 1, tbb::task_arena::priority::low) {}
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;
  ~Background() {
    try {
      tasks_.cancel();
      finish();
    } catch (...) {  // the search has failed already, or it would have finished
    }
  }

  template <typename Task>
  void add(const Task& task) {
    arena_.execute([&] { tasks_.run(task); });
  }
  // Helps until all of it is done.
  void finish() {
    arena_.execute([&] { tasks_.wait(); });
  }

 private:
  tbb::task_arena arena_;
  tbb::task_group tasks_;
};

bool same_shape(const Knobs& a, const Knobs& b) { return a.tile_m == b.tile_m && a.tile_n == b.tile_n; }

class Search {
 public:
  Search(const GemmAllScatter& workload, const Machine& machine, const AdviseOptions& options);
  Advice run();

 private:
  void list(std::size_t pattern, const std::vector<Knobs>& knobs);
  void evaluate_listed();
  std::vector<std::size_t> by_promise(std::size_t first) const;
  enum class Outcome : std::uint8_t { stopped, refused, pruned, simulated };
  Outcome evaluate(Contender& contender, SimulationResult& result) const;
  void evaluate_batch(const std::vector<std::size_t>& batch);
  void take(std::size_t contender, SimulationResult result);
  double give_up_after_ns(const Contender& contender) const;
  bool refine();
  void account(std::size_t pattern);
  void list_tiles_of_others(std::size_t pattern);
  std::vector<Candidate> winners();
  bool stopped() const { return options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed); }
  double best_ns(std::size_t pattern) const;
  Schedule build(const Pattern& pattern, const Knobs& knobs) const {
    return build_schedule(pattern, workload_, machine_, knobs);
  }
  Schedule build(const Contender& contender) const {
    return build(*searches_[contender.pattern].pattern, contender.knobs);
  }
  void report(std::size_t remaining) const;

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

  const GemmAllScatter& workload_;
  const Machine& machine_;
  const AdviseOptions& options_;
  Topology topology_;
  const int threads_;
  tbb::global_control thread_limit_;  // of search and background together
  tbb::task_arena arena_;
  std::vector<PatternSearch> searches_;
  std::vector<Contender> contenders_;
  std::size_t listed_ = 0;  // contenders before this one have been decided
  Advice advice_;
  Background background_;  // last: its tasks use the others
};

Search::Search(const GemmAllScatter& workload, const Machine& machine, const AdviseOptions& options)
    : workload_(workload),
      machine_(machine),
      options_(options),
      topology_(build_topology(machine, workload.gpus)),
      threads_(options.threads > 0 ? options.threads : tbb::info::default_concurrency()),
      thread_limit_(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(threads_)),
      arena_(threads_),
      background_(threads_) {
  for (const Pattern& pattern : patterns()) {
    PatternSearch search;
    search.pattern = &pattern;
    try {
      search.space = knob_space(pattern, workload, machine, options.pins);
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

void Search::report(std::size_t remaining) const {
  if (options_.progress) {
    options_.progress({advice_.evaluated, advice_.pruned, static_cast<std::int64_t>(remaining)});
  }
}

// Adds the knobs that have not been listed before.
void Search::list(std::size_t pattern, const std::vector<Knobs>& knobs) {
  PatternSearch& search = searches_[pattern];
  for (const Knobs& wanted : knobs) {
    const bool known = std::any_of(search.members.begin(), search.members.end(),
                                   [&](std::size_t member) { return contenders_[member].knobs == wanted; });
    if (known) continue;
    search.members.push_back(contenders_.size());
    Contender contender;
    contender.pattern = pattern;
    contender.knobs = wanted;
    try {
      contender.least_ns = gemm_bound_ns(*search.pattern, workload_, machine_, wanted);
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

// How long it may take to be of use: to be the fastest of its pattern, or of a tile shape of the frontier.
double Search::give_up_after_ns(const Contender& contender) const {
  const PatternSearch& search = searches_[contender.pattern];
  if (!search.best) return 0;
  const double hopeless = kHopelessFactor * best_ns(contender.pattern);
  for (const std::size_t member : search.frontier) {
    if (same_shape(contenders_[member].knobs, contender.knobs)) {
      return std::min(hopeless, contenders_[member].time_ns);
    }
  }
  if (search.frontier.size() < kFrontier) return hopeless;
  return std::min(hopeless, contenders_[search.frontier.back()].time_ns);
}

// Builds, bounds and, unless the bound rules it out, simulates one contender. On any thread: it changes
// nothing but its arguments.
Search::Outcome Search::evaluate(Contender& contender, SimulationResult& result) const {
  if (stopped()) return Outcome::stopped;
  try {
    const Schedule schedule = build(contender);
    contender.bound = time_bound(schedule, machine_, topology_);
    if (contender.bound.total_ns >= best_ns(contender.pattern)) return Outcome::pruned;
    if (stopped()) return Outcome::stopped;
    SimulationOptions options;
    options.seed = options_.seed;
    options.give_up_after_ns = give_up_after_ns(contender);
    result = simulate(schedule, machine_, options);
    return Outcome::simulated;
  } catch (const UserError& error) {
    contender.refusal = error.what();
    return Outcome::refused;
  }
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
    return same_shape(contenders_[member].knobs, contender.knobs);
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
  std::vector<SimulationResult> results(batch.size());
  std::vector<Outcome> outcomes(batch.size(), Outcome::stopped);
  parallel(batch.size(), [&](std::size_t i) { outcomes[i] = evaluate(contenders_[batch[i]], results[i]); });
  for (std::size_t i = 0; i < batch.size(); ++i) {
    std::string& refusal = searches_[contenders_[batch[i]].pattern].refusal;
    if (refusal.empty()) refusal = contenders_[batch[i]].refusal;
    advice_.pruned += outcomes[i] == Outcome::pruned;
    if (outcomes[i] != Outcome::simulated) continue;
    ++advice_.evaluated;
    if (results[i].gave_up) {
      ++advice_.given_up;
    } else {
      take(batch[i], std::move(results[i]));
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
      if (contender.least_ns >= best_ns(contender.pattern)) {
        ++advice_.pruned;
      } else {
        batch.push_back(order[next]);
      }
    }
    evaluate_batch(batch);
    report(order.size() - next);
  }
}

// Lists the pattern's best with the tiles that are best for the other patterns.
void Search::list_tiles_of_others(std::size_t pattern) {
  const PatternSearch& search = searches_[pattern];
  const Knobs own = contenders_[*search.best].knobs;
  for (const PatternSearch& other : searches_) {
    if (&other == &search || !other.best || !other.pattern->uses.tile) continue;
    const auto knobs = with_tile_of(*search.space, workload_, own, contenders_[*other.best].knobs);
    if (knobs) list(pattern, {*knobs});
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
    if (best_ns(p) <= (1 - kWorthRefining) * search.refined_ns) {
      search.refined_ns = best_ns(p);
      for (const std::size_t member : search.frontier) {
        if (contenders_[member].expanded) continue;
        contenders_[member].expanded = true;
        list(p, neighbours(*search.space, workload_, contenders_[member].knobs));
      }
    }
    if (search.pattern->uses.tile) list_tiles_of_others(p);
    if (contenders_.size() == listed) account(p);  // its best stays the best
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
  const Knobs knobs = contenders_[*search.best].knobs;
  background_.add([this, &search, options, knobs] {
    const Schedule schedule = build(*search.pattern, knobs);
    simulate_by_dependences(schedule, machine_, options, search.makespans);
  });
  background_.add([this, &search, options, knobs] {
    const Schedule schedule = build(*search.pattern, knobs);
    simulate_in_order(schedule, machine_, options, search.makespans);
    search.rounds = gemm_rounds(schedule, machine_);
    if (knobs.peer_order != PeerOrder::staggered) return;
    Knobs fixed = knobs;
    fixed.peer_order = PeerOrder::fixed;
    search.fixed_order_ns = simulate(build(*search.pattern, fixed), machine_, options).makespan_ns;
  });
}

// The best of every pattern with its taxes, best first.
std::vector<Candidate> Search::winners() {
  for (std::size_t p = 0; p < searches_.size(); ++p) {
    if (searches_[p].best) account(p);
  }
  background_.finish();
  std::vector<Candidate> candidates;
  for (const PatternSearch& search : searches_) {
    if (!search.best) continue;
    const Contender& contender = contenders_[*search.best];
    Candidate& candidate = candidates.emplace_back();
    candidate.pattern = search.pattern->name;
    candidate.knobs = contender.knobs;
    candidate.time_ns = contender.time_ns;
    candidate.taxes = taxes_of(search.best_result, search.makespans);
    candidate.result = search.best_result;
    candidate.bound = contender.bound;
    candidate.rounds = search.rounds;
    candidate.fixed_order_ns = search.fixed_order_ns;
  }
  const double library_ns = best_ns(0);
  for (Candidate& candidate : candidates) {
    if (library_ns < kNever) candidate.speedup = library_ns / candidate.time_ns;
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.time_ns < b.time_ns; });
  return candidates;
}

Advice Search::run() {
  for (std::size_t p = 0; p < searches_.size(); ++p) {
    if (searches_[p].space) list(p, coarse_candidates(*searches_[p].space, workload_));
  }
  evaluate_listed();
  // Pins that leave only the baseline, which has no knobs, answer nobody's question.
  const auto impossible = [](const PatternSearch& search) { return !search.best && !search.refusal.empty(); };
  if (!stopped() && std::all_of(searches_.begin() + 1, searches_.end(), impossible)) {
    throw UserError(searches_[1].refusal);
  }
  for (int round = 0; round < kRefinements && !stopped() && refine(); ++round) evaluate_listed();

  advice_.interrupted = stopped();
  for (const PatternSearch& search : searches_) {
    if (impossible(search))
      advice_.left_out.push_back(std::string(search.pattern->name) + ": " + search.refusal);
  }
  advice_.candidates = winners();
  advice_.explanation = explain_winner(advice_.candidates, workload_, machine_);
  return std::move(advice_);
}

}  // namespace

Advice advise(const GemmAllScatter& workload, const Machine& machine, const AdviseOptions& options) {
  check(workload, "workload");
  return Search(workload, machine, options).run();
}

}  // namespace tritax
