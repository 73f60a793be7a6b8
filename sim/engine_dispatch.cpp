// Dispatch of workgroups; gangs are in engine_gang.cpp.
#include "sim/engine_dispatch.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/core/error.hpp"
#include "model/schedule/op_traits.hpp"

namespace tritax::engine {

namespace {
std::size_t workgroups_of(const Schedule& schedule) {
  std::size_t workgroups = 0;
  for (const Kernel& kernel : schedule.kernels) workgroups += kernel.workgroups.size();
  return workgroups;
}
}  // namespace

Dispatch::Dispatch(Run& run, std::span<const Placed> places)
    : run_(run), placed_(!places.empty()), gpus_(run.gpus.size()) {
  for (OfGpu& gpu : gpus_) gpu.free_ns.resize(static_cast<std::size_t>(run_.machine.gpu.xcds), 0.0);
  index_kernels();
  find_cold_code();
  index_places(places);
}

void Dispatch::index_kernels() {
  run_.kernels.resize(run_.schedule.kernels.size());
  std::uint32_t first_workgroup = 0;
  // Members of groups have places too.
  const std::size_t places = run_.most_together > 1 ? 1 + run_.most_together : 1;
  run_.workgroups.reserve(places * workgroups_of(run_.schedule));
  run_.senders.reserve(places * workgroups_of(run_.schedule));
  sent_.reserve(workgroups_of(run_.schedule));
  for (std::uint32_t k = 0; k < run_.schedule.kernels.size(); ++k) {
    const Kernel& kernel = run_.schedule.kernels[k];
    KernelState& state = run_.kernels[k];
    state.first_workgroup = first_workgroup;
    first_workgroup += static_cast<std::uint32_t>(kernel.workgroups.size());
    state.remaining = static_cast<std::uint32_t>(kernel.workgroups.size());
    state.to_send = state.remaining;
    state.has_sender = has_sender(run_.schedule, kernel, run_.machine.gpu);
    number_workgroups_of_dies(kernel, state);
    if (kernel.workgroups.empty()) continue;
    state.demand = run_.gpus[0].dispatcher.demand_of(kernel);
    if (!run_.gpus[0].dispatcher.fits(state.demand)) {
      throw UserError(fmt::format(
          "kernel '{}' rank {}: a workgroup of {} threads x {} registers and {} bytes of LDS "
          "does not fit a compute unit of {}",
          kernel.name, kernel.rank, kernel.resources.threads, kernel.resources.registers_per_thread,
          kernel.resources.lds_bytes, run_.machine.gpu.name));
    }
  }
}

// Workgroups go round robin over the dies that have compute units for the kernel.
void Dispatch::number_workgroups_of_dies(const Kernel& kernel, KernelState& state) const {
  const Gpu& gpu = run_.machine.gpu;
  const std::int32_t end = kernel.cu_end > 0 ? kernel.cu_end : gpu.cu_count();
  const std::int32_t first = kernel.cu_begin / gpu.cus_per_xcd;
  const std::int32_t last = (end - 1) / gpu.cus_per_xcd;
  state.dies = static_cast<std::uint32_t>(last - first + 1);
  const auto none = static_cast<std::uint32_t>(kernel.workgroups.size());
  state.next_of_die.assign(static_cast<std::size_t>(gpu.xcds), none);
  for (std::int32_t die = first; die <= last; ++die) {
    state.next_of_die[static_cast<std::size_t>(die)] = static_cast<std::uint32_t>(die - first);
  }
}

// Kernels of one profile with matrix tiles of one kind are one program, kernels without tiles are another. A
// GPU runs its kernels repeatedly, so the first kernel follows the last one.
void Dispatch::find_cold_code() {
  const auto same_code = [](const Kernel& a, const Kernel& b) {
    return a.profile == b.profile && a.tile == b.tile;
  };
  for (const std::vector<HostOp>& program : run_.schedule.host) {
    std::vector<std::uint32_t> launched;
    for_each_launch(run_.schedule, program, [&](const GraphNode& node) {
      launched.push_back(static_cast<std::uint32_t>(node.kernel));
    });
    for (std::size_t i = 0; i < launched.size(); ++i) {
      const std::uint32_t before = launched[(i + launched.size() - 1) % launched.size()];
      run_.kernels[launched[i]].code_is_cold =
          !same_code(run_.schedule.kernels[launched[i]], run_.schedule.kernels[before]);
    }
  }
}

void Dispatch::index_places(std::span<const Placed> places) {
  if (!placed_) return;
  TRITAX_ASSERT(places.size() == workgroups_of(run_.schedule), "every workgroup has one place");
  const auto cus = static_cast<std::size_t>(run_.machine.gpu.cu_count());
  for (OfGpu& gpu : gpus_) gpu.place_queues.resize(cus);
  for (const Placed& place : places) {
    OfGpu& gpu = of_gpu(run_.schedule.kernels[place.kernel].rank);
    gpu.place_queues[static_cast<std::size_t>(place.cu)].workgroups.push_back(place);
  }
}

void Dispatch::begin_kernel(std::uint32_t kernel, double now) {
  const std::int32_t rank = run_.schedule.kernels[kernel].rank;
  of_gpu(rank).running.push_back(kernel);
  for (int die = 0; die < run_.machine.gpu.xcds; ++die) dispatch(rank, die, now);
}

void Dispatch::dispatch(std::int32_t rank, std::int32_t die, double now) {
  OfGpu& gpu = of_gpu(rank);
  last_sent_.clear();
  if (placed_) {
    dispatch_by_place(rank, die, now);
  } else {
    for (const std::uint32_t k : gpu.running) {
      if (run_.is_gang(k)) {
        start_gang(k, now);
        continue;
      }
      dispatch_kernel(k, die, now);
    }
  }
  std::erase_if(gpu.running, [&](std::uint32_t k) { return run_.kernels[k].to_send == 0; });
}

void Dispatch::dispatch_kernel(std::uint32_t k, std::int32_t die, double now) {
  KernelState& state = run_.kernels[k];
  const Kernel& kernel = run_.schedule.kernels[k];
  Dispatcher& dispatcher = run_.gpus[kernel.rank].dispatcher;
  std::uint32_t& next = state.next_of_die[static_cast<std::size_t>(die)];
  while (next < kernel.workgroups.size()) {
    const std::int32_t cu = dispatcher.place(die, next / state.dies, state.demand);
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

// Sends one workgroup to each compute unit in turn, as the dispatcher does.
void Dispatch::dispatch_by_place(std::int32_t rank, std::int32_t die, double now) {
  OfGpu& gpu = of_gpu(rank);
  const Dispatcher& dispatcher = run_.gpus[rank].dispatcher;
  for (const std::uint32_t k : gpu.running) {
    if (run_.is_gang(k)) start_gang_by_place(k, now);
  }
  const std::int32_t first = die * run_.machine.gpu.cus_per_xcd;
  for (bool sent = true; sent;) {
    sent = false;
    for (std::int32_t cu = first; cu < first + run_.machine.gpu.cus_per_xcd; ++cu) {
      PlaceQueue& queue = gpu.place_queues[static_cast<std::size_t>(cu)];
      if (queue.head == queue.workgroups.size()) continue;
      const Placed& placed = queue.workgroups[queue.head];
      const auto kernel = std::find(gpu.running.begin(), gpu.running.end(), placed.kernel);
      const bool started = kernel != gpu.running.end() && !run_.is_gang(placed.kernel);
      if (!started || !dispatcher.has_room(cu, run_.kernels[placed.kernel].demand)) continue;
      send(placed, now);
      ++queue.head;
      sent = true;
    }
  }
}

std::uint32_t Dispatch::take_place(std::uint32_t kernel, std::uint32_t number) {
  auto id = static_cast<std::uint32_t>(run_.workgroups.size());
  if (free_places_.empty()) {
    run_.workgroups.emplace_back();
    run_.senders.emplace_back();
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

void Dispatch::send(const Placed& placed, double now) {
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
  double& free_at = of_gpu(kernel.rank).free_ns[static_cast<std::size_t>(wg.die)];
  const double sent_ns = std::max(free_at, now);
  free_at = sent_ns + run_.machine.gpu.workgroup_dispatch_ns;
  last_sent_.push_back(id);
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

void Dispatch::end_workgroup(std::uint32_t id, double now) {
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
  if (!of_gpu(kernel.rank).running.empty()) {
    // Successors in the freed slot continue this workgroup's path.
    dispatch(kernel.rank, die, now);
    for (const std::uint32_t successor : last_sent_) run_.workgroups[successor].path = path;
  }
}

}  // namespace tritax::engine
