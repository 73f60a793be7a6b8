// Checks for deadlocks caused by lack of room on the compute units.
//
// A workgroup keeps its place until it ends, so a spinning workgroup can block the workgroup that would
// release it, also via other kernels and ranks. The schedule is executed without time, and a workgroup begins
// only if its place is certain: it finds room beside all workgroups of its rank that may still spin for ever.
// By induction every execution reaches what this execution reaches: once all earlier events have happened,
// only workgroups that may spin hold places, the dispatcher leaves no room empty that a workgroup waits for,
// and so the workgroup gets its place. The rest may deadlock and is refused.
//
// The workgroups of a gang (Placement::gang) begin together: the place of one workgroup is certain if the
// places of all are.
//
// A workgroup may spin for ever while one of its waits, or a wait of an item that it may draw, is for an
// event that is not yet reached. For kernel T such a workgroup is ignored if its own kernel
//  * is in the same stream, or starts only after all workgroups of T without a place have begun;
//  * is served after T: it has a later turn, needs all that T needs, and either T finds room wherever the
//    kernel does and is not a gang, or T finds the GPU empty (every kernel that runs beside T is served after
//    T) and fills the places that it leaves itself;
//  * shares a stream with another kernel that spins at that time. All choices of one kernel per stream are
//    tried if there are few; otherwise all kernels count together, which also refuses some schedules without
//    deadlock.
//
// Turns. A GPU guarantees no order between kernels of independent streams. The first check has no turns, so
// the rule of later service does not apply: a pass holds in every order. If it fails, kernels take turns as
// they are launched, and by streams in every permutation: streams are numbered on each rank by their first
// launch, and all ranks use the same permutation, because collectives rule out that a rank serves another
// kernel first than its peers. A kernel then waits until kernels of earlier turns that do not depend on it
// have started.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <unordered_map>

#include "model/core/error.hpp"
#include "model/schedule/findings.hpp"
#include "model/schedule/progress.hpp"
#include "model/schedule/residency.hpp"
#include "model/schedule/sync_graph.hpp"

namespace tritax {

namespace {

using Runs = std::vector<std::uint32_t>;

constexpr std::size_t kMostChoices = 64;
constexpr std::size_t kMostStreams = 5;  // most streams for which all permutations are tried

using Turns = std::vector<std::uint64_t>;  // by run, a smaller number comes first; empty: no turns

class PlaceChecker {
 public:
  PlaceChecker(const SyncGraph& graph, const Gpu& gpu, const Turns& turns)
      : graph_(graph),
        gpu_(gpu),
        turns_(turns),
        execution_(graph),
        open_waits_(graph.workgroups().size(), 0),
        has_place_(graph.workgroups().size(), 0),
        spinning_(graph.runs().size(), 0),
        without_place_(graph.runs().size(), 0),
        open_waits_of_queue_(graph.queues().size(), 0) {
    for (const FlagEvent& event : graph.events()) {
      for (const std::uint32_t wait : event.waits) open_wait(wait);
    }
    for (const WorkgroupRun& workgroup : graph.workgroups()) {
      if (!workgroup.is_item()) ++without_place_[workgroup.run];
    }
  }

  // Whether every workgroup that starts also ends.
  bool check() {
    for (bool more = true; more;) {
      close_waits(execution_.advance());
      more = false;
      for (std::uint32_t run = 0; run < graph_.runs().size(); ++run) {
        more = (is_dispatching(run) && give_certain_places(run)) || more;
      }
    }
    for (std::uint32_t run = 0; run < graph_.runs().size(); ++run) {
      if (is_dispatching(run)) return false;
    }
    return true;
  }

  // Reports a failed check as one finding: other findings would follow from it. `names_turns`: names the
  // kernel that starts first.
  void report(bool names_turns, Findings& findings) {
    std::uint32_t stuck = kNoVertex;
    std::uint32_t wait = kNoVertex;
    for (std::uint32_t run = 0; run < graph_.runs().size() && wait == kNoVertex; ++run) {
      if (is_dispatching(run)) {
        stuck = run;
        wait = nearest_wait_for(begin_of(first_without_place(run)));
      }
    }
    TRITAX_ASSERT(stuck != kNoVertex, "what failed has a kernel that waits for places");
    const std::string begin =
        graph_.describe_run(stuck) +
        (is_gang(stuck) ? fmt::format(" as a whole ({} workgroups)", size_of(stuck))
                        : fmt::format(" workgroup {}", first_without_place(stuck) - first_of(stuck)));
    const std::string why = describe_holders(stuck, names_turns);
    if (wait == kNoVertex) {  // no certain need for this workgroup
      findings.add(Finding::Kind::resources, begin,
                   fmt::format("may never get a place on {}: {}", gpu_.name, why));
      return;
    }
    const Op& op = graph_.op_of(wait);
    findings.add(
        Finding::Kind::resources, graph_.describe_vertex(wait),
        fmt::format("waits for {} >= {}, but {}, on which that depends, may never get a place on {}: {}",
                    describe_flag(graph_.schedule(), op.flag, op.index, graph_.runs()[run_of(wait)].rank),
                    op.value, begin, gpu_.name, why));
  }

 private:
  std::uint32_t run_of(std::uint32_t vertex) const {
    return graph_.workgroups()[graph_.vertices()[vertex].owner].run;
  }
  const Kernel& kernel_of(std::uint32_t run) const { return graph_.kernel_of(graph_.runs()[run]); }
  std::uint32_t size_of(std::uint32_t run) const {
    return static_cast<std::uint32_t>(kernel_of(run).workgroups.size());
  }
  std::uint32_t first_of(std::uint32_t run) const { return graph_.runs()[run].first_workgroup; }
  std::uint32_t begin_of(std::uint32_t workgroup) const {
    return graph_.workgroups()[workgroup].first_vertex;
  }
  bool is_gang(std::uint32_t run) const { return kernel_of(run).placement == Placement::gang; }
  bool is_dispatching(std::uint32_t run) const {
    return without_place_[run] > 0 && execution_.reached(graph_.runs()[run].start);
  }

  void close_waits(const std::vector<std::uint32_t>& reached) {
    for (const std::uint32_t vertex : reached) {
      if (graph_.vertices()[vertex].kind != SyncVertex::Kind::event) {
        continue;
      }
      for (const std::uint32_t wait : graph_.events()[graph_.vertices()[vertex].owner].waits)
        close_wait(wait);
    }
  }

  // A wait of an item may be executed by any workgroup that claims from the queue.
  void open_wait(std::uint32_t wait) {
    const std::uint32_t owner = graph_.vertices()[wait].owner;
    const std::uint32_t queue = graph_.workgroups()[owner].queue;
    if (queue == kNoQueue) return open_wait_of(owner);
    if (open_waits_of_queue_[queue]++ > 0) return;
    for (const std::uint32_t claim : graph_.queues()[queue].claims)
      open_wait_of(graph_.vertices()[claim].owner);
  }

  void close_wait(std::uint32_t wait) {
    const std::uint32_t owner = graph_.vertices()[wait].owner;
    const std::uint32_t queue = graph_.workgroups()[owner].queue;
    if (queue == kNoQueue) return close_wait_of(owner);
    if (--open_waits_of_queue_[queue] > 0) return;
    for (const std::uint32_t claim : graph_.queues()[queue].claims)
      close_wait_of(graph_.vertices()[claim].owner);
  }

  void open_wait_of(std::uint32_t workgroup) {
    spinning_[graph_.workgroups()[workgroup].run] += open_waits_[workgroup]++ == 0 ? 1 : 0;
  }
  void close_wait_of(std::uint32_t workgroup) {
    spinning_[graph_.workgroups()[workgroup].run] -= --open_waits_[workgroup] == 0 ? 1 : 0;
  }

  // True if any workgroup got a place.
  bool give_certain_places(std::uint32_t run) {
    std::vector<char> certain = places_beside(run, spinning_on_rank_of(run));
    if (std::find(certain.begin(), certain.end(), 0) != certain.end()) {
      certain.assign(certain.size(), 1);
      for (const Runs& holders : choices_of_holders(run)) {
        const std::vector<char> places = places_beside(run, holders);
        std::transform(certain.begin(), certain.end(), places.begin(), certain.begin(),
                       [](char one, char other) { return std::min(one, other); });
      }
    }
    bool any = false;
    for (std::uint32_t w = 0; w < certain.size(); ++w) {
      const std::uint32_t workgroup = first_of(run) + w;
      if (certain[w] != 0 && has_place_[workgroup] == 0) {
        has_place_[workgroup] = 1;
        --without_place_[run];
        execution_.give_place(workgroup);
        any = true;
      }
    }
    return any;
  }

  // By workgroup of `run`: whether it finds room after the workgroups of `holders` that may spin, and the
  // earlier ones of its own kernel that may spin, have taken their places. Other workgroups of its kernel end
  // and free their places, except that all workgroups of a gang begin at once.
  std::vector<char> places_beside(std::uint32_t run, const Runs& holders) const {
    ResidentWorkgroups resident(gpu_);
    for (const std::uint32_t holder : holders) {
      for (std::uint32_t w = 0; w < size_of(holder); ++w) {
        if (open_waits_[first_of(holder) + w] > 0) {
          resident.add_workgroup(kernel_of(holder), w);
        }
      }
    }
    const Kernel& kernel = kernel_of(run);
    const auto dies = static_cast<std::size_t>(dies_of(gpu_, kernel).count);
    std::vector<char> full(dies, 0);
    std::vector<char> places(size_of(run), 1);
    for (std::uint32_t w = 0; w < size_of(run); ++w) {
      const bool spins = open_waits_[first_of(run) + w] > 0;
      if (spins || has_place_[first_of(run) + w] == 0) {
        const bool takes = spins || is_gang(run);
        places[w] =
            full[w % dies] == 0 && (takes ? resident.add_workgroup(kernel, w) : resident.has_room(kernel, w));
        full[w % dies] = places[w] == 0;  // a die takes its workgroups in order
      }
    }
    const bool all = std::find(places.begin(), places.end(), 0) == places.end();
    if (is_gang(run) && !all) places.assign(places.size(), 0);
    return places;
  }

  Runs spinning_on_rank_of(std::uint32_t run) const {
    Runs runs;
    for (std::uint32_t other = 0; other < graph_.runs().size(); ++other) {
      if (spinning_[other] > 0 && graph_.runs()[other].rank == graph_.runs()[run].rank &&
          graph_.runs()[other].stream != graph_.runs()[run].stream) {
        runs.push_back(other);
      }
    }
    return runs;
  }

  // Sets of runs that may block a place for `run` at the same time.
  std::vector<Runs> choices_of_holders(std::uint32_t run) {
    std::map<std::int32_t, Runs> by_stream;
    Runs all;
    for (const std::uint32_t other : spinning_on_rank_of(run)) {
      if (!starts_after_dispatch_of(other, run) && !is_served_first(run, other)) {
        by_stream[graph_.runs()[other].stream].push_back(other);
        all.push_back(other);
      }
    }
    std::vector<Runs> choices(1);
    for (const auto& [stream, runs] : by_stream) {
      if (choices.size() * runs.size() > kMostChoices) {
        return {all};
      }
      std::vector<Runs> longer;
      for (const Runs& choice : choices) {
        for (const std::uint32_t next : runs) {
          longer.push_back(choice);
          longer.back().push_back(next);
        }
      }
      choices = std::move(longer);
    }
    for (Runs& choice : choices) {
      std::sort(choice.begin(), choice.end());
    }
    return choices;
  }

  bool starts_after_dispatch_of(std::uint32_t other, std::uint32_t run) {
    const std::vector<bool>& past = past_of_start(other);
    for (std::uint32_t w = 0; w < size_of(run); ++w) {
      if (has_place_[first_of(run) + w] == 0 && !past[begin_of(first_of(run) + w)]) {
        return false;
      }
    }
    return true;
  }

  bool is_served_first(std::uint32_t run, std::uint32_t other) {
    return starts_first(run, other) &&
           ((!is_gang(run) && fits_wherever(gpu_, kernel_of(run), kernel_of(other))) || finds_empty_gpu(run));
  }

  // True if `run` has the earlier turn and the start of `other` needs everything that the start of `run`
  // needs. The launch of `run` may be later: then `other` waits for `run`, unless `run` depends on `other`.
  bool starts_first(std::uint32_t run, std::uint32_t other) {
    if (turns_.empty() || turns_[run] >= turns_[other]) return false;
    const std::vector<bool>& past = past_of_start(other);
    const bool depends = past_of_start(run)[graph_.runs()[other].start];
    const auto [begin, end] = boost::in_edges(graph_.runs()[run].start, graph_.graph());
    return std::all_of(begin, end, [&](const auto& edge) {
      const auto before = boost::source(edge, graph_.graph());
      return past[before] || (!depends && graph_.vertices()[before].kind == SyncVertex::Kind::host);
    });
  }

  bool finds_empty_gpu(std::uint32_t run) {
    for (std::uint32_t other = 0; other < graph_.runs().size(); ++other) {
      const Run& its = graph_.runs()[other];
      const bool beside = other != run && its.rank == graph_.runs()[run].rank && size_of(other) > 0 &&
                          its.stream != graph_.runs()[run].stream;
      if (beside && !past_of_start(run)[its.end] && !past_of_start(other)[graph_.runs()[run].end] &&
          !starts_first(run, other)) {
        return false;
      }
    }
    return true;
  }

  const std::vector<bool>& past_of_start(std::uint32_t run) {
    const auto [entry, added] = past_of_start_.try_emplace(run);
    if (added) {
      const std::vector<char> past = past_of(graph_, {graph_.runs()[run].start});
      entry->second.assign(past.begin(), past.end());
    }
    return entry->second;
  }

  std::uint32_t first_without_place(std::uint32_t run) const {
    const auto first = has_place_.begin() + first_of(run);
    return static_cast<std::uint32_t>(std::find(first, first + size_of(run), 0) - has_place_.begin());
  }

  // The nearest wait of another workgroup after `begin`, by number of edges.
  std::uint32_t nearest_wait_for(std::uint32_t begin) const {
    std::vector<char> seen(graph_.vertices().size(), 0);
    std::deque<std::uint32_t> queue{begin};
    while (!queue.empty()) {
      const std::uint32_t vertex = queue.front();
      queue.pop_front();
      const SyncVertex& v = graph_.vertices()[vertex];
      if (v.kind == SyncVertex::Kind::wait && v.owner != graph_.vertices()[begin].owner) {
        return vertex;
      }
      const auto [first, last] = boost::out_edges(vertex, graph_.graph());
      for (auto edge = first; edge != last; ++edge) {
        const auto next = static_cast<std::uint32_t>(boost::target(*edge, graph_.graph()));
        if (seen[next] == 0) {
          seen[next] = 1;
          queue.push_back(next);
        }
      }
    }
    return kNoVertex;
  }

  std::string describe_holders(std::uint32_t run, bool names_turns) {
    const std::vector<Runs> choices = choices_of_holders(run);
    const std::uint32_t workgroup = first_without_place(run) - first_of(run);
    const auto found = std::find_if(choices.begin(), choices.end(), [&](const Runs& holders) {
      return places_beside(run, holders)[workgroup] == 0;
    });
    TRITAX_ASSERT(found != choices.end(), "somebody holds the places that a workgroup does not get");
    Runs holders = *found;
    if (spinning_[run] > 0) {
      holders.push_back(run);
    }
    std::string text;
    for (const std::uint32_t holder : holders) {
      text += fmt::format("{}{} workgroups of {}", text.empty() ? "" : " and ", spinning_[holder],
                          graph_.describe_run(holder));
    }
    return text +
           (is_gang(run) ? " can take places that it needs" : " can take every place that it could have") +
           ", and spin; launch fewer of those, let each take less, or launch first what they wait for" +
           describe_other_order(run, holders) + (names_turns ? describe_turns(run, holders) : "");
  }

  // Describes which kernel starts before which, if the order decides.
  std::string describe_turns(std::uint32_t run, const Runs& holders) const {
    for (const std::uint32_t holder : holders) {
      if (turns_.empty() || turns_[holder] >= turns_[run]) continue;
      return fmt::format(
          "; so it is if '{}' starts before '{}', as independent streams may, whichever is launched "
          "first: let an event order them, or leave room for both",
          kernel_of(holder).name, kernel_of(run).name);
    }
    return "";
  }

  // Describes another rank that launches the same kernels in the opposite order, if any.
  std::string describe_other_order(std::uint32_t run, const Runs& holders) const {
    const std::vector<Run>& runs = graph_.runs();
    const auto same_kernels = [&](std::uint32_t one, std::uint32_t other) {
      return kernel_of(one).name == kernel_of(other).name && runs[one].rank != runs[other].rank;
    };
    for (const std::uint32_t holder : holders) {
      for (std::uint32_t i = 0; i < runs.size() && holder != run; ++i) {
        if (!same_kernels(i, run)) continue;
        for (std::uint32_t j = 0; j < runs.size(); ++j) {
          if (!same_kernels(j, holder) || runs[i].rank != runs[j].rank || (run < holder) == (i < j)) continue;
          return fmt::format(
              "; rank {} launches '{}' before '{}', rank {} after it: keep one order on all ranks",
              runs[run].rank, kernel_of(std::min(run, holder)).name, kernel_of(std::max(run, holder)).name,
              runs[i].rank);
        }
      }
    }
    return "";
  }

  const SyncGraph& graph_;
  const Gpu& gpu_;
  const Turns turns_;
  Execution execution_;
  std::vector<std::uint32_t> open_waits_;     // by workgroup run: waits for uncertain events
  std::vector<char> has_place_;               // by workgroup run
  std::vector<std::uint32_t> spinning_;       // by run: workgroups with open waits
  std::vector<std::uint32_t> without_place_;  // by run: workgroups
  std::vector<std::uint32_t> open_waits_of_queue_;
  std::unordered_map<std::uint32_t, std::vector<bool>> past_of_start_;  // by run
};

// The place of each run's stream in its rank's order of first launches.
struct StreamPlaces {
  std::vector<std::uint32_t> of_run;
  std::uint32_t most = 0;  // streams of a rank
};

StreamPlaces stream_places(const SyncGraph& graph) {
  StreamPlaces places;
  std::map<std::int32_t, std::map<std::int32_t, std::uint32_t>> known;  // by rank and stream
  for (const Run& run : graph.runs()) {
    auto& streams = known[run.rank];
    const auto place = streams.emplace(run.stream, static_cast<std::uint32_t>(streams.size())).first->second;
    places.of_run.push_back(place);
    places.most = std::max(places.most, place + 1);
  }
  return places;
}

// Turns as launched, then stream after stream: in every order of streams, or only backwards.
std::vector<Turns> turns_to_try(const StreamPlaces& places) {
  const std::size_t runs = places.of_run.size();
  Turns turns(runs);
  std::iota(turns.begin(), turns.end(), 0);
  std::vector<Turns> all{turns};
  if (places.most < 2) return all;
  std::vector<std::uint64_t> order(places.most);
  std::iota(order.begin(), order.end(), 0);
  const auto add = [&] {
    for (std::size_t run = 0; run < runs; ++run) turns[run] = order[places.of_run[run]] * runs + run;
    all.push_back(turns);
  };
  if (places.most > kMostStreams) {
    std::reverse(order.begin(), order.end());
    add();
    return all;
  }
  do add();
  while (std::next_permutation(order.begin(), order.end()));
  return all;
}

}  // namespace

LaunchOrders check_places(const SyncGraph& graph, const Gpu& gpu, Findings& findings) {
  const StreamPlaces places = stream_places(graph);
  const LaunchOrders any = places.most > 1 ? LaunchOrders::every : LaunchOrders::one;
  // Without spinning workgroups every workgroup finds a place some time.
  if (graph.events().empty() || PlaceChecker(graph, gpu, {}).check()) return any;
  const std::vector<Turns> all = turns_to_try(places);
  const Turns* failing = nullptr;
  bool any_passes = false;
  for (const Turns& turns : all) {
    if (PlaceChecker(graph, gpu, turns).check()) {
      any_passes = true;
    } else if (failing == nullptr) {
      failing = &turns;
    }
    if (any_passes && failing != nullptr) break;
  }
  if (failing == nullptr) return places.most > kMostStreams ? LaunchOrders::some : LaunchOrders::alike;
  PlaceChecker checker(graph, gpu, *failing);
  checker.check();
  checker.report(any_passes, findings);
  return any;
}

std::string describe(LaunchOrders orders) {
  switch (orders) {
    case LaunchOrders::one:
      return "";
    case LaunchOrders::every:
      return "in whatever order its streams start";
    case LaunchOrders::alike:
      return "in any order of its streams that is the same on all ranks";
    case LaunchOrders::some:
      return "if its streams start in the order of their launches or the reverse, the same on all ranks; of "
             "more than 5 streams other orders are not tried";
  }
  return "";
}

}  // namespace tritax
