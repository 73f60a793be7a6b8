#include "model/timeline/causes.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "model/schedule/op_traits.hpp"

namespace tritax {

namespace {

// A counter of a rank: owner, array, index.
using Counter = std::tuple<std::int32_t, std::int32_t, std::int32_t>;

struct Raise {
  double time_ns = 0;
  std::uint32_t op = 0;  // into Timeline::ops
  std::int64_t value = 0;
};

// By counter its signals in the order of time, each with the value that it left.
std::map<Counter, std::vector<Raise>> raises_of(const Timeline& timeline, const Schedule& schedule) {
  std::map<Counter, std::vector<Raise>> raises;
  for (std::uint32_t i = 0; i < timeline.ops.size(); ++i) {
    const OpInterval& interval = timeline.ops[i];
    if (interval.kind != OpKind::signal) continue;
    const Op& op = op_of(schedule, interval.place);
    raises[{op.rank, op.flag, op.index}].push_back({interval.end_ns, i, 0});
  }
  for (auto& [counter, all] : raises) {
    std::stable_sort(all.begin(), all.end(),
                     [](const Raise& a, const Raise& b) { return a.time_ns < b.time_ns; });
    std::int64_t value = 0;
    for (Raise& raise : all) {
      const Op& op = op_of(schedule, timeline.ops[raise.op].place);
      value = (op.change == FlagChange::set ? 0 : value) + op.value;
      raise.value = value;
    }
  }
  return raises;
}

// The place of an interval or of a moment on the chain.
struct At {
  StepKind kind = StepKind::op;
  std::uint32_t index = 0;
  double time_ns = 0;
};

class Walk {
 public:
  Walk(const Timeline& timeline, const Schedule& schedule, const std::vector<std::uint32_t>& releases)
      : timeline_(timeline), schedule_(schedule), releases_(releases) {
    index_ops();
    index_streams();
    index_hosts();
  }

  std::vector<PathStep> steps() {
    std::optional<At> at = last();
    std::vector<PathStep> steps;
    // Operations that take no time cannot lead in a circle for longer than all of them.
    std::size_t left = 2 * (timeline_.ops.size() + timeline_.kernels.size() + timeline_.host_ops.size() +
                            timeline_.copies.size()) +
                       2;
    while (at && left-- > 0) {
      const std::optional<At> cause = cause_of(*at);
      const double begin = cause && left > 0 ? std::min(cause->time_ns, at->time_ns) : 0;
      if (at->time_ns > begin) steps.push_back({at->kind, at->index, begin, at->time_ns});
      at = cause;
      if (at) at->time_ns = begin;
    }
    std::reverse(steps.begin(), steps.end());
    return steps;
  }

 private:
  using Run = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;  // kernel, launch, workgroup

  void index_ops() {
    position_.resize(timeline_.ops.size());
    for (std::uint32_t i = 0; i < timeline_.ops.size(); ++i) {
      const OpInterval& op = timeline_.ops[i];
      std::vector<std::uint32_t>& run = runs_[{op.place.kernel, op.launch, op.place.workgroup}];
      position_[i] = run.size();
      run.push_back(i);
      on_cu_[{op.place.rank, op.place.cu}].push_back(i);
    }
    // Later ends last, so that the last operation that had ended at a time is found by halving.
    for (auto& [place, all] : on_cu_) {
      std::stable_sort(all.begin(), all.end(), [&](std::uint32_t a, std::uint32_t b) {
        return timeline_.ops[a].end_ns < timeline_.ops[b].end_ns;
      });
    }
  }

  void index_streams() {
    std::map<std::uint32_t, std::uint32_t> launched;
    for (std::uint32_t i = 0; i < timeline_.kernels.size(); ++i) {
      const std::uint32_t kernel = timeline_.kernels[i].kernel;
      const std::uint32_t launch = launched[kernel]++;
      launch_of_.push_back(launch);
      interval_of_launch_[{kernel, launch}] = i;
    }
  }

  void index_hosts() {
    host_interval_.resize(schedule_.host.size());
    for (std::size_t rank = 0; rank < schedule_.host.size(); ++rank) {
      host_interval_[rank].assign(schedule_.host[rank].size(), kNoCause);
    }
    for (std::uint32_t i = 0; i < timeline_.host_ops.size(); ++i) {
      const HostInterval& interval = timeline_.host_ops[i];
      host_interval_[static_cast<std::size_t>(interval.rank)][interval.host_op] = i;
    }
    for (std::size_t rank = 0; rank < schedule_.host.size(); ++rank) index_host(rank);
  }

  // Who launched which kernel, and which streams wait for each other by events, in one rank's program.
  void index_host(std::size_t rank) {
    std::map<std::uint32_t, std::uint32_t> launches;
    std::map<std::int32_t, std::int32_t> stream_of_event;
    std::uint32_t barriers = 0;
    for (std::uint32_t h = 0; h < schedule_.host[rank].size(); ++h) {
      const HostOp& op = schedule_.host[rank][h];
      for_each_launch(schedule_, op, [&](const GraphNode& node) {
        const auto kernel = static_cast<std::uint32_t>(node.kernel);
        launcher_[{kernel, launches[kernel]++}] = {static_cast<std::int32_t>(rank), h};
      });
      if (op.kind == HostOpKind::event_record) stream_of_event[op.event] = op.stream;
      if (op.kind == HostOpKind::event_wait && stream_of_event.count(op.event) > 0) {
        waits_for_[{static_cast<std::int32_t>(rank), op.stream}].insert(stream_of_event[op.event]);
      }
      if (op.kind == HostOpKind::barrier) {
        if (barriers_.size() <= barriers) barriers_.emplace_back();
        barriers_[barriers++].push_back({static_cast<std::int32_t>(rank), h});
      }
    }
  }

  std::optional<At> last() const {
    std::optional<At> last;
    const auto consider = [&](StepKind kind, const auto& intervals) {
      for (std::uint32_t i = 0; i < intervals.size(); ++i) {
        if (!last || intervals[i].end_ns >= last->time_ns) last = At{kind, i, intervals[i].end_ns};
      }
    };
    consider(StepKind::op, timeline_.ops);
    consider(StepKind::copy, timeline_.copies);
    consider(StepKind::kernel, timeline_.kernels);
    consider(StepKind::host, timeline_.host_ops);
    return last;
  }

  std::optional<At> cause_of(const At& at) const {
    switch (at.kind) {
      case StepKind::op:
        return cause_of_op(at.index, at.time_ns);
      case StepKind::kernel:
        return cause_of_kernel(at.index, at.time_ns);
      case StepKind::copy:
        return cause_of_begin(timeline_.copies[at.index]);
      case StepKind::host:
        break;
    }
    return cause_of_host(timeline_.host_ops[at.index], at.time_ns);
  }

  // The operation of the same workgroup before it that ended last, at `until_ns` at the latest.
  std::optional<At> before_in_workgroup(std::uint32_t index, double until_ns) const {
    const OpInterval& op = timeline_.ops[index];
    const std::vector<std::uint32_t>& run = runs_.at({op.place.kernel, op.launch, op.place.workgroup});
    std::optional<At> best;
    for (std::size_t p = position_[index]; p-- > 0;) {
      const OpInterval& other = timeline_.ops[run[p]];
      if (other.end_ns > until_ns || (best && other.end_ns <= best->time_ns)) continue;
      best = At{StepKind::op, run[p], other.end_ns};
    }
    return best;
  }

  std::optional<At> cause_of_op(std::uint32_t index, double time_ns) const {
    const OpInterval& op = timeline_.ops[index];
    if (const std::uint32_t signal = releases_[index]; signal != kNoCause) {
      const double end = timeline_.ops[signal].end_ns;
      if (end > op.begin_ns && end <= time_ns) return At{StepKind::op, signal, end};
    }
    if (drains(op_of(schedule_, op.place))) {
      const std::optional<At> drained = before_in_workgroup(index, time_ns);
      if (drained && drained->time_ns > op.begin_ns) return drained;
    }
    if (const std::optional<At> before = before_in_workgroup(index, op.begin_ns)) return before;
    return cause_of_workgroup(index);
  }

  // What let the first operation of a workgroup begin: room on its compute unit, or its kernel.
  std::optional<At> cause_of_workgroup(std::uint32_t index) const {
    const OpInterval& op = timeline_.ops[index];
    const auto kernel = interval_of_launch_.find({op.place.kernel, op.launch});
    if (kernel == interval_of_launch_.end()) return std::nullopt;
    const double kernel_begin = timeline_.kernels[kernel->second].begin_ns;
    const std::vector<std::uint32_t>& all = on_cu_.at({op.place.rank, op.place.cu});
    auto at = std::upper_bound(all.begin(), all.end(), op.begin_ns, [&](double time, std::uint32_t other) {
      return time < timeline_.ops[other].end_ns;
    });
    while (at != all.begin()) {
      const std::uint32_t other = *--at;
      if (timeline_.ops[other].end_ns <= kernel_begin) break;
      if (other < index) return At{StepKind::op, other, timeline_.ops[other].end_ns};
    }
    return At{StepKind::kernel, kernel->second, kernel_begin};
  }

  std::optional<At> cause_of_kernel(std::uint32_t index, double time_ns) const {
    const KernelInterval& kernel = timeline_.kernels[index];
    std::optional<At> best;
    if (time_ns > kernel.begin_ns) {
      const std::uint32_t launch = launch_of_[index];
      for (auto run = runs_.lower_bound({kernel.kernel, launch, 0});
           run != runs_.end() && std::get<0>(run->first) == kernel.kernel &&
           std::get<1>(run->first) == launch;
           ++run) {
        for (const std::uint32_t i : run->second) {
          const double end = timeline_.ops[i].end_ns;
          if (end <= time_ns && (!best || end >= best->time_ns)) best = At{StepKind::op, i, end};
        }
      }
      if (best && best->time_ns > kernel.begin_ns) return best;
    }
    const auto launcher = launcher_.find({kernel.kernel, launch_of_[index]});
    const std::int32_t rank = schedule_.kernels[kernel.kernel].rank;
    best = last_in_streams(rank, kernel.stream, kernel.begin_ns, StepKind::kernel, index);
    if (launcher == launcher_.end()) return best;
    return later(best, host_at(launcher->second, kernel.begin_ns));
  }

  std::optional<At> cause_of_begin(const CopyInterval& copy) const {
    const HostOp& op = schedule_.host[static_cast<std::size_t>(copy.rank)][copy.host_op];
    const auto index = static_cast<std::uint32_t>(&copy - timeline_.copies.data());
    std::optional<At> best = last_in_streams(copy.rank, op.stream, copy.begin_ns, StepKind::copy, index);
    for (std::uint32_t i = 0; i < index; ++i) {
      const CopyInterval& other = timeline_.copies[i];
      if (other.rank != copy.rank || other.engine != copy.engine || other.end_ns > copy.begin_ns) continue;
      best = later(best, At{StepKind::copy, i, other.end_ns});
    }
    return later(best, host_at({copy.rank, copy.host_op}, copy.begin_ns));
  }

  std::optional<At> cause_of_host(const HostInterval& host, double time_ns) const {
    const auto rank = static_cast<std::size_t>(host.rank);
    const HostOp& op = schedule_.host[rank][host.host_op];
    if (op.kind == HostOpKind::stream_synchronize || op.kind == HostOpKind::device_synchronize) {
      const std::int32_t stream = op.kind == HostOpKind::device_synchronize ? -1 : op.stream;
      const std::optional<At> ended = last_in_streams(host.rank, stream, time_ns, StepKind::host, kNoCause);
      if (ended && ended->time_ns > host.begin_ns) return ended;
    }
    if (op.kind == HostOpKind::barrier) {
      const std::optional<At> arrived = last_at_barrier(host);
      if (arrived && arrived->time_ns > host.begin_ns && arrived->time_ns <= time_ns) return arrived;
    }
    if (host.host_op == 0) return std::nullopt;
    return host_at({host.rank, host.host_op - 1}, host.begin_ns);
  }

  // The end of the operation before the barrier on the rank that came to it last.
  std::optional<At> last_at_barrier(const HostInterval& host) const {
    std::optional<At> last;
    for (const auto& all : barriers_) {
      const std::pair own{host.rank, host.host_op};
      if (std::find(all.begin(), all.end(), own) == all.end()) continue;
      for (const auto& [rank, host_op] : all) {
        const std::uint32_t i = host_interval_[static_cast<std::size_t>(rank)][host_op];
        if (i == kNoCause || host_op == 0) continue;
        last = later(last, host_at({rank, host_op - 1}, timeline_.host_ops[i].begin_ns));
      }
    }
    return last;
  }

  // A host operation at its end, at `until_ns` at the latest.
  std::optional<At> host_at(std::pair<std::int32_t, std::uint32_t> which, double until_ns) const {
    const std::uint32_t i = host_interval_[static_cast<std::size_t>(which.first)][which.second];
    if (i == kNoCause) return std::nullopt;
    return At{StepKind::host, i, std::min(timeline_.host_ops[i].end_ns, until_ns)};
  }

  // The kernel or copy of a rank that ended last, until then, in the stream or in one that it waits for;
  // stream -1: in any. Not the one that is asked for, and none that came behind it.
  std::optional<At> last_in_streams(std::int32_t rank, std::int32_t stream, double until_ns, StepKind self,
                                    std::uint32_t index) const {
    const auto others = waits_for_.find({rank, stream});
    const auto counts = [&](std::int32_t in) {
      return stream < 0 || in == stream || (others != waits_for_.end() && others->second.count(in) > 0);
    };
    std::optional<At> best;
    for (std::uint32_t i = 0; i < timeline_.kernels.size(); ++i) {
      const KernelInterval& kernel = timeline_.kernels[i];
      if (schedule_.kernels[kernel.kernel].rank != rank || !counts(kernel.stream)) continue;
      if (kernel.end_ns > until_ns || (self == StepKind::kernel && i >= index)) continue;
      best = later(best, At{StepKind::kernel, i, kernel.end_ns});
    }
    for (std::uint32_t i = 0; i < timeline_.copies.size(); ++i) {
      const CopyInterval& copy = timeline_.copies[i];
      const HostOp& op = schedule_.host[static_cast<std::size_t>(copy.rank)][copy.host_op];
      if (copy.rank != rank || !counts(op.stream) || copy.end_ns > until_ns) continue;
      if (self == StepKind::copy && i >= index) continue;
      best = later(best, At{StepKind::copy, i, copy.end_ns});
    }
    return best;
  }

  static std::optional<At> later(const std::optional<At>& a, const std::optional<At>& b) {
    if (!a || !b) return a ? a : b;
    return b->time_ns >= a->time_ns ? b : a;
  }

  const Timeline& timeline_;
  const Schedule& schedule_;
  const std::vector<std::uint32_t>& releases_;
  std::map<Run, std::vector<std::uint32_t>> runs_;  // operations in order of begin
  std::vector<std::size_t> position_;               // of each operation in its run
  std::map<std::pair<std::int32_t, std::int32_t>, std::vector<std::uint32_t>> on_cu_;  // by end
  std::vector<std::uint32_t> launch_of_;  // of each kernel interval
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> interval_of_launch_;
  // By kernel and launch: rank and host operation.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::pair<std::int32_t, std::uint32_t>> launcher_;
  std::vector<std::vector<std::uint32_t>> host_interval_;                              // by rank, host op
  std::map<std::pair<std::int32_t, std::int32_t>, std::set<std::int32_t>> waits_for_;  // by rank, stream
  std::vector<std::vector<std::pair<std::int32_t, std::uint32_t>>> barriers_;  // the n-th of every rank
};

}  // namespace

std::vector<std::uint32_t> releases_of(const Timeline& timeline, const Schedule& schedule) {
  const std::map<Counter, std::vector<Raise>> raises = raises_of(timeline, schedule);
  std::vector<std::uint32_t> releases(timeline.ops.size(), kNoCause);
  for (std::size_t i = 0; i < timeline.ops.size(); ++i) {
    const OpInterval& interval = timeline.ops[i];
    if (interval.kind != OpKind::wait) continue;
    const Op& op = op_of(schedule, interval.place);
    const auto found = raises.find({interval.place.rank, op.flag, op.index});
    if (found == raises.end()) continue;
    const std::vector<Raise>& all = found->second;
    // Back from the last that it can have seen, as long as the counter had reached what it waits for.
    auto at = std::upper_bound(all.begin(), all.end(), interval.end_ns,
                               [](double time, const Raise& raise) { return time < raise.time_ns; });
    while (at != all.begin() && (at - 1)->value >= op.value) {
      --at;
      releases[i] = at->op;
    }
  }
  return releases;
}

std::vector<PathStep> critical_path_of(const Timeline& timeline, const Schedule& schedule,
                                       const std::vector<std::uint32_t>& releases) {
  return Walk(timeline, schedule, releases).steps();
}

}  // namespace tritax
