#include "sim/advise.hpp"

#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>

#include "model/core/error.hpp"
#include "model/machine/topology.hpp"
#include "sim/same_time.hpp"
#include "sim/why.hpp"

namespace tritax {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr std::size_t kBatch = 32;    // candidates between two pruning decisions, for any number of threads
constexpr std::size_t kFrontier = 2;  // candidates of a pattern whose neighbours are tried
constexpr int kRefinements = 4;       // rounds of that, while there is something to gain
constexpr double kWorthRefining = 0.003;  // a pattern is done once a round gains less than this share
// A simulation ends once it is so much slower than its pattern's best, or slower than the best whose
// neighbours will be tried: nobody would look at its time.
constexpr double kHopelessFactor = 1.03;
constexpr std::size_t kKeptBytes = std::size_t{256}
                                   << 20;  // of schedules between their bound and their simulation

struct Contender {
  std::size_t pattern = 0;
  Knobs knobs;
  TimeBound bound;
  std::string refusal;               // why it cannot be built; empty if it can
  std::optional<Schedule> schedule;  // until it is simulated, if there was room for it
  bool simulated = false;            // in full; only then has it a time
  double time_ns = kNever;
  bool expanded = false;  // its neighbours have been listed
};

struct PatternSearch {
  const Pattern* pattern = nullptr;
  std::optional<KnobSpace> space;
  std::string refusal;               // why nothing of it can be built
  std::vector<std::size_t> members;  // contenders, in order of listing
  std::optional<std::size_t> best;
  std::array<double, kFrontier> least_ns;  // of the times, ascending
  double refined_ns = kNever;              // time of the best when its neighbours were last listed
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

class Search {
 public:
  Search(const GemmAllScatter& workload, const Machine& machine, const AdviseOptions& options);
  Advice run();

 private:
  void list(std::size_t pattern, const std::vector<Knobs>& knobs);
  void evaluate_listed();
  void compute_bounds(std::size_t first);
  std::vector<std::size_t> by_promise(std::size_t first) const;
  void simulate_batch(const std::vector<std::size_t>& batch);
  bool refine();
  void account(std::size_t pattern);
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
    search.least_ns.fill(kNever);
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
    contenders_.push_back(std::move(contender));
  }
}

void Search::compute_bounds(std::size_t first) {
  std::atomic<std::size_t> kept_bytes = 0;
  parallel(contenders_.size() - first, [&](std::size_t i) {
    if (stopped()) return;
    Contender& contender = contenders_[first + i];
    try {
      Schedule schedule = build(contender);
      contender.bound = time_bound(schedule, machine_, topology_);
      if (contender.bound.total_ns >= best_ns(contender.pattern)) return;  // will not be simulated
      const std::size_t bytes = schedule.ops.capacity() * sizeof(Op);
      if (kept_bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes <= kKeptBytes) {
        contender.schedule = std::move(schedule);
      }
    } catch (const UserError& error) {
      contender.refusal = error.what();
    }
  });
  for (std::size_t i = first; i < contenders_.size(); ++i) {
    std::string& refusal = searches_[contenders_[i].pattern].refusal;
    if (refusal.empty()) refusal = contenders_[i].refusal;
  }
}

// The buildable contenders from `first` on: the most promising of every pattern, then the second of every
// pattern, …
std::vector<std::size_t> Search::by_promise(std::size_t first) const {
  std::vector<std::vector<std::size_t>> queues(searches_.size());
  for (std::size_t i = first; i < contenders_.size(); ++i) {
    if (contenders_[i].refusal.empty()) queues[contenders_[i].pattern].push_back(i);
  }
  std::size_t longest = 0;
  for (auto& queue : queues) {
    std::stable_sort(queue.begin(), queue.end(), [&](std::size_t a, std::size_t b) {
      return contenders_[a].bound.total_ns < contenders_[b].bound.total_ns;
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

void Search::simulate_batch(const std::vector<std::size_t>& batch) {
  std::vector<SimulationResult> results(batch.size());
  std::vector<std::uint8_t> ran(batch.size(), 0);
  parallel(batch.size(), [&](std::size_t i) {
    if (stopped()) return;
    Contender& contender = contenders_[batch[i]];
    SimulationOptions options;
    options.seed = options_.seed;
    const double best = best_ns(contender.pattern);
    const double frontier = searches_[contender.pattern].least_ns.back();
    options.give_up_after_ns = best < kNever ? std::min(kHopelessFactor * best, frontier) : 0;
    if (!contender.schedule) contender.schedule = build(contender);
    results[i] = simulate(*contender.schedule, machine_, options);
    contender.schedule.reset();
    ran[i] = 1;
  });
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (!ran[i]) continue;
    ++advice_.evaluated;
    if (results[i].gave_up) {
      ++advice_.given_up;
      continue;
    }
    Contender& contender = contenders_[batch[i]];
    contender.simulated = true;
    contender.time_ns = results[i].makespan_ns;
    auto& least = searches_[contender.pattern].least_ns;
    least.back() = std::min(least.back(), contender.time_ns);
    std::inplace_merge(least.begin(), least.end() - 1, least.end());
    if (later(best_ns(contender.pattern), contender.time_ns)) {  // rounding decides nothing
      searches_[contender.pattern].best = batch[i];
      searches_[contender.pattern].best_result = std::move(results[i]);
    }
  }
}

// Decides every contender that has been listed since the last call.
void Search::evaluate_listed() {
  const std::size_t first = listed_;
  listed_ = contenders_.size();
  compute_bounds(first);
  if (stopped()) return;
  const std::vector<std::size_t> order = by_promise(first);
  std::size_t next = 0;
  while (next < order.size() && !stopped()) {
    std::vector<std::size_t> batch;
    // The first batch is small: nothing can be given up before each pattern has a best.
    const std::size_t size = next == 0 ? searches_.size() : kBatch;
    for (; next < order.size() && batch.size() < size; ++next) {
      const Contender& contender = contenders_[order[next]];
      if (contender.bound.total_ns >= best_ns(contender.pattern)) {
        ++advice_.pruned;
        contenders_[order[next]].schedule.reset();
      } else {
        batch.push_back(order[next]);
      }
    }
    simulate_batch(batch);
    report(order.size() - next);
  }
}

// Lists the neighbours of the best few of every pattern that still gains; false if none does.
bool Search::refine() {
  bool found = false;
  for (std::size_t p = 0; p < searches_.size(); ++p) {
    if (!searches_[p].best) continue;
    const std::size_t listed = contenders_.size();
    if (best_ns(p) > (1 - kWorthRefining) * searches_[p].refined_ns) {
      account(p);
      continue;
    }
    searches_[p].refined_ns = best_ns(p);
    std::vector<std::size_t> ranked;
    for (const std::size_t member : searches_[p].members) {
      if (contenders_[member].simulated) ranked.push_back(member);
    }
    std::stable_sort(ranked.begin(), ranked.end(), [&](std::size_t a, std::size_t b) {
      return contenders_[a].time_ns < contenders_[b].time_ns;
    });
    if (ranked.size() > kFrontier) ranked.resize(kFrontier);
    for (const std::size_t member : ranked) {
      if (contenders_[member].expanded) continue;
      contenders_[member].expanded = true;
      list(p, neighbours(*searches_[p].space, workload_, contenders_[member].knobs));
      found = true;
    }
    if (contenders_.size() == listed) account(p);  // its best stays the best
  }
  return found;
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
