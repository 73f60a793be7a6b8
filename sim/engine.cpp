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
    while (!run_.queue.empty() && held_loads_.is_stale(run_.queue.next())) run_.queue.pop();
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
      run_.prefetch(ends_soon_);
    }
  }
  if (ended_.size() > 1) {
    const auto rank = [&](const FluidNetwork::Completion& ended) {
      if (is_transfer(ended.token)) return std::pair(ended.token, 0u);
      const WorkgroupState& wg = run_.workgroups[workgroup_of(ended.token)];
      return std::pair(token_of(wg.id, (ended.token & 1u) != 0), wg.group_of == kNobody ? 0u : wg.pc);
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
  if (!run_.queue.empty()) {
    const Event& next = run_.queue.next();
    if (is_of_workgroup(next)) run_.prefetch(next.id);
  }
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
      sender_.tile_staged(event.id, now);
      step(event.id, now);
      break;
    case EventKind::resume_sender:
      if (sender_.signal_ended(event.id, now)) step(event.id, now);
      break;
    case EventKind::delayed_loads_arrived:
      held_loads_.delayed_loads_arrived(event.id, now);
      break;
    case EventKind::flag_arrives:
      flags_.arrive(event.id, now);
      break;
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
  dispatch_.begin_kernel(kernel, now);
}

// Starts the workgroups that were just sent. A workgroup without operations ends at once, and others follow.
void Engine::start_sent(double now) {
  for (std::uint32_t id = dispatch_.take_starting(); id != kNobody; id = dispatch_.take_starting()) {
    ++run_.totals.events;
    start_workgroup(id, now);
  }
}

void Engine::start_workgroup(std::uint32_t wg, double now) {
  run_.workgroups[wg].path.charge(&TimeAccount::launch_ns, now);
  step(wg, now);
}

void Engine::finish_workgroup(std::uint32_t id, double now) {
  const std::uint32_t kernel = run_.workgroups[id].kernel;
  dispatch_.end_workgroup(id, now);
  if (run_.kernels[kernel].remaining == 0) finish_kernel(kernel, now);
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
