#include "sim/engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <tuple>

#include "model/core/error.hpp"
#include "model/cost/matmul_power.hpp"
#include "model/cost/vendor_machine.hpp"
#include "model/schedule/relax.hpp"

namespace tritax {

namespace {
std::size_t workgroups_of(const Schedule& schedule) {
  std::size_t workgroups = 0;
  for (const Kernel& kernel : schedule.kernels) workgroups += kernel.workgroups.size();
  return workgroups;
}
}  // namespace

EngineState::TileGrid EngineState::grid_of(const Buffer& buffer) {
  TileGrid grid;
  grid.tile_rows = std::max(1, buffer.tile_rows);
  grid.tile_cols = std::max(1, buffer.tile_cols);
  grid.rows = (buffer.rows + grid.tile_rows - 1) / grid.tile_rows;
  grid.columns = (buffer.cols + grid.tile_cols - 1) / grid.tile_cols;
  return grid;
}

Engine::Engine(const Schedule& schedule, const Machine& machine, const SimulationOptions& options,
               std::span<const Placed> places)
    : schedule_(schedule),
      machine_(schedule.vendor ? vendor_machine_.emplace(vendor_machine(machine)) : machine),
      options_(options),
      host_costs_(machine_.host),
      topology_(build_topology(machine, schedule.ranks)),
      service_weights_(machine.fabric.arbitration_spread),
      crowding_(schedule.vendor ? 0 : machine.fabric.store_idle_share),
      placed_(!places.empty()) {
  if (options_.counterfactual.free_launches) {
    host_costs_ = {};
    host_costs_.barrier_ns = machine.host.barrier_ns;
    host_costs_.launch_turn_ns = machine.host.launch_turn_ns;  // see turn_to_launch()
  }
  add_resources();
  index_schedule();
  find_cold_code();
  index_places(places);
  for (GpuState& gpu : gpus_) find_clock_factors(gpu);
}

EngineState::GpuState::GpuState(const Gpu& gpu)
    : dispatcher(gpu),
      llc(gpu.llc_bytes, gpu.hbm_gb_per_s),
      // Any one die may take all that is behind the L2s.
      l2(static_cast<std::size_t>(gpu.xcds),
         ReuseCache(gpu.l2_bytes, gpu.llc_bytes > 0 ? gpu.llc_gb_per_s : gpu.hbm_gb_per_s)),
      atomic_pollers(static_cast<std::size_t>(gpu.xcds), 0),
      dispatch_free_ns(static_cast<std::size_t>(gpu.xcds), 0.0),
      matmul_workgroups(static_cast<std::size_t>(gpu.cu_count()), 0),
      data_workgroups(matmul_workgroups),
      matmuls_on_cu(matmul_workgroups),
      occupied_since_ns(static_cast<std::size_t>(gpu.cu_count()), 0.0) {}

void Engine::add_resources() {
  const Gpu& gpu = machine_.gpu;
  const Fabric& fabric = machine_.fabric;
  const auto wire = [&](double capacity) { return fluid_.add_resource(capacity, true); };
  const auto memory = [&](double capacity) { return fluid_.add_resource(capacity); };
  // A port that its links cannot fill limits nothing.
  const auto port = [&](double capacity, double links_gb_per_s) {
    return links_gb_per_s > capacity ? wire(capacity) : FluidNetwork::kNone;
  };
  const auto raw_sum = [&](auto edges) {
    double sum = 0;
    for (auto [edge, end] = edges; edge != end; ++edge) sum += topology_.graph[*edge].raw_gb_per_s;
    return sum;
  };
  const StorePorts ports = store_ports(machine_, schedule_.ranks);
  const double stored = std::max(fabric.store_efficiency, fabric.atomic_efficiency);
  for (const TopologyEdge& edge : topology_.edges) link_resource_.push_back(wire(edge.raw_gb_per_s));
  link_bytes_.assign(topology_.edges.size(), 0.0);
  copies_on_link_.assign(topology_.edges.size(), 0);
  for (std::int32_t rank = 0; rank < schedule_.ranks; ++rank) {
    GpuState state(gpu);
    state.dirty_bytes = std::min(options_.written_before_bytes, gpu.dirty_share * cache_bytes());
    state.hbm = memory(gpu.hbm_gb_per_s);
    state.llc_port = gpu.llc_bytes > 0 ? memory(gpu.llc_gb_per_s) : FluidNetwork::kNone;
    if (gpu.atomic_gb_per_s > 0) state.atomic_units = memory(gpu.atomic_gb_per_s);
    for (int die = 0; die < gpu.xcds; ++die) state.l2_port.push_back(memory(gpu.l2_gb_per_s));
    const auto vertex = static_cast<std::size_t>(rank);
    const double out = raw_sum(boost::out_edges(vertex, topology_.graph));
    const double in = raw_sum(boost::in_edges(vertex, topology_.graph));
    state.store_egress = port(ports.egress_gb_per_s, out * stored);
    state.store_ingress = port(ports.ingress_gb_per_s, in * stored);
    state.load_ingress = port(fabric.load_ingress_gb_per_s, in * fabric.load_efficiency);
    state.load_egress = port(fabric.load_egress_gb_per_s, out * fabric.load_efficiency);
    gpus_.push_back(std::move(state));
  }
}

void Engine::index_schedule() {
  const std::size_t ranks = static_cast<std::size_t>(schedule_.ranks);
  // Flags: one dense table.
  std::uint32_t flags = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    for (const FlagArray& array : schedule_.flags) {
      flag_base_.push_back(flags);
      flags += static_cast<std::uint32_t>(array.count);
    }
  }
  flags_.resize(flags);
  if (!schedule_.flags.empty() && schedule_.flags.back().name == kTileDependences) {
    free_flag_ = static_cast<std::int32_t>(schedule_.flags.size()) - 1;
  }
  if (free_flag_ >= 0) {
    std::uint32_t added = 0;
    for (const Op& op : schedule_.ops) {
      added_before_.push_back(added);
      added += (op.kind == OpKind::signal || op.kind == OpKind::wait) && is_free(op);
    }
  }
  records_.resize(ranks * schedule_.buffers.size());
  for (const Buffer& buffer : schedule_.buffers) tile_grid_.push_back(grid_of(buffer));
  is_read_.assign(schedule_.buffers.size(), 0);

  hosts_.resize(ranks);
  launches_free_ns_.assign(static_cast<std::size_t>((schedule_.ranks - 1) / machine_.gpus_per_node + 1), 0.0);
  kernels_.resize(schedule_.kernels.size());
  SlabIds slab_ids;
  inputs_of_op_.resize(schedule_.ops.size());
  std::uint32_t first_workgroup = 0;
  workgroups_.reserve(workgroups_of(schedule_));
  senders_.reserve(workgroups_of(schedule_));
  sent_.reserve(workgroups_of(schedule_));
  for (std::uint32_t k = 0; k < schedule_.kernels.size(); ++k) {
    const Kernel& kernel = schedule_.kernels[k];
    KernelState& state = kernels_[k];
    state.first_workgroup = first_workgroup;
    first_workgroup += static_cast<std::uint32_t>(kernel.workgroups.size());
    state.remaining = static_cast<std::uint32_t>(kernel.workgroups.size());
    state.to_send = state.remaining;
    number_workgroups_of_dies(kernel, state);
    index_reads(k, slab_ids);
    if (kernel.workgroups.empty()) continue;
    state.demand = gpus_[0].dispatcher.demand_of(kernel);
    if (!gpus_[0].dispatcher.fits(state.demand)) {
      throw UserError(
          fmt::format("kernel '{}' rank {}: a workgroup of {} threads x {} registers and {} bytes of LDS "
                      "does not fit a compute "
                      "unit of {}",
                      kernel.name, kernel.rank, kernel.resources.threads,
                      kernel.resources.registers_per_thread, kernel.resources.lds_bytes, machine_.gpu.name));
    }
  }
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    std::int32_t streams = 1;
    for (const HostOp& op : schedule_.host[rank]) streams = std::max(streams, op.stream + 1);
    for (const Graph& graph : schedule_.graphs) {
      for (const GraphNode& node : graph) streams = std::max(streams, node.stream + 1);
    }
    hosts_[rank].streams.resize(static_cast<std::size_t>(streams));
    queue_.push(0, {EventKind::host_step, static_cast<std::uint32_t>(rank)});
  }
  find_what_stays();
  if (options_.give_up_after_ns > 0) index_outlook();
}

void Engine::index_places(std::span<const Placed> places) {
  if (!placed_) return;
  TRITAX_ASSERT(places.size() == workgroups_of(schedule_), "every workgroup has one place");
  for (GpuState& gpu : gpus_) gpu.place_queues.resize(static_cast<std::size_t>(machine_.gpu.cu_count()));
  for (const Placed& place : places) {
    GpuState& gpu = gpus_[schedule_.kernels[place.kernel].rank];
    gpu.place_queues[static_cast<std::size_t>(place.cu)].workgroups.push_back(place);
  }
}

void Engine::start_over(WorkgroupState& wg, std::uint32_t k, std::uint32_t number) const {
  const Kernel& kernel = schedule_.kernels[k];
  std::construct_at(&wg);
  wg.kernel = k;
  wg.number = number;
  wg.id = kernels_[k].first_workgroup + number;
  wg.rank = static_cast<std::int16_t>(kernel.rank);
  wg.has_sender = machine_.gpu.async_tile_store && kernel.tile.m > 0;
  wg.pc = kernel.workgroups[wg.number].first_op;
  wg.end = wg.pc + kernel.workgroups[wg.number].op_count;
}

Engine::WorkgroupState Engine::at_start(std::uint32_t k, std::uint32_t number) const {
  WorkgroupState wg;
  start_over(wg, k, number);
  return wg;
}

// What the operations of a kernel read, and which of its matmuls cost the same.
void Engine::index_reads(std::uint32_t k, SlabIds& slab_ids) {
  const Kernel& kernel = schedule_.kernels[k];
  using ShapeKey = std::tuple<std::int32_t, std::int32_t, std::int32_t>;
  std::map<ShapeKey, std::uint32_t> shape_ids;
  ShapeKey last_key;  // most kernels have one
  std::uint32_t last_shape = 0;
  const auto slab = [&](std::int32_t buffer, std::int32_t origin, std::int32_t size, const Op& op) {
    const auto id = static_cast<std::uint32_t>(slab_ids.size());
    const SlabKey key{static_cast<std::uint64_t>(buffer) << 32 | static_cast<std::uint32_t>(origin),
                      static_cast<std::uint64_t>(op.k_begin) << 32 | static_cast<std::uint32_t>(op.k_end),
                      size};
    return slab_ids.emplace(key, id).first->second;
  };
  for (const Workgroup& wg : kernel.workgroups) {
    for (std::uint32_t o = wg.first_op; o < wg.first_op + wg.op_count; ++o) {
      const Op& op = schedule_.ops[o];
      if (op.kind == OpKind::load || op.kind == OpKind::reduce) {
        is_read_[static_cast<std::size_t>(op.buffer)] = 1;
      } else if (op.kind == OpKind::copy) {
        is_read_[static_cast<std::size_t>(op.src_buffer)] = 1;
      }
      if (op.kind != OpKind::matmul) continue;
      MatmulInputs& inputs = inputs_of_op_[o];
      inputs.a_slab = slab(op.src_buffer, op.rect.row, op.rect.rows, op);
      inputs.b_slab = slab(op.b_buffer, op.rect.col, op.rect.cols, op);
      const auto key = std::make_tuple(op.rect.rows, op.rect.cols, op.k_end - op.k_begin);
      if (key != last_key) {
        last_key = key;
        const auto [entry, added] = shape_ids.emplace(key, static_cast<std::uint32_t>(shapes_.size()));
        last_shape = entry->second;
        if (added) shapes_.push_back(shape_of(k, op));
        TRITAX_ASSERT(shapes_.size() >> (32 - kMissBits) == 0, "keys of classes have room for all shapes");
      }
      inputs.shape = last_shape;
    }
  }
}

Engine::MatmulShape Engine::shape_of(std::uint32_t k, const Op& op) const {
  const Kernel& kernel = schedule_.kernels[k];
  MatmulShape shape{.kernel = k, .rows = op.rect.rows, .cols = op.rect.cols, .k = op.k_end - op.k_begin};
  shape.dtype = schedule_.buffers[static_cast<std::size_t>(op.src_buffer)].dtype;
  shape.cost = matmul_cost(machine_.gpu, shape.dtype, kernel.tile, shape.rows, shape.cols, shape.k);
  MatmulTile overlapped = kernel.tile;
  overlapped.pipeline = Pipeline::overlapped;
  const MatmulCost best = matmul_cost(machine_.gpu, shape.dtype, overlapped, shape.rows, shape.cols, shape.k);
  shape.shared_speedup = shape.cost.compute_ns / best.compute_ns;
  shape.cost.compute_ns /= kernel.matmul_share;
  const Gpu& gpu = machine_.gpu;
  const std::int32_t stages = operand_stages(gpu, shape.dtype, kernel.tile, kernel.resources.lds_bytes);
  const double steps = std::ceil(static_cast<double>(shape.k) / step_depth(gpu, shape.dtype, kernel.tile));
  shape.work = matmul_draw(gpu, shape.dtype, shape.cost);
  shape.fetched_ns =
      stages < steps ? shape.cost.compute_ns * stages / steps : std::numeric_limits<double>::infinity();
  shape.from_llc_ns = steps * stage_interval_ns(stages, gpu.llc_latency_ns);
  shape.from_memory_ns = steps * stage_interval_ns(stages, gpu.memory_stage_latency_ns());
  return shape;
}

// Workgroups go round robin over the dies that have compute units for the kernel.
void Engine::number_workgroups_of_dies(const Kernel& kernel, KernelState& state) const {
  const Gpu& gpu = machine_.gpu;
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

SimulationResult Engine::run() {
  double now = 0;
  for (;;) {
    // What nobody waits for any more must not keep the clock going.
    while (!queue_.empty() && is_stale(queue_.next())) queue_.pop();
    const double next = std::min(queue_.next_time_ns(), fluid_.next_completion_ns());
    if (next == std::numeric_limits<double>::infinity()) break;
    TRITAX_ASSERT(next >= now, "the clock went backwards");
    now = next;
    totals_.gave_up |= options_.give_up_after_ns > 0 && now > options_.give_up_after_ns;
    if (totals_.gave_up) break;
    const double same_ns = same_time_until(now);
    now = collect_ended(now, same_ns);
    for (const FluidNetwork::Completion& ended : ended_) completed(ended, now);
    while (queue_.next_time_ns() <= same_ns) {
      now = collect_due(now, same_ns);
      for (const auto& event : due_) handle(event.payload, now);
    }
    fluid_.settle(now);
    if (options_.link_counters && options_.observer) report_link_rates(now);
  }
  if (!totals_.gave_up) {
    for (const HostState& host : hosts_) {
      if (host.wait != HostWait::done) report_stall(now);
    }
    for (const KernelState& kernel : kernels_) {
      if (kernel.launched && kernel.remaining > 0) report_stall(now);
    }
  }
  return result(now);
}

// What ends up to `same_ns` ends at one time, that of the last, in the order of the workgroups.
double Engine::collect_ended(double now, double same_ns) {
  ended_.clear();
  while (fluid_.next_completion_ns() <= same_ns) {
    now = std::max(now, fluid_.next_completion_ns());
    const FluidNetwork::Completion completion = fluid_.complete(now);
    ended_.push_back(completion);
    if (fluid_.active(completion.class_id) > 0) {
      prefetch(workgroup_of(fluid_.next_token(completion.class_id)));
    }
  }
  if (ended_.size() > 1) {
    const auto rank = [&](const FluidNetwork::Completion& ended) {
      return token_of(workgroups_[workgroup_of(ended.token)].id, (ended.token & 1u) != 0);
    };
    std::sort(ended_.begin(), ended_.end(), [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  }
  return now;
}

// Likewise of what was to happen, in the order in which that was said.
double Engine::collect_due(double now, double same_ns) {
  due_.clear();
  while (queue_.next_time_ns() <= same_ns) due_.push_back(queue_.pop());
  if (!queue_.empty()) prefetch_of(queue_.next());
  now = std::max(now, due_.back().time_ns);
  if (due_.front().time_ns != due_.back().time_ns) {
    std::sort(due_.begin(), due_.end(), [](const auto& a, const auto& b) { return a.sequence < b.sequence; });
  }
  return now;
}

void Engine::report_link_rates(double now) {
  reported_rate_.resize(link_resource_.size(), 0.0);
  for (std::size_t edge = 0; edge < link_resource_.size(); ++edge) {
    const double rate = fluid_.load(link_resource_[edge]);
    if (rate == reported_rate_[edge]) continue;
    reported_rate_[edge] = rate;
    options_.observer->link_rate(static_cast<int>(edge), now, rate);
  }
}

void Engine::handle(const Event& event, double now) {
  ++totals_.events;
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
      host_step(static_cast<std::int32_t>(event.id), now);
      break;
  }
}

void Engine::start_kernel(std::uint32_t kernel, double now) {
  KernelState& state = kernels_[kernel];
  const std::int32_t rank = schedule_.kernels[kernel].rank;
  state.start.charge(&TimeAccount::launch_ns, now);
  if (first_start_ns_ < 0) first_start_ns_ = now;
  if (gpus_[rank].first_start_ns < 0) gpus_[rank].first_start_ns = now;
  if (options_.observer) options_.observer->kernel_started(kernel, now);
  if (state.remaining == 0) {
    state.end = state.start;
    finish_kernel(kernel, now);
    return;
  }
  gpus_[rank].running.push_back(kernel);
  for (int die = 0; die < machine_.gpu.xcds; ++die) dispatch(rank, die, now);
}

void Engine::dispatch(std::int32_t rank, std::int32_t die, double now) {
  GpuState& gpu = gpus_[rank];
  last_dispatched_.clear();
  if (placed_) {
    dispatch_by_place(rank, die, now);
  } else {
    for (const std::uint32_t k : gpu.running) {
      KernelState& state = kernels_[k];
      const Kernel& kernel = schedule_.kernels[k];
      std::uint32_t& next = state.next_of_die[static_cast<std::size_t>(die)];
      while (next < kernel.workgroups.size()) {
        const std::int32_t cu = gpu.dispatcher.place(die, state.demand);
        if (cu < 0) break;
        send({k, next, cu}, now);
        next += state.dies;
      }
    }
  }
  std::erase_if(gpu.running, [&](std::uint32_t k) { return kernels_[k].to_send == 0; });
}

// A compute unit each in turn, as the dispatcher fills them.
void Engine::dispatch_by_place(std::int32_t rank, std::int32_t die, double now) {
  GpuState& gpu = gpus_[rank];
  const std::int32_t first = die * machine_.gpu.cus_per_xcd;
  for (bool sent = true; sent;) {
    sent = false;
    for (std::int32_t cu = first; cu < first + machine_.gpu.cus_per_xcd; ++cu) {
      PlaceQueue& queue = gpu.place_queues[static_cast<std::size_t>(cu)];
      if (queue.head == queue.workgroups.size()) continue;
      const Placed& placed = queue.workgroups[queue.head];
      const auto kernel = std::find(gpu.running.begin(), gpu.running.end(), placed.kernel);
      const bool started = kernel != gpu.running.end();
      if (!started || !gpu.dispatcher.has_room(cu, kernels_[placed.kernel].demand)) continue;
      send(placed, now);
      ++queue.head;
      sent = true;
    }
  }
}

std::uint32_t Engine::take_place(std::uint32_t kernel, std::uint32_t number) {
  auto id = static_cast<std::uint32_t>(workgroups_.size());
  if (free_places_.empty()) {
    workgroups_.emplace_back();
    senders_.emplace_back();
  } else {
    id = free_places_.back();
    free_places_.pop_back();
  }
  start_over(workgroups_[id], kernel, number);
  if (workgroups_[id].has_sender || machine_.fabric.signal_round_trip_ns > 0) {
    senders_[id] = {.pc = workgroups_[id].pc, .path = {}};
  }
  return id;
}

void Engine::send(const Placed& placed, double now) {
  const std::int32_t cu = placed.cu;
  const std::uint32_t id = take_place(placed.kernel, placed.workgroup);
  WorkgroupState& wg = workgroups_[id];
  const Kernel& kernel = schedule_.kernels[wg.kernel];
  KernelState& state = kernels_[wg.kernel];
  GpuState& gpu = gpus_[kernel.rank];
  if (gpu.dispatcher.resident(cu) == 0) gpu.occupied_since_ns[static_cast<std::size_t>(cu)] = now;
  gpu.dispatcher.take(cu, state.demand);
  ++(kernel.tile.m > 0 ? gpu.matmul_workgroups : gpu.data_workgroups)[cu];
  // What it does first is in no cache either.
  __builtin_prefetch(schedule_.ops.data() + wg.pc);
  __builtin_prefetch(inputs_of_op_.data() + wg.pc);
  wg.cu = cu;
  wg.die = static_cast<std::int16_t>(gpu.dispatcher.die_of(cu));
  wg.path = state.start;
  --state.to_send;
  double& free_at = gpu.dispatch_free_ns[static_cast<std::size_t>(wg.die)];
  free_at = std::max(free_at, now) + machine_.gpu.workgroup_dispatch_ns;
  last_dispatched_.push_back(id);
  sent_.push_back(placed);
  // What starts with the kernel finds its code and its operations in no cache.
  double start = 0;
  if (!later(now, state.start.time_ns)) {
    if (!options_.warm)
      start += machine_.gpu.cold_start_ns + (state.code_is_cold ? machine_.gpu.cold_code_ns : 0);
    if (!options_.counterfactual.free_launches) start += kernel.start_ns;
  }
  if (kernel.tile.m > 0 && !options_.counterfactual.free_launches) start += machine_.gpu.matmul_start_ns;
  queue_.push(free_at + start, {EventKind::start_workgroup, id});
}

void Engine::start_workgroup(std::uint32_t wg, double now) {
  workgroups_[wg].path.charge(&TimeAccount::launch_ns, now);
  step(wg, now);
}

void Engine::finish_workgroup(std::uint32_t id, double now) {
  WorkgroupState& wg = workgroups_[id];
  const std::uint32_t k = wg.kernel;
  const std::int32_t cu = wg.cu;
  const std::int32_t die = wg.die;
  const Path path = wg.path;
  wg.kernel = kNobody;
  free_places_.push_back(id);
  const Kernel& kernel = schedule_.kernels[k];
  KernelState& state = kernels_[k];
  GpuState& gpu = gpus_[kernel.rank];
  gpu.dispatcher.release(cu, state.demand);
  if (gpu.dispatcher.resident(cu) == 0) {
    gpu.cu_busy_ns += now - gpu.occupied_since_ns[static_cast<std::size_t>(cu)];
  }
  --(kernel.tile.m > 0 ? gpu.matmul_workgroups : gpu.data_workgroups)[cu];
  TRITAX_ASSERT(state.remaining > 0, "a kernel finished more workgroups than it has");
  if (!later(state.end.time_ns, path.time_ns)) state.end = path;
  --state.remaining;
  if (!gpu.running.empty()) {
    // Successors in the freed slot continue this workgroup's path.
    dispatch(kernel.rank, die, now);
    for (const std::uint32_t successor : last_dispatched_) workgroups_[successor].path = path;
  }
  if (state.remaining == 0) finish_kernel(k, now);
}

void Engine::finish_kernel(std::uint32_t kernel, double now) {
  KernelState& state = kernels_[kernel];
  const std::int32_t rank = schedule_.kernels[kernel].rank;
  last_end_ns_ = std::max(last_end_ns_, now);
  gpus_[rank].last_end_ns = now;
  if (options_.observer) options_.observer->kernel_finished(kernel, now);
  StreamState& stream = hosts_[rank].streams[static_cast<std::size_t>(state.stream)];
  stream.busy = false;
  stream.last_end = state.end;
  start_next_in_stream(rank, state.stream);
  stream_progressed(rank, now);
}

OpPlace Engine::place_of(const WorkgroupState& wg, std::uint32_t op) const {
  const Workgroup& workgroup = schedule_.kernels[wg.kernel].workgroups[wg.number];
  return {wg.kernel, wg.number, op - workgroup.first_op, wg.rank, wg.cu};
}

}  // namespace tritax
