#include "sim/engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "model/core/error.hpp"

namespace tritax::engine {

namespace {

// Eleven days. At that time a double still resolves a tenth of a nanosecond, so an event that follows another
// event comes later.
constexpr double kLongestRunNs = 1e15;

[[noreturn]] void refuse_length() {
  throw UserError(
      fmt::format("the run takes longer than {:g} s; give higher rates, or less work", kLongestRunNs * 1e-9));
}

}  // namespace

SimulationResult Engine::run() {
  double now = 0;
  for (;;) {
    // Stale events must not keep the clock going.
    while (!run_.queue.empty() && is_stale(run_.queue.next())) run_.queue.pop();
    const double next = std::min(run_.queue.next_time_ns(), run_.fluid.next_completion_ns());
    if (next == std::numeric_limits<double>::infinity()) break;
    TRITAX_ASSERT(next >= now, "the clock went backwards");
    now = next;
    if (now > kLongestRunNs) refuse_length();
    run_.totals.gave_up |= run_.options.give_up_after_ns > 0 && now > run_.options.give_up_after_ns;
    run_.totals.gave_up |= run_.options.stop != nullptr && run_.options.stop->load(std::memory_order_relaxed);
    if (run_.totals.gave_up) break;
    const double same_ns = same_time_until(now);
    now = collect_ended(now, same_ns);
    for (const FluidNetwork::Completion& ended : ended_) completed(ended, now);
    start_sent(now);
    while (run_.queue.next_time_ns() <= same_ns) {
      now = collect_due(now, same_ns);
      for (const auto& event : due_) handle(event.payload, now);
      start_sent(now);
    }
    run_.fluid.settle(now);
    if (run_.options.link_counters && run_.options.observer) resources_.report_link_rates(now);
    if (counters_.any()) counters_.tell_clocks(now);
  }
  if (!run_.totals.gave_up) {
    if (!hosts_.all_done()) report_stall(now);
    for (const KernelState& kernel : run_.kernels) {
      if (kernel.launched && kernel.remaining > 0) report_stall(now);
    }
  }
  return result(now);
}

// Activities that end up to `same_ns` end at the time of the last of them, in the order of the workgroups.
double Engine::collect_ended(double now, double same_ns) {
  ended_.clear();
  while (run_.fluid.next_completion_ns() <= same_ns) {
    now = std::max(now, run_.fluid.next_completion_ns());
    const FluidNetwork::Completion completion = run_.fluid.complete(now);
    ended_.push_back(completion);
    if (run_.fluid.active(completion.class_id) > 0) {
      // The state of the previous workgroup is cached by now and names its next operation.
      const std::uint32_t token = run_.fluid.next_token(completion.class_id);
      if (is_transfer(token)) continue;
      __builtin_prefetch(run_.schedule.ops.data() + run_.workgroups[ends_soon_].pc);
      ends_soon_ = workgroup_of(token);
      prefetch(ends_soon_);
    }
  }
  if (ended_.size() > 1) {
    const auto rank = [&](const FluidNetwork::Completion& ended) {
      if (is_transfer(ended.token)) return ended.token;
      return token_of(run_.workgroups[workgroup_of(ended.token)].id, (ended.token & 1u) != 0);
    };
    std::sort(ended_.begin(), ended_.end(), [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  }
  return now;
}

// Collects the events up to `same_ns` at the time of the last of them, in the order in which they were
// pushed.
double Engine::collect_due(double now, double same_ns) {
  due_.clear();
  while (run_.queue.next_time_ns() <= same_ns) due_.push_back(run_.queue.pop());
  if (!run_.queue.empty()) prefetch_of(run_.queue.next());
  now = std::max(now, due_.back().time_ns);
  if (due_.front().time_ns != due_.back().time_ns) {
    std::sort(due_.begin(), due_.end(), [](const auto& a, const auto& b) { return a.sequence < b.sequence; });
  }
  return now;
}

void Engine::handle(const Event& event, double now) {
  ++run_.totals.events;
  switch (event.kind) {
    case EventKind::start_workgroup:
      start_workgroup(event.id, now);
      break;
    case EventKind::resume_workgroup:
      resume(event.id, now);
      break;
    case EventKind::tile_staged:
      tile_staged(event.id, now);
      break;
    case EventKind::resume_sender:
      resume_sender(event.id, now);
      break;
    case EventKind::loads_trickled:
      loads_trickled(event.id, now);
      break;
    case EventKind::flag_arrives: {
      const Arrival arrival = arrivals_[event.id];
      free_arrivals_.push_back(event.id);
      raise_flag(arrival, now);
      break;
    }
    case EventKind::start_kernel:
      start_kernel(event.id, now);
      break;
    case EventKind::host_step:
      hosts_.step(static_cast<std::int32_t>(event.id), now);
      break;
    case EventKind::transfer_ready:
      copies_.begin(event.id, now);
      break;
    case EventKind::transfer_moves:
      copies_.move(event.id, now);
      break;
  }
}

void Engine::start_kernel(std::uint32_t kernel, double now) {
  KernelState& state = run_.kernels[kernel];
  const std::int32_t rank = run_.schedule.kernels[kernel].rank;
  state.start.charge(&TimeAccount::launch_ns, now);
  if (first_start_ns_ < 0) first_start_ns_ = now;
  if (run_.gpus[rank].first_start_ns < 0) run_.gpus[rank].first_start_ns = now;
  if (run_.options.observer) run_.options.observer->kernel_started(kernel, now);
  if (state.remaining == 0) {
    state.end = state.start;
    finish_kernel(kernel, now);
    return;
  }
  run_.gpus[rank].running.push_back(kernel);
  for (int die = 0; die < run_.machine.gpu.xcds; ++die) dispatch(rank, die, now);
}

void Engine::dispatch(std::int32_t rank, std::int32_t die, double now) {
  GpuState& gpu = run_.gpus[rank];
  last_dispatched_.clear();
  if (placed_) {
    dispatch_by_place(rank, die, now);
  } else {
    for (const std::uint32_t k : gpu.running) {
      if (is_gang(k)) {
        start_gang(k, now);
        continue;
      }
      KernelState& state = run_.kernels[k];
      const Kernel& kernel = run_.schedule.kernels[k];
      std::uint32_t& next = state.next_of_die[static_cast<std::size_t>(die)];
      while (next < kernel.workgroups.size()) {
        const std::int32_t cu = gpu.dispatcher.place(die, next / state.dies, state.demand);
        if (cu < 0) break;
        send({k, next, cu}, now);
        next += state.dies;
        if (next < kernel.workgroups.size()) {
          // Prefetches the first operations of the die's next workgroup, and the entry of the workgroup after
          // it: no cache would hold them when their turn comes.
          const std::uint32_t op = kernel.workgroups[next].first_op;
          if (op < run_.schedule.ops.size()) {
            __builtin_prefetch(run_.schedule.ops.data() + op);
            __builtin_prefetch(run_.schedule.ops.data() + op + 1);
            __builtin_prefetch(run_.inputs_of_op.data() + op);
          }
          const std::uint32_t after = next + state.dies;
          if (after < kernel.workgroups.size()) __builtin_prefetch(kernel.workgroups.data() + after);
        }
      }
    }
  }
  std::erase_if(gpu.running, [&](std::uint32_t k) { return run_.kernels[k].to_send == 0; });
}

// Sends one workgroup to each compute unit in turn, as the dispatcher does.
void Engine::dispatch_by_place(std::int32_t rank, std::int32_t die, double now) {
  GpuState& gpu = run_.gpus[rank];
  for (const std::uint32_t k : gpu.running) {
    if (is_gang(k)) start_gang_by_place(k, now);
  }
  const std::int32_t first = die * run_.machine.gpu.cus_per_xcd;
  for (bool sent = true; sent;) {
    sent = false;
    for (std::int32_t cu = first; cu < first + run_.machine.gpu.cus_per_xcd; ++cu) {
      PlaceQueue& queue = gpu.place_queues[static_cast<std::size_t>(cu)];
      if (queue.head == queue.workgroups.size()) continue;
      const Placed& placed = queue.workgroups[queue.head];
      const auto kernel = std::find(gpu.running.begin(), gpu.running.end(), placed.kernel);
      const bool started = kernel != gpu.running.end() && !is_gang(placed.kernel);
      if (!started || !gpu.dispatcher.has_room(cu, run_.kernels[placed.kernel].demand)) continue;
      send(placed, now);
      ++queue.head;
      sent = true;
    }
  }
}

std::uint32_t Engine::take_place(std::uint32_t kernel, std::uint32_t number) {
  auto id = static_cast<std::uint32_t>(run_.workgroups.size());
  if (free_places_.empty()) {
    run_.workgroups.emplace_back();
    run_.senders.emplace_back();
    if (run_.has_items) draws_.emplace_back();
  } else {
    id = free_places_.back();
    free_places_.pop_back();
  }
  run_.start_over(run_.workgroups[id], kernel, number);
  if (run_.workgroups[id].has_sender || run_.machine.fabric.signal_round_trip_ns > 0) {
    run_.senders[id] = {.pc = run_.workgroups[id].pc, .path = {}};
  }
  return id;
}

void Engine::send(const Placed& placed, double now) {
  const std::int32_t cu = placed.cu;
  const std::uint32_t id = take_place(placed.kernel, placed.workgroup);
  WorkgroupState& wg = run_.workgroups[id];
  const Kernel& kernel = run_.schedule.kernels[wg.kernel];
  KernelState& state = run_.kernels[wg.kernel];
  GpuState& gpu = run_.gpus[kernel.rank];
  CuState& unit = gpu.cus[static_cast<std::size_t>(cu)];
  if (gpu.dispatcher.resident(cu) == 0) unit.occupied_since_ns = now;
  gpu.dispatcher.take(cu, state.demand);
  ++unit.residents(kernel.tile);
  // No cache holds the first operations of the workgroup.
  __builtin_prefetch(run_.schedule.ops.data() + wg.pc);
  __builtin_prefetch(run_.inputs_of_op.data() + wg.pc);
  wg.cu = cu;
  wg.die = static_cast<std::int16_t>(gpu.dispatcher.die_of(cu));
  wg.path = state.start;
  --state.to_send;
  double& free_at = gpu.dispatch_free_ns[static_cast<std::size_t>(wg.die)];
  const double sent_ns = std::max(free_at, now);
  free_at = sent_ns + run_.machine.gpu.workgroup_dispatch_ns;
  last_dispatched_.push_back(id);
  sent_.push_back(placed);
  // A workgroup that starts with the kernel finds neither its code nor its operations in a cache.
  double start = 0;
  const KernelCosts& costs = run_.costs_of(wg);
  if (!later(now, state.start.time_ns)) {
    if (!run_.options.warm) start += costs.cold_start_ns + (state.code_is_cold ? costs.cold_code_ns : 0);
    if (!run_.options.counterfactual.free_launches) start += run_.moves.rates(wg.kernel).start_ns;
  }
  const double starts_ns = sent_ns + run_.machine.gpu.dispatch_latency_ns + start;
  if (starts_ns > now) {
    run_.queue.push(starts_ns, {EventKind::start_workgroup, id});
  } else {
    starting_.push_back(id);
  }
}

// Starts the workgroups that were just sent. A workgroup without operations ends at once, and others follow.
void Engine::start_sent(double now) {
  for (std::size_t i = 0; i < starting_.size(); ++i) {
    ++run_.totals.events;
    start_workgroup(starting_[i], now);
  }
  starting_.clear();
}

void Engine::start_workgroup(std::uint32_t wg, double now) {
  run_.workgroups[wg].path.charge(&TimeAccount::launch_ns, now);
  step(wg, now);
}

void Engine::finish_workgroup(std::uint32_t id, double now) {
  WorkgroupState& wg = run_.workgroups[id];
  const std::uint32_t k = wg.kernel;
  const std::int32_t cu = wg.cu;
  const std::int32_t die = wg.die;
  const Path path = wg.path;
  wg.kernel = kNobody;
  free_places_.push_back(id);
  const Kernel& kernel = run_.schedule.kernels[k];
  KernelState& state = run_.kernels[k];
  GpuState& gpu = run_.gpus[kernel.rank];
  gpu.dispatcher.release(cu, state.demand);
  CuState& unit = gpu.cus[static_cast<std::size_t>(cu)];
  if (gpu.dispatcher.resident(cu) == 0) gpu.cu_busy_ns += now - unit.occupied_since_ns;
  --unit.residents(kernel.tile);
  TRITAX_ASSERT(state.remaining > 0, "a kernel finished more workgroups than it has");
  if (!later(state.end.time_ns, path.time_ns)) state.end = path;
  --state.remaining;
  if (!gpu.running.empty()) {
    // Successors in the freed slot continue this workgroup's path.
    dispatch(kernel.rank, die, now);
    for (const std::uint32_t successor : last_dispatched_) run_.workgroups[successor].path = path;
  }
  if (state.remaining == 0) finish_kernel(k, now);
}

void Engine::finish_kernel(std::uint32_t kernel, double now) {
  KernelState& state = run_.kernels[kernel];
  const std::int32_t rank = run_.schedule.kernels[kernel].rank;
  last_end_ns_ = std::max(last_end_ns_, now);
  run_.gpus[rank].last_end_ns = now;
  if (run_.options.observer) run_.options.observer->kernel_finished(kernel, now);
  hosts_.work_ended(rank, state.stream, state.end, now);
}

}  // namespace tritax::engine
