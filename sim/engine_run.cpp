#include "sim/engine_run.hpp"

#include <algorithm>

#include "model/schedule/op_traits.hpp"
#include "model/schedule/operations.hpp"
#include "model/schedule/relax.hpp"

namespace tritax::engine {

namespace {
std::int32_t free_flag_of(const Schedule& schedule) {
  if (schedule.flags.empty() || schedule.flags.back().name != kTileDependences) return -2;
  return static_cast<std::int32_t>(schedule.flags.size()) - 1;
}

std::size_t most_together_of(const Schedule& schedule) {
  std::size_t most = 1, together = 1;
  for (const Op& op : schedule.ops) {
    together = op.with_previous ? together + 1 : 1;
    most = std::max(most, together);
  }
  return most;
}
}  // namespace

Run::Run(const Schedule& of_schedule, const Machine& on_machine, const SimulationOptions& with_options,
         const Alike& with_alike)
    : schedule(of_schedule),
      machine(on_machine),
      costs(machine),
      profiles(profiles_of(schedule)),
      options(with_options),
      alike(with_alike),
      simulated_ranks(alike.simulated_ranks > 0 ? alike.simulated_ranks : schedule.ranks),
      alike_of_node(std::max(1, std::min(schedule.ranks, machine.gpus_per_node) / simulated_ranks)),
      topology(build_topology(machine, schedule.ranks)),
      moves(schedule, machine, costs, topology),
      free_flag(free_flag_of(schedule)),
      has_items(std::any_of(schedule.kernels.begin(), schedule.kernels.end(),
                            [](const Kernel& kernel) { return !kernel.items.empty(); })),
      posts_copies(
          std::any_of(schedule.ops.begin(), schedule.ops.end(), [](const Op& op) { return op.by_engine; })),
      most_together(most_together_of(schedule)),
      traffic(simulated_ranks, machine.gpu.xcds, schedule.buffers.size()) {}

GpuState::GpuState(const Gpu& gpu)
    : dispatcher(gpu),
      llc(gpu.llc_bytes, gpu.hbm_gb_per_s),
      // A single die may take the whole bandwidth behind the L2s.
      l2(static_cast<std::size_t>(gpu.xcds),
         ReuseCache(gpu.l2_bytes, gpu.llc_bytes > 0 ? gpu.llc_gb_per_s : gpu.hbm_gb_per_s)),
      atomic_pollers(static_cast<std::size_t>(gpu.xcds), 0),
      cus(static_cast<std::size_t>(gpu.cu_count())) {}

void Run::start_over(WorkgroupState& wg, std::uint32_t k, std::uint32_t number) const {
  const Kernel& kernel = schedule.kernels[k];
  static_cast<WorkgroupHead&>(wg) = {};
  wg.kernel = k;
  wg.number = number;
  wg.id = kernels[k].first_workgroup + number;
  wg.rank = static_cast<std::int16_t>(kernel.rank);
  wg.profile = kernel.profile;
  wg.has_sender = kernels[k].has_sender;
  wg.pc = kernel.workgroups[wg.number].first_op;
  wg.end = wg.pc + kernel.workgroups[wg.number].op_count;
}

WorkgroupState Run::at_start(std::uint32_t k, std::uint32_t number) const {
  WorkgroupState wg;
  start_over(wg, k, number);
  return wg;
}

std::uint32_t Run::begin_of_program(const WorkgroupState& wg, std::uint32_t op) const {
  const Kernel& kernel = schedule.kernels[wg.kernel];
  const Workgroup& own = kernel.workgroups[wg.number];
  if (op - own.first_op < own.op_count) return own.first_op;
  return kernel.items[static_cast<std::size_t>(item_of(kernel, op))].first_op;
}

// Whether an operation is a lone copy: it reads own memory, and no copy is right before it that it could
// overlap.
bool Run::is_lone_copy(const WorkgroupState& wg, std::uint32_t op_index, const DataMove& move) const {
  if (!move.copies_own()) return false;
  const std::uint32_t first = begin_of_program(wg, op_index);
  const auto stands_for_order = [&](const Op& op) {
    return (op.kind == OpKind::signal || op.kind == OpKind::wait) && is_free(op);
  };
  std::uint32_t before = op_index;
  while (before > first && stands_for_order(schedule.ops[before - 1])) --before;
  return before == first || schedule.ops[before - 1].kind != OpKind::copy;
}

// Whether an operation continues the search of the load right before it.
bool Run::is_next_probe(const WorkgroupState& wg, std::uint32_t op_index) const {
  const Op& op = schedule.ops[op_index];
  if (op.kind != OpKind::load || op_index == begin_of_program(wg, op_index)) return false;
  return goes_on_search(schedule.ops[op_index - 1], op);
}

OpPlace Run::place_of(const WorkgroupState& wg, std::uint32_t op) const {
  const Workgroup& workgroup = schedule.kernels[wg.kernel].workgroups[wg.number];
  return {wg.kernel, wg.number, op - workgroup.first_op, wg.rank, wg.cu};
}

}  // namespace tritax::engine
