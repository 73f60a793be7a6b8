#include "sim/happens_before.hpp"

#include <algorithm>
#include <utility>

#include "model/core/error.hpp"
#include "model/schedule/op_traits.hpp"

namespace tritax {

namespace {

template <typename Entries>
auto place_of(Entries& entries, std::uint32_t agent) {
  return std::lower_bound(entries.begin(), entries.end(), agent,
                          [](const Epoch& entry, std::uint32_t one) { return entry.agent < one; });
}

bool has(const std::vector<Epoch>& entries, Epoch epoch) {
  const auto at = place_of(entries, epoch.agent);
  return at != entries.end() && at->agent == epoch.agent && at->time >= epoch.time;
}

void raise(std::vector<Epoch>& entries, Epoch epoch) {
  const auto at = place_of(entries, epoch.agent);
  if (at == entries.end() || at->agent != epoch.agent) {
    entries.insert(at, epoch);
  } else {
    at->time = std::max(at->time, epoch.time);
  }
}

}  // namespace

void VectorClock::advance(Epoch epoch) { raise(entries_, epoch); }

void VectorClock::join(Entries& entries, const Entries& others) {
  constexpr std::size_t kFew = 4;
  if (others.size() <= kFew) {
    for (const Epoch& other : others) raise(entries, other);
    return;
  }
  Entries joined;
  joined.reserve(entries.size() + others.size());
  auto a = entries.begin();
  auto b = others.begin();
  while (a != entries.end() && b != others.end()) {
    if (a->agent < b->agent) {
      joined.push_back(*a++);
    } else if (b->agent < a->agent) {
      joined.push_back(*b++);
    } else {
      joined.push_back({a->agent, std::max(a->time, b->time)});
      ++a;
      ++b;
    }
  }
  joined.insert(joined.end(), a, entries.end());
  joined.insert(joined.end(), b, others.end());
  entries = std::move(joined);
}

void VectorClock::join(const VectorClock& other) {
  for (const auto& base : other.bases_) {
    if (std::find(bases_.begin(), bases_.end(), base) == bases_.end()) bases_.push_back(base);
  }
  join(entries_, other.entries_);
  constexpr std::size_t kMostBases = 64;
  if (bases_.size() > kMostBases) share();
}

bool VectorClock::contains(Epoch epoch) const {
  return has(entries_, epoch) ||
         std::any_of(bases_.begin(), bases_.end(), [epoch](const auto& base) { return has(*base, epoch); });
}

void VectorClock::share() {
  Entries all = std::move(entries_);
  for (const auto& base : bases_) join(all, *base);
  entries_.clear();
  bases_ = {std::make_shared<const Entries>(std::move(all))};
}

HappensBefore::HappensBefore(const Schedule& schedule) : schedule_(schedule) {
  const auto ranks = static_cast<std::size_t>(schedule.ranks);
  std::uint32_t agents = 0;
  for (const Kernel& kernel : schedule.kernels) {
    first_agent_.push_back(agents);
    agents += static_cast<std::uint32_t>(program_count(kernel));
    item_queues_.push_back(item_queues(schedule, kernel));
  }
  for (const std::vector<HostOp>& program : schedule.host) {
    first_copy_.push_back(agents);
    const bool copies = std::any_of(program.begin(), program.end(),
                                    [](const HostOp& op) { return op.kind == HostOpKind::copy; });
    agents += copies ? static_cast<std::uint32_t>(program.size()) : 0;
  }
  agents_.resize(agents);
  last_record_.resize(ranks);
  kernels_.resize(schedule.kernels.size());
  streams_.resize(ranks);
  hosts_.resize(ranks);
  barriers_reached_.resize(ranks, 0);
  std::size_t flags = 0;
  for (const FlagArray& array : schedule.flags) {
    first_flag_.push_back(flags);
    flags += ranks * static_cast<std::size_t>(array.count);
  }
  flags_.resize(flags);
}

std::uint32_t HappensBefore::agent_of(std::uint32_t kernel, std::uint32_t workgroup, std::uint32_t op) const {
  const Kernel& its = schedule_.kernels[kernel];
  const Workgroup& own = its.workgroups[workgroup];
  if (op < own.op_count) return first_agent_[kernel] + workgroup;
  return first_agent_[kernel] +
         static_cast<std::uint32_t>(its.workgroups.size() + item_of(its, own.first_op + op));
}

const Op& HappensBefore::op_at(std::uint32_t kernel, std::uint32_t workgroup, std::uint32_t op) const {
  return schedule_.ops[schedule_.kernels[kernel].workgroups[workgroup].first_op + op];
}

HappensBefore::Flag& HappensBefore::flag_at(std::int16_t flag, int rank, std::int32_t index) {
  const auto count = static_cast<std::size_t>(schedule_.flags[static_cast<std::size_t>(flag)].count);
  return flags_[first_flag_[static_cast<std::size_t>(flag)] + static_cast<std::size_t>(rank) * count +
                static_cast<std::size_t>(index)];
}

void HappensBefore::enqueue(std::int32_t kernel, std::int32_t stream, const VectorClock& host) {
  const auto index = static_cast<std::uint32_t>(kernel);
  const auto rank = static_cast<std::size_t>(schedule_.kernels[index].rank);
  streams_[rank][stream].queue.push_back({index, host});
}

// Posts a copy, or a point of a stream.
void HappensBefore::post(int rank, const HostOp& op, std::uint32_t host_op) {
  const auto r = static_cast<std::size_t>(rank);
  Launch launch{host_op, hosts_[r], Launch::Kind::copy};
  if (op.kind == HostOpKind::event_record) {
    launch.kind = Launch::Kind::record;
    launch.item = static_cast<std::uint32_t>(records_.size());
    last_record_[r][op.event] = launch.item;
    records_.emplace_back();
  } else if (op.kind == HostOpKind::event_wait) {
    launch.kind = Launch::Kind::wait;
    launch.item = last_record_[r].at(op.event);
  }
  streams_[r][op.stream].queue.push_back(std::move(launch));
  pass_points(rank);
}

// Passes records and waits that nothing holds up any longer.
void HappensBefore::pass_points(int rank) {
  for (bool more = true; more;) {
    more = false;
    for (auto& [number, stream] : streams_[static_cast<std::size_t>(rank)]) {
      while (!stream.running && !stream.queue.empty()) {
        const Launch& next = stream.queue.front();
        if (next.kind != Launch::Kind::record && next.kind != Launch::Kind::wait) break;
        Record& record = records_[next.item];
        const bool records = next.kind == Launch::Kind::record;
        if (!records && !record.happened) break;
        stream.done.join(next.host);
        if (records) {
          record = {true, stream.done};
        } else {
          stream.done.join(record.clock);
        }
        stream.queue.pop_front();
        more = true;
      }
    }
  }
}

Epoch HappensBefore::copy_started(int rank, std::uint32_t host_op) {
  const auto r = static_cast<std::size_t>(rank);
  Stream& stream = streams_[r][schedule_.host[r][host_op].stream];
  TRITAX_ASSERT(!stream.running && !stream.queue.empty() && stream.queue.front().kind == Launch::Kind::copy &&
                    stream.queue.front().item == host_op,
                "a copy started that is not next in its stream");
  stream.running = true;
  const std::uint32_t id = agent_of_copy(rank, host_op);
  Agent& agent = agents_[id];
  agent.clock = stream.queue.front().host;
  agent.clock.join(stream.done);
  const Epoch epoch{id, ++agent.time};
  agent.clock.advance(epoch);
  return epoch;
}

void HappensBefore::copy_finished(int rank, std::uint32_t host_op) {
  const auto r = static_cast<std::size_t>(rank);
  Stream& stream = streams_[r][schedule_.host[r][host_op].stream];
  stream.done.join(agents_[agent_of_copy(rank, host_op)].clock);
  stream.queue.pop_front();
  stream.running = false;
  pass_points(rank);
}

bool HappensBefore::is_before_copy(Epoch earlier, int rank, std::uint32_t host_op) const {
  return agents_[agent_of_copy(rank, host_op)].clock.contains(earlier);
}

void HappensBefore::host_op_started(int rank, std::uint32_t host_op) {
  const auto r = static_cast<std::size_t>(rank);
  const HostOp& op = schedule_.host[r][host_op];
  for_each_launch(schedule_, op,
                  [&](const GraphNode& node) { enqueue(node.kernel, node.stream, hosts_[r]); });
  if (op.kind == HostOpKind::copy || op.kind == HostOpKind::event_record ||
      op.kind == HostOpKind::event_wait) {
    post(rank, op, host_op);
  } else if (op.kind == HostOpKind::barrier) {
    const std::size_t barrier = barriers_reached_[r]++;
    if (barrier >= barriers_.size()) {
      barriers_.resize(barrier + 1);
    }
    barriers_[barrier].join(hosts_[r]);
  }
}

void HappensBefore::host_op_finished(int rank, std::uint32_t host_op) {
  const auto r = static_cast<std::size_t>(rank);
  const HostOp& op = schedule_.host[r][host_op];
  if (op.kind == HostOpKind::stream_synchronize) {
    hosts_[r].join(streams_[r][op.stream].done);
  } else if (op.kind == HostOpKind::device_synchronize) {
    for (const auto& [number, stream] : streams_[r]) {
      hosts_[r].join(stream.done);
    }
  } else if (op.kind == HostOpKind::barrier) {
    hosts_[r].join(barriers_[barriers_reached_[r] - 1]);
  }
}

void HappensBefore::kernel_started(std::uint32_t kernel) {
  for (auto& [number, stream] : streams_[static_cast<std::size_t>(schedule_.kernels[kernel].rank)]) {
    if (!stream.running && !stream.queue.empty() && stream.queue.front().kind == Launch::Kind::kernel &&
        stream.queue.front().item == kernel) {
      stream.running = true;
      KernelState& state = kernels_[kernel];
      state.start = stream.queue.front().host;
      state.start.join(stream.done);
      state.start.share();
      state.stream = number;
      ++state.launches;
      return;
    }
  }
  TRITAX_ASSERT(false, "a kernel started that is not next in any stream");
}

void HappensBefore::kernel_finished(std::uint32_t kernel) {
  Stream& stream =
      streams_[static_cast<std::size_t>(schedule_.kernels[kernel].rank)][kernels_[kernel].stream];
  TRITAX_ASSERT(stream.running && stream.queue.front().item == kernel, "a kernel ended that was not running");
  stream.done.join(kernels_[kernel].start);
  const auto programs = static_cast<std::uint32_t>(program_count(schedule_.kernels[kernel]));
  for (std::uint32_t program = 0; program < programs; ++program) {
    stream.done.join(agents_[first_agent_[kernel] + program].clock);
  }
  stream.queue.pop_front();
  stream.running = false;
  pass_points(schedule_.kernels[kernel].rank);
}

Epoch HappensBefore::op_started(std::uint32_t kernel, std::uint32_t workgroup, std::uint32_t op) {
  const std::uint32_t id = agent_of(kernel, workgroup, op);
  Agent& agent = agents_[id];
  if (agent.launch != kernels_[kernel].launches) {
    agent.launch = kernels_[kernel].launches;
    agent.clock = kernels_[kernel].start;
    acquire_of_queue(agent, kernel, id - first_agent_[kernel]);
  }
  const Epoch epoch{id, ++agent.time};
  agent.clock.advance(epoch);
  if (op_at(kernel, workgroup, op).kind == OpKind::signal) {
    agent.open_signals.push_back({op, epoch, agent.clock});
  }
  return epoch;
}

void HappensBefore::op_finished(std::uint32_t kernel, std::uint32_t workgroup, std::uint32_t op_index) {
  const std::uint32_t id = agent_of(kernel, workgroup, op_index);
  const Op& op = op_at(kernel, workgroup, op_index);
  const int rank = schedule_.kernels[kernel].rank;
  switch (op.kind) {
    case OpKind::signal:
      return release(agents_[id], rank, op_index, op);
    case OpKind::wait:
      return acquire(agents_[id], rank, op);
    case OpKind::claim:
      ++flag_at(op.flag, rank, op.index).value;
      return;
    default:
      return;
  }
}

// A workgroup that has drawn this item has waited for everything that precedes all claims of the queue.
void HappensBefore::acquire_of_queue(Agent& agent, std::uint32_t kernel, std::uint32_t program) {
  const std::size_t workgroups = schedule_.kernels[kernel].workgroups.size();
  if (program < workgroups) return;
  const auto item = static_cast<std::int32_t>(program - workgroups);
  for (const ItemQueue& queue : item_queues_[kernel]) {
    if (item < queue.first || item - queue.first >= queue.count) continue;
    for (const Op& wait : queue.awaited) acquire(agent, schedule_.kernels[kernel].rank, wait);
  }
}

void HappensBefore::release(Agent& agent, int rank, std::uint32_t op_index, const Op& op) {
  const auto open = std::find_if(agent.open_signals.begin(), agent.open_signals.end(),
                                 [&](const OpenSignal& signal) { return signal.op == op_index; });
  TRITAX_ASSERT(open != agent.open_signals.end(), "a signal ended that had not started");
  Flag& flag = flag_at(op.flag, op.rank, op.index);
  if (sets_flag(op)) {
    flag = {};
    flag.was_set = true;
  }
  flag.value += op.value;
  flag.releases.push_back({open->epoch, std::move(open->clock), op.value, rank, op.scope, !is_relaxed(op)});
  agent.open_signals.erase(open);
}

void HappensBefore::acquire(Agent& agent, int rank, const Op& op) {
  const Flag& flag = flag_at(op.flag, rank, op.index);
  TRITAX_ASSERT(flag.value >= op.value || flag.was_set, "a wait ended before its flag was set");
  // A later signal has set the flag again before the end of the wait that had seen it.
  if (flag.value < op.value || op.scope == Scope::workgroup) return;
  for (const Release& release : flag.releases) {
    if (!release.publishes) continue;
    const bool same_gpu = release.rank == rank && release.scope != Scope::workgroup;
    const bool system = release.scope == Scope::system && op.scope == Scope::system;
    if (!same_gpu && !system) {
      continue;
    }
    std::int64_t without = flag.value - release.value;  // sum without this signal
    for (const Release& other : flag.releases) {
      if (without < op.value) {
        break;
      }
      if (&other != &release && other.clock.contains(release.epoch)) {
        without -= other.value;
      }
    }
    if (without < op.value) {
      agent.clock.join(release.clock);
    }
  }
}

bool HappensBefore::is_before(Epoch earlier, std::uint32_t kernel, std::uint32_t workgroup,
                              std::uint32_t op) const {
  return agents_[agent_of(kernel, workgroup, op)].clock.contains(earlier);
}

}  // namespace tritax
