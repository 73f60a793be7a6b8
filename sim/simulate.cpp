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

namespace {

double makespan_with(const Schedule& schedule, const Machine& machine, SimulationOptions options,
                     const Counterfactual& change) {
  options.counterfactual = change;
  options.observer = nullptr;
  options.give_up_after_ns = 0;
  return simulate(schedule, machine, options).makespan_ns;
}

}  // namespace

void simulate_in_order(const Schedule& schedule, const Machine& machine, const SimulationOptions& options,
                       CounterfactualMakespans& makespans) {
  makespans.free_launches_ns = makespan_with(schedule, machine, options, {.free_launches = true});
  makespans.intermediates_on_chip_ns =
      makespan_with(schedule, machine, options, {.intermediates_on_chip = true});
}

void simulate_by_dependences(const Schedule& schedule, const Machine& machine,
                             const SimulationOptions& options, CounterfactualMakespans& makespans) {
  const Schedule relaxed = with_tile_dependences(schedule);
  makespans.dependences_for_barriers_ns = makespan_with(relaxed, machine, options, {});
  makespans.all_ns =
      makespan_with(relaxed, machine, options, {.free_launches = true, .intermediates_on_chip = true});
}

Taxes taxes_of(const SimulationResult& run, const CounterfactualMakespans& makespans) {
  Taxes taxes;
  taxes.account = run.account;
  taxes.makespan_ns = run.makespan_ns;
  taxes.launch_ns = run.makespan_ns - makespans.free_launches_ns;
  taxes.bulk_synchronous_ns = run.makespan_ns - makespans.dependences_for_barriers_ns;
  taxes.locality_ns = run.makespan_ns - makespans.intermediates_on_chip_ns;
  taxes.all_removed_ns = makespans.all_ns;
  taxes.remainder_ns = (run.makespan_ns - taxes.all_removed_ns) -
                       (taxes.launch_ns + taxes.bulk_synchronous_ns + taxes.locality_ns);
  return taxes;
}

Taxes account_taxes(const Schedule& schedule, const Machine& machine, const SimulationOptions& options) {
  CounterfactualMakespans makespans;
  simulate_in_order(schedule, machine, options, makespans);
  simulate_by_dependences(schedule, machine, options, makespans);
  return taxes_of(simulate(schedule, machine, options), makespans);
}

}  // namespace tritax
