#include "sim/simulate.hpp"

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "model/schedule/relax.hpp"
#include "sim/engine.hpp"

namespace tritax {

namespace {

// Does a stream or the host itself make one kernel of this program wait for another?
bool orders_kernels(const std::vector<HostOp>& program, const Schedule& schedule) {
  std::set<std::int32_t> streams;
  bool waited = false;
  const auto follows = [&](std::int32_t stream) { return !streams.insert(stream).second || waited; };
  for (const HostOp& op : program) {
    if (op.kind == HostOpKind::launch) {
      if (follows(op.stream)) return true;
    } else if (op.kind == HostOpKind::graph_launch) {
      for (const GraphNode& node : schedule.graphs[static_cast<std::size_t>(op.graph)]) {
        if (follows(node.stream)) return true;
      }
    } else {
      waited = waited || !streams.empty();
    }
  }
  return false;
}

// A schedule that loses its boundaries, and nothing else that would come with it. Kernels that run side by
// side compete for compute units, and the dispatcher crowds the one that is free first with workgroups that
// have to wait and then share its rate to the end. So every workgroup runs where it runs with the boundaries,
// and a compute unit takes its workgroups in the same order.
class WithoutBoundaries {
 public:
  WithoutBoundaries(const Schedule& schedule, const Machine& machine)
      : schedule_(schedule), relaxed_(with_tile_dependences(schedule)), machine_(machine) {}

  SimulationResult run(SimulationOptions options) const {
    options.counterfactual.dependences_for_barriers = false;
    return Engine(relaxed_, machine_, options, places(options)).run();
  }

 private:
  // With the other changes of `options`; none where kernels meet no others than they do with boundaries.
  std::vector<Placed> places(SimulationOptions options) const {
    if (std::none_of(schedule_.host.begin(), schedule_.host.end(),
                     [&](const auto& program) { return orders_kernels(program, schedule_); })) {
      return {};
    }
    options.observer = nullptr;
    options.give_up_after_ns = 0;
    Engine engine(schedule_, machine_, options);
    engine.run();
    std::vector<std::uint32_t> launch_of(schedule_.kernels.size());
    const std::vector<std::uint32_t> launched = kernels_by_launch(schedule_);
    for (std::uint32_t i = 0; i < launched.size(); ++i) launch_of[launched[i]] = i;
    std::vector<Placed> places = engine.places();
    for (Placed& place : places) place.kernel = launch_of[place.kernel];
    return places;
  }

  const Schedule& schedule_;
  Schedule relaxed_;
  const Machine& machine_;
};

SimulationOptions with(SimulationOptions options, const Counterfactual& change) {
  options.counterfactual = change;
  options.observer = nullptr;
  options.give_up_after_ns = 0;
  return options;
}

}  // namespace

SimulationResult simulate(const Schedule& schedule, const Machine& machine,
                          const SimulationOptions& options) {
  if (options.counterfactual.dependences_for_barriers) {
    return WithoutBoundaries(schedule, machine).run(options);
  }
  return Engine(schedule, machine, options).run();
}

void simulate_in_order(const Schedule& schedule, const Machine& machine, const SimulationOptions& options,
                       CounterfactualMakespans& makespans) {
  const auto makespan_ns = [&](const Counterfactual& change) {
    return simulate(schedule, machine, with(options, change)).makespan_ns;
  };
  makespans.free_launches_ns = makespan_ns({.free_launches = true});
  makespans.intermediates_on_chip_ns = makespan_ns({.intermediates_on_chip = true});
}

void simulate_by_dependences(const Schedule& schedule, const Machine& machine,
                             const SimulationOptions& options, CounterfactualMakespans& makespans) {
  const WithoutBoundaries relaxed(schedule, machine);
  makespans.dependences_for_barriers_ns = relaxed.run(with(options, {})).makespan_ns;
  makespans.all_ns =
      relaxed.run(with(options, {.free_launches = true, .intermediates_on_chip = true})).makespan_ns;
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
