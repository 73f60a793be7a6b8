#include "model/schedule/find_phases.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "model/schedule/op_traits.hpp"
#include "model/schedule/progress.hpp"

namespace tritax {

namespace {

using FlagCounter = std::tuple<std::int32_t, std::int16_t, std::int32_t>;  // rank, flag array, index

// A signal to a counter that is set somewhere, or a wait for such a counter.
struct Member {
  std::uint32_t vertex = 0;
  OpPoint at;
  const Op* op = nullptr;
};
using Members = std::vector<Member>;

// Members by counter that is set. Vertices of signals and waits are the same in all graphs of a schedule,
// because events come last.
std::map<FlagCounter, Members> members_of(const SyncGraph& graph) {
  std::set<FlagCounter> set;
  for (const Op& op : graph.schedule().ops) {
    if (sets_flag(op)) set.emplace(op.rank, op.flag, op.index);
  }
  std::map<FlagCounter, Members> members;
  for (std::uint32_t vertex = 0; vertex < graph.vertices().size(); ++vertex) {
    const SyncVertex& v = graph.vertices()[vertex];
    const bool signal = v.kind == SyncVertex::Kind::signal;
    if (!signal && v.kind != SyncVertex::Kind::wait) continue;
    const Op& op = graph.op_of(vertex);
    const std::int32_t own = graph.runs()[graph.workgroups()[v.owner].run].rank;
    const FlagCounter counter{signal ? op.rank : own, op.flag, op.index};
    if (set.count(counter) != 0) members[counter].push_back({vertex, {v.owner, v.op}, &op});
  }
  return members;
}

// Executes a schedule with rising and falling counters, with settings as late as possible.
class LiveExecution : public Execution {
 public:
  LiveExecution(const SyncGraph& graph, const std::map<FlagCounter, Members>& members) : Execution(graph) {
    for (const auto& [counter, its] : members) {
      for (const Member& member : its) {
        counter_of_[member.vertex] = counters_.size();
        op_of_[member.vertex] = member.op;
      }
      counters_.emplace_back();
    }
    for (std::uint32_t i = 0; i < graph.workgroups().size(); ++i) {
      if (!graph.workgroups()[i].is_item()) give_place(i);
    }
  }

  void run() {
    for (bool more = true; more;) {
      advance();
      more = !settings_.empty();
      if (!more) break;
      open_ = settings_.front();
      settings_.erase(settings_.begin());
      ready(open_);
    }
  }

  std::uint32_t phase_of(std::uint32_t vertex) const {
    const auto found = phase_of_.find(vertex);
    return found == phase_of_.end() ? FlagPhases::kNone : found->second;
  }
  // Phase of a vertex that was never reached: the last phase of the counter, or the first phase in which the
  // counter was high enough.
  std::uint32_t likely_phase_of(std::uint32_t vertex) const {
    const LiveCounter& counter = counters_[counter_of_.at(vertex)];
    const auto last = static_cast<std::uint32_t>(counter.highest.size()) - 1;
    const Op& op = *op_of_.at(vertex);
    if (op.kind != OpKind::wait) return last + (sets_flag(op) ? 1 : 0);
    const auto enough = std::find_if(counter.highest.begin(), counter.highest.end(),
                                     [&](std::int64_t value) { return value >= op.value; });
    return std::min(last, static_cast<std::uint32_t>(enough - counter.highest.begin()));
  }

 private:
  struct LiveCounter {
    std::int64_t value = 0;
    std::vector<std::int64_t> highest{0};  // by phase
    std::vector<std::uint32_t> waiting;
  };

  bool may_happen(std::uint32_t vertex) override {
    const auto found = counter_of_.find(vertex);
    if (found == counter_of_.end()) return true;
    const Op& op = *op_of_.at(vertex);
    if (sets_flag(op)) {
      if (open_ == vertex) return true;
      settings_.push_back(vertex);
      return false;
    }
    LiveCounter& counter = counters_[found->second];
    if (op.kind != OpKind::wait || counter.value >= op.value) return true;
    counter.waiting.push_back(vertex);
    return false;
  }

  void happened(std::uint32_t vertex) override {
    const auto found = counter_of_.find(vertex);
    if (found == counter_of_.end()) return;
    const Op& op = *op_of_.at(vertex);
    LiveCounter& counter = counters_[found->second];
    if (sets_flag(op)) counter.highest.push_back(0);
    if (op.kind != OpKind::wait) {
      counter.value = sets_flag(op) ? op.value : counter.value + op.value;
      counter.highest.back() = counter.value;
      for (const std::uint32_t waiting : counter.waiting) ready(waiting);
      counter.waiting.clear();
    }
    phase_of_[vertex] = static_cast<std::uint32_t>(counter.highest.size()) - 1;
  }

  std::vector<LiveCounter> counters_;
  std::unordered_map<std::uint32_t, std::size_t> counter_of_;  // by vertex, like the next two
  std::unordered_map<std::uint32_t, const Op*> op_of_;
  std::unordered_map<std::uint32_t, std::uint32_t> phase_of_;
  std::vector<std::uint32_t> settings_;  // settings that could happen, in order of arrival
  std::uint32_t open_ = kNoVertex;       // the current setting
};

// Checks one counter, with its members by phase.
class CounterChecker {
 public:
  CounterChecker(const FlagPhases& phases, const Members& members, std::vector<DoneQuery>& queries)
      : queries_(queries) {
    for (const Member& member : members) {
      const std::uint32_t phase = phases.of(member.at);
      if (phase >= phases_.size()) phases_.resize(phase + 1);
      Phase& its = phases_[phase];
      if (member.op->kind == OpKind::wait) {
        its.waits.push_back(member);
      } else {
        its.highest += member.op->value;
        (sets_flag(*member.op) ? its.settings : its.signals).push_back(member);
      }
    }
  }

  // Adds the queries that find() needs.
  void ask() {
    for (std::size_t p = 1; p < phases_.size(); ++p) {
      const Phase& before = phases_[p - 1];
      for (const Member& setting : phases_[p].settings) {
        for (const Member& earlier : before.settings) need(earlier, setting, earlier, setting);
        for (const Member& signal : before.signals) need_signal(signal, before, setting);
        for (const Member& signal : phases_[p].signals) need(setting, signal, setting, signal);
        for (const Member& wait : phases_[p].waits) {
          if (wait.op->value <= highest_before(p)) need(setting, wait, setting, wait);
        }
      }
      for (std::size_t i = 1; i < phases_[p].settings.size(); ++i) {
        needs_.push_back({{}, {phases_[p].settings[i].at, phases_[p].settings[0].at}, false});
      }
    }
    for (std::size_t p = 0; p < phases_.size(); ++p) {
      for (const Member& wait : phases_[p].waits) need_sight(wait, p);
    }
  }

  // The races, given the answers to all queries. Lost waits often follow from lost signals, which explain the
  // cause.
  void find(const std::vector<char>& answers, std::vector<FlagRace>& races) const {
    std::vector<FlagRace> lost_waits;
    const std::size_t before = races.size();
    for (const Need& need : needs_) {
      const bool holds = std::any_of(need.queries.begin(), need.queries.end(),
                                     [&](std::size_t query) { return answers[query] != 0; });
      if (!holds) (need.of_wait ? lost_waits : races).push_back(need.race);
    }
    if (races.size() == before) races.insert(races.end(), lost_waits.begin(), lost_waits.end());
  }

 private:
  struct Phase {
    Members settings;  // one, except in schedules that cannot end
    Members signals;
    Members waits;
    std::int64_t highest = 0;
  };
  struct Need {
    std::vector<std::size_t> queries;  // one of these must be true
    FlagRace race;
    bool of_wait = false;
  };

  void need(const Member& first, const Member& then, const Member& setting, const Member& other) {
    needs_.push_back({{ask(first, then)}, {setting.at, other.at}, other.op->kind == OpKind::wait});
  }

  // A signal before the setting: by order, or by a wait that cannot end without the signal.
  void need_signal(const Member& signal, const Phase& phase, const Member& setting) {
    Need need{{ask(signal, setting)}, {setting.at, signal.at}, false};
    for (const Member& wait : phase.waits) {
      if (wait.op->value > phase.highest - signal.op->value) need.queries.push_back(ask(wait, setting));
    }
    needs_.push_back(std::move(need));
  }

  // A late poll may see a later phase, if that phase is set to a sufficient value and its setting is a
  // release.
  void need_sight(const Member& wait, std::size_t phase) {
    for (std::size_t p = phase + 1; p < phases_.size(); ++p) {
      for (const Member& setting : phases_[p].settings) {
        if (setting.op->value < wait.op->value || is_relaxed(*setting.op))
          return need(wait, setting, setting, wait);
      }
    }
  }

  std::size_t ask(const Member& first, const Member& then) {
    queries_.push_back({first.vertex, then.at});
    return queries_.size() - 1;
  }

  std::int64_t highest_before(std::size_t phase) const {
    std::int64_t highest = 0;
    for (std::size_t p = 0; p < phase; ++p) highest = std::max(highest, phases_[p].highest);
    return highest;
  }

  std::vector<Phase> phases_;
  std::vector<Need> needs_;
  std::vector<DoneQuery>& queries_;
};

FlagPhases find_phases(const Schedule& schedule) {
  // The graph has no events of these counters, so that it assumes nothing about them.
  FlagPhases phases;
  std::map<FlagCounter, Members> members;
  {
    const SyncGraph all(schedule, phases);
    members = members_of(all);
    for (const auto& [counter, its] : members) {
      for (const Member& member : its) phases.give(member.at, FlagPhases::kNone);
    }
  }
  const SyncGraph graph(schedule, phases);
  LiveExecution execution(graph, members);
  execution.run();
  for (const auto& [counter, its] : members) {
    for (const Member& member : its) {
      const std::uint32_t phase = execution.phase_of(member.vertex);
      phases.give(member.at, phase == FlagPhases::kNone ? execution.likely_phase_of(member.vertex) : phase);
    }
  }
  return phases;
}

}  // namespace

bool sets_flags(const Schedule& schedule) {
  return std::any_of(schedule.ops.begin(), schedule.ops.end(), sets_flag);
}

SyncGraph sync_graph_of(const Schedule& schedule) {
  return SyncGraph(schedule, sets_flags(schedule) ? find_phases(schedule) : FlagPhases{});
}

std::vector<FlagRace> find_races(const SyncGraph& graph) {
  if (!sets_flags(graph.schedule())) return {};
  const std::map<FlagCounter, Members> members = members_of(graph);
  std::vector<DoneQuery> queries;
  std::vector<CounterChecker> counters;
  for (const auto& [counter, its] : members) {
    counters.emplace_back(graph.phases(), its, queries);
    counters.back().ask();
  }
  const std::vector<char> answers = are_done(graph, queries);
  std::vector<FlagRace> races;
  for (const CounterChecker& counter : counters) counter.find(answers, races);
  return races;
}

}  // namespace tritax
