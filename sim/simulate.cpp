#include "sim/simulate.hpp"

#include "model/schedule/relax.hpp"
#include "sim/engine.hpp"

namespace tritax {

SimulationResult simulate(const Schedule& schedule, const Machine& machine,
                          const SimulationOptions& options) {
  if (options.counterfactual.dependences_for_barriers) {
    const Schedule relaxed = with_tile_dependences(schedule);
    SimulationOptions rest = options;
    rest.counterfactual.dependences_for_barriers = false;
    return Engine(relaxed, machine, rest).run();
  }
  return Engine(schedule, machine, options).run();
}

Taxes account_taxes(const Schedule& schedule, const Machine& machine, const SimulationOptions& options) {
  const auto makespan_without = [&](const Counterfactual& change) {
    SimulationOptions changed = options;
    changed.counterfactual = change;
    changed.observer = nullptr;
    changed.give_up_after_ns = 0;
    return simulate(schedule, machine, changed).makespan_ns;
  };
  const SimulationResult run = simulate(schedule, machine, options);
  Taxes taxes;
  taxes.account = run.account;
  taxes.makespan_ns = run.makespan_ns;
  taxes.launch_ns = run.makespan_ns - makespan_without({.free_launches = true});
  taxes.bulk_synchronous_ns = run.makespan_ns - makespan_without({.dependences_for_barriers = true});
  taxes.locality_ns = run.makespan_ns - makespan_without({.intermediates_on_chip = true});
  taxes.all_removed_ns = makespan_without({true, true, true});
  taxes.remainder_ns = (run.makespan_ns - taxes.all_removed_ns) -
                       (taxes.launch_ns + taxes.bulk_synchronous_ns + taxes.locality_ns);
  return taxes;
}

}  // namespace tritax
