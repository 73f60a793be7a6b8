// Preparation of an engine before the run: resources, and tables of the schedule.
#include <fmt/format.h>

#include <algorithm>

#include "model/core/error.hpp"
#include "model/cost/attend_cost.hpp"
#include "model/cost/kernel_rates.hpp"
#include "model/cost/matmul_power.hpp"
#include "model/schedule/items.hpp"
#include "model/schedule/op_traits.hpp"
#include "model/schedule/relax.hpp"
#include "sim/engine.hpp"

namespace tritax::engine {

namespace {
std::size_t workgroups_of(const Schedule& schedule) {
  std::size_t workgroups = 0;
  for (const Kernel& kernel : schedule.kernels) workgroups += kernel.workgroups.size();
  return workgroups;
}
}  // namespace

Engine::Engine(const Schedule& schedule, const Machine& machine, const SimulationOptions& options,
               std::span<const Placed> places, const Alike& alike)
    : run_(schedule, machine, options, alike),
      luck_(run_),
      lock_step_(run_, luck_),
      write_back_(run_),
      resources_(run_, machine.gpu.dirty_share * write_back_.cache_bytes()),
      crowds_(run_, resources_),
      tiles_(run_),
      classes_(run_.fluid),
      traffic_(run_, resources_, crowds_, tiles_, write_back_, classes_),
      counters_(run_, clock_, traffic_),
      copies_(run_, traffic_, tiles_, counters_),
      streams_(run_, copies_),
      hosts_(run_, streams_, copies_),
      matmul_classes_(run_, resources_, write_back_, clock_, classes_),
      clock_(run_),
      attention_(run_, luck_),
      operands_(run_, write_back_),
      sparse_costs_(schedule, machine.gpu),
      placed_(!places.empty()) {
  find_busy_copies();
  index_schedule();
  find_cold_code();
  index_places(places);
  for (GpuState& gpu : run_.gpus) {
    clock_.find_factors(gpu);
    matmul_classes_.follow_clock(gpu);
  }
}

void Engine::limit_clocks(std::span<const double> most_ghz) {
  TRITAX_ASSERT(most_ghz.size() == static_cast<std::size_t>(run_.schedule.ranks), "a clock for every GPU");
  for (std::size_t rank = 0; rank < run_.gpus.size(); ++rank) {
    run_.gpus[rank].power.most_ghz = most_ghz[rank];
    clock_.find_factors(run_.gpus[rank]);
    matmul_classes_.follow_clock(run_.gpus[rank]);
  }
}

void Engine::index_schedule() {
  const std::size_t ranks = static_cast<std::size_t>(run_.simulated_ranks);
  // Flags: one dense table.
  std::uint32_t flags = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    for (const FlagArray& array : run_.schedule.flags) {
      flag_base_.push_back(flags);
      flags += static_cast<std::uint32_t>(array.count);
    }
  }
  flags_.resize(flags);
  run_.kernels.resize(run_.schedule.kernels.size());
  std::uint32_t first_workgroup = 0;
  run_.workgroups.reserve(workgroups_of(run_.schedule));
  run_.senders.reserve(workgroups_of(run_.schedule));
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
  index_programs();
  write_back_.find_what_stays();
  if (run_.options.give_up_after_ns > 0) index_outlook();
}

// Kernels of one profile with matrix tiles of one kind are one program, kernels without tiles are another. A
// GPU runs its kernels repeatedly, so the first kernel follows the last one.
void Engine::find_cold_code() {
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

// Visits the operations of all kernels once.
void Engine::index_programs() {
  OperandIndex operands(run_, operands_, attention_);
  for (std::uint32_t k = 0; k < run_.schedule.kernels.size(); ++k) {
    const Kernel& kernel = run_.schedule.kernels[k];
    operands.begin_kernel(k);
    for (std::size_t p = 0; p < program_count(kernel); ++p) {
      const Workgroup& wg = program_of(kernel, p);
      operands.begin_program();
      for (std::uint32_t o = wg.first_op; o < wg.first_op + wg.op_count; ++o) {
        const Op& op = run_.schedule.ops[o];
        operands.see(op, o);
        if (!multiplies(op.kind)) tiles_.see(op, kernel.rank);
      }
    }
  }
  operands.finish();
  tiles_.finish();
}

void Engine::index_places(std::span<const Placed> places) {
  if (!placed_) return;
  TRITAX_ASSERT(places.size() == workgroups_of(run_.schedule), "every workgroup has one place");
  for (GpuState& gpu : run_.gpus)
    gpu.place_queues.resize(static_cast<std::size_t>(run_.machine.gpu.cu_count()));
  for (const Placed& place : places) {
    GpuState& gpu = run_.gpus[run_.schedule.kernels[place.kernel].rank];
    gpu.place_queues[static_cast<std::size_t>(place.cu)].workgroups.push_back(place);
  }
}

// Workgroups go round robin over the dies that have compute units for the kernel.
void Engine::number_workgroups_of_dies(const Kernel& kernel, KernelState& state) const {
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

}  // namespace tritax::engine
