// Flags: signals in flight, waits that poll.
#include "sim/engine_flags.hpp"

#include <algorithm>
#include <cmath>

namespace tritax::engine {

// One dense table.
Flags::Flags(Run& run) : run_(run) {
  std::uint32_t flags = 0;
  for (std::int32_t rank = 0; rank < run_.simulated_ranks; ++rank) {
    for (const FlagArray& array : run_.schedule.flags) {
      flag_base_.push_back(flags);
      flags += static_cast<std::uint32_t>(array.count);
    }
  }
  flags_.resize(flags);
}

std::uint32_t Flags::flag_of(std::int32_t rank, const Op& op) const {
  const std::size_t array = static_cast<std::size_t>(run_.home(rank)) * run_.schedule.flags.size() +
                            static_cast<std::size_t>(op.flag);
  return flag_base_[array] + static_cast<std::uint32_t>(op.index);
}

// Whether a signal is a release. A flag in the words of the data releases nothing.
bool Flags::publishes(const WorkgroupState& wg, const Op& op) const {
  return !is_relaxed(op) && (op.rank == wg.rank || run_.moves.rates(wg.kernel).payload_share == 1);
}

// Time until the counter can be set: earlier stores and signals of the workgroup to peers must have arrived,
// unless the signal is relaxed.
double Flags::begin_signal(WorkgroupState& wg, const Op& op, double now) {
  if (run_.is_free(op)) return 0;
  const Flag& flag = flags_[flag_of(op.rank, op)];
  double cost = 0;
  if (publishes(wg, op)) {
    cost = run_.machine.gpu.release_ns;
    if (wg.remote_dirty) cost += run_.machine.fabric.store_latency_ns;
    if (wg.far_dirty) cost += run_.machine.fabric.network_latency_ns;
    if (wg.spine_dirty) cost += run_.machine.network.spine_latency_ns;
    if (run_.machine.fabric.signal_round_trip_ns > 0)
      cost = std::max(cost, run_.sender_of(wg).signals_known_ns - now);
    wg.remote_dirty = wg.far_dirty = wg.spine_dirty = false;
  }
  // The access queues behind the atomics of the workgroups that spin on the same word.
  if (op.protocol != LockProtocol::load_store) cost += run_.machine.gpu.poll_atomic_ns;
  if (op.protocol == LockProtocol::compare_and_swap) cost += flag.pollers * run_.machine.gpu.poll_atomic_ns;
  return cost * run_.moves.rates(wg.kernel).time_factor;
}

// Sets the counter: on the same GPU at once, on a peer after the latency of the fabric.
void Flags::deliver(WorkgroupState& wg, const Op& op, const Path& path, double now) {
  const std::int32_t rank = wg.rank;
  Arrival arrival{flag_of(op.rank, op), op.value, -1, op.change, path};
  if (op.rank == rank) {
    arrival.from_die = wg.die;
    raise(arrival, now);
    return;
  }
  std::uint32_t slot = static_cast<std::uint32_t>(arrivals_.size());
  if (free_arrivals_.empty()) {
    arrivals_.push_back(arrival);
  } else {
    slot = free_arrivals_.back();
    free_arrivals_.pop_back();
    arrivals_[slot] = arrival;
  }
  const double between_ns = between_nodes_ns(run_.machine, rank, op.rank);
  const double factor = run_.moves.rates(wg.kernel).time_factor;
  const double latency = factor * (run_.machine.fabric.flag_latency_ns + between_ns);
  if (run_.machine.fabric.signal_round_trip_ns > 0 && !run_.is_free(op) && publishes(wg, op)) {
    run_.sender_of(wg).signals_known_ns =
        now + factor * (run_.machine.fabric.signal_round_trip_ns + 2 * between_ns);
  }
  run_.queue.push(now + (run_.is_free(op) ? 0 : latency), {EventKind::flag_arrives, slot});
}

// Number of workgroups of the same kind on the compute unit of `wg`, itself included.
std::int32_t& Flags::residents_of(const WorkgroupState& wg) {
  const Kernel& kernel = run_.schedule.kernels[wg.kernel];
  GpuState& gpu = run_.gpus[kernel.rank];
  return gpu.cus[static_cast<std::size_t>(wg.cu)].residents(kernel.tile);
}

// If flags travel in the words of the data, the load that finds the flag is the load of the data.
double Flags::poll_ns(const WorkgroupState& wg, const Op& op) const {
  if (run_.is_free(op)) return 0;
  if (op.scope == Scope::system && run_.moves.rates(wg.kernel).payload_share < 1) return 0;
  const double poll_ns = op.protocol == LockProtocol::compare_and_swap ? run_.machine.gpu.poll_atomic_ns
                                                                       : run_.machine.gpu.poll_load_ns;
  return poll_ns * run_.moves.rates(wg.kernel).time_factor;
}

void Flags::begin_wait(WorkgroupState& wg, std::uint32_t id, const Op& op, double now) {
  const std::int32_t rank = wg.rank;
  GpuState& gpu = run_.gpus[rank];
  Flag& flag = flags_[flag_of(rank, op)];
  if (flag.value >= op.value) {
    wg.op_part = &TimeAccount::memory_ns;
    wg.waiting = Waiting::time;
    run_.queue.push(now + poll_ns(wg, op), {EventKind::resume_workgroup, id});
    return;
  }
  wg.waiting = Waiting::flag;
  wg.next_waiter = flag.first_waiter;
  flag.first_waiter = id;
  ++flag.pollers;
  if (run_.is_free(op)) --residents_of(wg);
  if (op.protocol == LockProtocol::compare_and_swap) {
    ++gpu.atomic_pollers[static_cast<std::size_t>(wg.die)];
  }
}

void Flags::arrive(std::uint32_t id, double now) {
  const Arrival arrival = arrivals_[id];
  free_arrivals_.push_back(id);
  raise(arrival, now);
}

void Flags::raise(const Arrival& arrival, double now) {
  Flag& flag = flags_[arrival.flag];
  flag.value = (arrival.change == FlagChange::set ? 0 : flag.value) + arrival.value;
  wake_waiters(arrival.flag, arrival, now);
}

void Flags::wake_waiters(std::uint32_t flag_id, const Arrival& arrival, double now) {
  Flag& flag = flags_[flag_id];
  std::uint32_t* link = &flag.first_waiter;
  while (*link != kNobody) {
    const std::uint32_t id = *link;
    WorkgroupState& wg = run_.workgroups[id];
    const Op& op = run_.schedule.ops[wg.pc];
    if (flag.value < op.value) {
      link = &wg.next_waiter;
      continue;
    }
    *link = wg.next_waiter;
    GpuState& gpu = run_.gpus[wg.rank];
    const std::int32_t die = wg.die;
    if (run_.is_free(op)) ++residents_of(wg);
    if (op.protocol == LockProtocol::compare_and_swap) --gpu.atomic_pollers[static_cast<std::size_t>(die)];
    double visible = now;
    if (arrival.from_die >= 0 && !run_.is_free(op)) {
      visible +=
          arrival.from_die == die ? run_.machine.gpu.flag_same_die_ns : run_.machine.gpu.flag_cross_die_ns;
    }
    // The waiter sees the flag with the first poll after `visible`; polls follow each other from the start of
    // the wait.
    const double period =
        poll_ns(wg, op) * (op.protocol == LockProtocol::compare_and_swap ? std::max(1, flag.pollers) : 1);
    --flag.pollers;
    const double polls = period > 0 ? std::ceil((visible - wg.op_start_ns) / period) : 0;
    const double seen = period > 0 ? wg.op_start_ns + polls * period : visible;
    wg.path = arrival.path;
    wg.op_part = arrival.from_die >= 0 ? &TimeAccount::memory_ns : &TimeAccount::wire_ns;
    wg.waiting = Waiting::time;
    const double met = wg.has_sender && !run_.is_free(op) ? run_.costs_of(wg).meet_ns : 0;
    run_.queue.push(std::max(seen, visible) + met, {EventKind::resume_workgroup, id});
  }
}

}  // namespace tritax::engine
