// Preparation of an engine before the run.
#include "model/core/error.hpp"
#include "model/schedule/items.hpp"
#include "model/schedule/op_traits.hpp"
#include "sim/engine.hpp"

namespace tritax::engine {

Engine::Engine(const Schedule& schedule, const Machine& machine, const SimulationOptions& options,
               std::span<const Placed> places, const Alike& alike)
    : run_(schedule, machine, options, alike),
      luck_(run_),
      lock_step_(run_, luck_),
      write_back_(run_),
      resources_(run_),
      dispatch_(run_, places),
      crowds_(run_, resources_),
      tiles_(run_),
      classes_(run_.fluid),
      traffic_(run_, resources_, crowds_, tiles_, write_back_, classes_),
      clock_(run_),
      matmul_classes_(run_, resources_, traffic_, write_back_, clock_, classes_),
      attention_(run_, luck_),
      operands_(run_, write_back_, resources_),
      counters_(run_, clock_, traffic_),
      copies_(run_, traffic_, tiles_, counters_),
      streams_(run_, copies_),
      hosts_(run_, streams_, copies_),
      flags_(run_),
      queues_(run_, flags_),
      outlook_(run_, {luck_, lock_step_, flags_, streams_, hosts_, clock_}),
      sparse_products_(run_, resources_, classes_, outlook_, counters_),
      held_loads_(run_),
      transfers_(run_, {luck_, lock_step_, traffic_, tiles_, crowds_, held_loads_, outlook_, counters_}),
      sender_(run_, flags_, transfers_, held_loads_),
      matmuls_(run_, {lock_step_, clock_, matmul_classes_, operands_, attention_, held_loads_, outlook_,
                      counters_}) {
  index_programs();
  write_back_.find_what_stays();
  if (run_.options.give_up_after_ns > 0) outlook_.index();
  for (std::int32_t rank = 0; rank < run_.simulated_ranks; ++rank) find_clock(rank);
}

void Engine::limit_clocks(std::span<const double> most_ghz) {
  TRITAX_ASSERT(most_ghz.size() == static_cast<std::size_t>(run_.schedule.ranks), "a clock for every GPU");
  for (std::int32_t rank = 0; rank < run_.simulated_ranks; ++rank) {
    run_.gpus[static_cast<std::size_t>(rank)].power.most_ghz = most_ghz[static_cast<std::size_t>(rank)];
    find_clock(rank);
  }
}

// The clock of a GPU before its first matmul.
void Engine::find_clock(std::int32_t rank) {
  clock_.find_factors(run_.gpus[static_cast<std::size_t>(rank)]);
  matmul_classes_.follow_clock(rank);
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

}  // namespace tritax::engine
