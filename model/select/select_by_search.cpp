#include <algorithm>
#include <set>

#include "model/core/same_time.hpp"
#include "model/select/selectors.hpp"

namespace tritax {

namespace {

constexpr std::size_t kBatch = 16;    // candidates per pruning decision, for any number of threads
constexpr std::size_t kFrontier = 2;  // tile shapes per pattern whose best member's neighbours are tried
constexpr int kRefinements = 4;       // most rounds of neighbours
// Most rounds in which every single change of a knob is tried on the best of each pattern.
constexpr int kPolishings = 6;
constexpr double kWorthRefining = 0.003;  // a pattern is done when a round gains less than this share
// A pattern that takes this factor longer than the fastest own pattern is not tuned; its result says so.
constexpr double kFarBehind = 1.5;
// A simulation ends when it is this factor slower than the best of its pattern: its exact time is useless.
constexpr double kHopelessFactor = 1.03;
// Among the last single changes, candidates up to this factor slower may still win when all GPUs run
// (Evaluator).
constexpr double kMayStillWin = 1.04;

struct Contender {
  std::size_t pattern = 0;
  KnobChoice choice;
  Values knobs;
  std::optional<double> least_ns;  // bound before building; nothing if it cannot be built
  double time_ns = kNever;         // of a full simulation
  bool expanded = false;           // its neighbours are listed
};

struct PatternSearch {
  const PatternChoices* row = nullptr;
  std::set<std::vector<std::int64_t>> known;  // the listed knobs
  std::optional<std::size_t> best;
  // The fastest member of each of the fastest groups (tile shapes m × n), fastest first; their neighbours are
  // tried. The overall fastest members would often be one tile with different values of an unimportant knob.
  std::vector<std::size_t> frontier;
  double refined_ns = kNever;           // time of the best when its neighbours were last listed
  std::optional<std::size_t> polished;  // the best when all its single changes were listed
  bool settled = false;                 // nothing more is tried
  const KnobSpace& space() const { return *row->space; }
};

std::vector<std::int64_t> numbers_of(const Values& knobs) {
  std::vector<std::int64_t> numbers;
  for (std::size_t i = 0; i < knobs.columns(); ++i) numbers.push_back(knobs.at(i));
  return numbers;
}

class Search {
 public:
  Search(const Choices& choices, Trials& trials);
  void run();

 private:
  void list(std::size_t pattern, std::vector<Option> found);
  void evaluate_listed();
  std::vector<std::size_t> by_promise(std::size_t first) const;
  void evaluate_batch(const std::vector<std::size_t>& batch);
  void take(std::size_t contender, double time_ns);
  double give_up_after_ns(const Contender& contender) const;
  bool refine();
  bool polish();
  void settle(std::size_t pattern);
  void list_best_of_others(std::size_t pattern);
  double best_ns(std::size_t pattern) const;
  double worth_ns(std::size_t pattern) const;
  bool same_group(const Contender& a, const Contender& b) const;
  double fastest_ns() const;
  bool far_behind(std::size_t pattern) const;
  bool has_knobs(std::size_t pattern) const;

  Trials& trials_;
  const Workload& workload_;
  std::vector<PatternSearch> searches_;
  std::vector<Contender> contenders_;
  std::size_t listed_ = 0;  // contenders before this one are decided
  bool polishing_ = false;  // candidates about as fast as the best are useful too
};

Search::Search(const Choices& choices, Trials& trials)
    : trials_(trials), workload_(*choices.problem->workload) {
  for (const PatternChoices& row : choices.patterns) searches_.emplace_back().row = &row;
}

double Search::best_ns(std::size_t pattern) const {
  const PatternSearch& search = searches_[pattern];
  return search.best ? contenders_[*search.best].time_ns : kNever;
}

// The time that a useful contender must beat.
double Search::worth_ns(std::size_t pattern) const {
  return (polishing_ ? kMayStillWin : 1) * best_ns(pattern);
}

bool Search::same_group(const Contender& a, const Contender& b) const {
  const KnobSpace& space = searches_[a.pattern].space();
  return group_of(space, a.choice) == group_of(space, b.choice);
}

// Adds the knobs that are not listed yet.
void Search::list(std::size_t pattern, std::vector<Option> found) {
  PatternSearch& search = searches_[pattern];
  for (Option& wanted : found) {
    if (!search.known.insert(numbers_of(wanted.knobs)).second) continue;
    Contender contender;
    contender.pattern = pattern;
    contender.choice = std::move(wanted.choice);
    contender.knobs = std::move(wanted.knobs);
    contender.least_ns = trials_.least_ns(pattern, contender.knobs);
    contenders_.push_back(std::move(contender));
  }
}

// The contenders from `first` on: the most promising of every pattern, then the second of every pattern, … At
// the start of the search the default knobs go first, so that an answer and a time to beat exist early.
std::vector<std::size_t> Search::by_promise(std::size_t first) const {
  std::vector<std::vector<std::size_t>> queues(searches_.size());
  for (std::size_t i = first; i < contenders_.size(); ++i) {
    if (contenders_[i].least_ns) queues[contenders_[i].pattern].push_back(i);
  }
  std::size_t longest = 0;
  for (auto& queue : queues) {
    const auto sorted = queue.begin() + (first == 0 && !queue.empty() ? 1 : 0);
    std::stable_sort(sorted, queue.end(), [&](std::size_t a, std::size_t b) {
      return *contenders_[a].least_ns < *contenders_[b].least_ns;
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

// Longest time of a useful contender: the fastest of its pattern, or of a group of the frontier.
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

// Records the time of a full simulation of a contender.
void Search::take(std::size_t index, double time_ns) {
  Contender& contender = contenders_[index];
  PatternSearch& search = searches_[contender.pattern];
  contender.time_ns = time_ns;
  if (later(best_ns(contender.pattern), time_ns)) search.best = index;  // equal up to rounding: no change
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
  std::vector<Proposal> proposals;
  for (const std::size_t index : batch) {
    const Contender& contender = contenders_[index];
    proposals.push_back({contender.pattern, contender.knobs, false, worth_ns(contender.pattern),
                         give_up_after_ns(contender)});
  }
  const std::vector<Trial> trials = trials_.evaluate(proposals);
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (trials[i].outcome == Outcome::simulated) take(batch[i], trials[i].time_ns);
  }
}

// Decides every contender listed since the last call.
void Search::evaluate_listed() {
  const std::vector<std::size_t> order = by_promise(listed_);
  const bool starts = listed_ == 0;
  listed_ = contenders_.size();
  std::size_t next = 0;
  while (next < order.size() && !trials_.stopped()) {
    std::vector<std::size_t> batch;
    std::int64_t ruled_out = 0;
    // The first batch is small: no simulation can be given up before each pattern has a best.
    const std::size_t size = starts && next == 0 ? searches_.size() : kBatch;
    for (; next < order.size() && batch.size() < size; ++next) {
      const Contender& contender = contenders_[order[next]];
      if (*contender.least_ns >= worth_ns(contender.pattern)) {
        ++ruled_out;
      } else {
        batch.push_back(order[next]);
      }
    }
    evaluate_batch(batch);
    trials_.report(ruled_out, static_cast<std::int64_t>(order.size() - next));
  }
}

// Lists the pattern's best with those best values of other patterns that do not depend on the pattern: the
// tiles.
void Search::list_best_of_others(std::size_t pattern) {
  const PatternSearch& search = searches_[pattern];
  const KnobChoice own = contenders_[*search.best].choice;
  for (const PatternSearch& other : searches_) {
    if (&other == &search || !other.best || other.row->pattern->own_choice != nullptr) continue;
    auto found = with_travelling(search.space(), own, other.space(), contenders_[*other.best].choice);
    if (found) list(pattern, {std::move(*found)});
  }
}

// Lists the neighbours of the best few of every pattern that still gains, and the best values of other
// patterns; false if nothing is new.
bool Search::refine() {
  const std::size_t first = contenders_.size();
  for (std::size_t p = 0; p < searches_.size(); ++p) {
    PatternSearch& search = searches_[p];
    if (!search.best || search.settled) continue;
    const std::size_t listed = contenders_.size();
    if (!far_behind(p) && best_ns(p) <= (1 - kWorthRefining) * search.refined_ns) {
      search.refined_ns = best_ns(p);
      for (const std::size_t member : search.frontier) {
        if (contenders_[member].expanded) continue;
        contenders_[member].expanded = true;
        list(p, neighbours(search.space(), contenders_[member].choice));
      }
    }
    list_best_of_others(p);
    if (contenders_.size() == listed && far_behind(p)) settle(p);  // its best stays the best
  }
  return contenders_.size() > first;
}

// Whether the pattern is not tuned further, which its row then says.
bool Search::far_behind(std::size_t pattern) const { return best_ns(pattern) > kFarBehind * fastest_ns(); }

// Fastest time of the user's own patterns; of all patterns while no own pattern has a time. The baseline's
// time may be in doubt, so an own pattern far behind the baseline is still tuned.
double Search::fastest_ns() const {
  double own_ns = kNever, any_ns = kNever;
  for (std::size_t p = 0; p < searches_.size(); ++p) {
    any_ns = std::min(any_ns, best_ns(p));
    if (!is_there(*searches_[p].row->pattern, workload_)) own_ns = std::min(own_ns, best_ns(p));
  }
  return own_ns < kNever ? own_ns : any_ns;
}

bool Search::has_knobs(std::size_t pattern) const {
  const auto& axes = searches_[pattern].space().axes;
  return std::any_of(axes.begin(), axes.end(), [](const Axis& axis) { return axis.values.size() > 1; });
}

// Lists every single change of a knob of the best of each pattern, so that no single change gains; false if
// nothing is new.
bool Search::polish() {
  polishing_ = true;
  const std::size_t first = contenders_.size();
  for (std::size_t p = 0; p < searches_.size(); ++p) {
    PatternSearch& search = searches_[p];
    if (!search.best || search.settled) continue;
    if (far_behind(p)) {
      settle(p);
      continue;
    }
    const bool gained =
        !search.polished || best_ns(p) <= (1 - kWorthRefining) * contenders_[*search.polished].time_ns;
    if (gained) {
      search.polished = search.best;
      list(p, neighbours(search.space(), contenders_[*search.best].choice, Reach::all));
    }
    list_best_of_others(p);
  }
  return contenders_.size() > first;
}

void Search::settle(std::size_t pattern) {
  searches_[pattern].settled = true;
  trials_.settled(pattern);
}

void Search::run() {
  for (std::size_t p = 0; p < searches_.size(); ++p) {
    if (searches_[p].row->space) list(p, coarse_choices(searches_[p].space()));
  }
  evaluate_listed();
  for (int round = 0; round < kRefinements && !trials_.stopped() && refine(); ++round) evaluate_listed();
  for (int round = 0; round < kPolishings && !trials_.stopped() && polish(); ++round) evaluate_listed();
  for (std::size_t p = 0; p < searches_.size(); ++p) {
    if (searches_[p].best && far_behind(p) && has_knobs(p)) trials_.not_tuned(p, kFarBehind * fastest_ns());
  }
}

}  // namespace

void select_by_search(const Choices& choices, Trials& trials) { Search(choices, trials).run(); }

}  // namespace tritax
