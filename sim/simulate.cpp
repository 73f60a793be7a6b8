#include "sim/simulate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "model/cost/matmul_power.hpp"
#include "model/machine/check_machine.hpp"
#include "model/schedule/relax.hpp"
#include "sim/engine.hpp"
#include "sim/symmetry.hpp"

namespace tritax {

SimulationOptions found_in_caches(const std::optional<double>& flush_bytes) {
  SimulationOptions options;
  options.written_before_bytes = flush_bytes.value_or(0);
  options.warm = flush_bytes == 0.0;
  return options;
}

namespace {

// Whether a stream or the host makes one kernel of this program wait for another.
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

// Runs an engine; after long load it runs twice. After long load the power limit holds in the mean over many
// runs, and the mean draw of a run depends on the clock that the limit allows.
class PowerLimited {
 public:
  PowerLimited(const Schedule& schedule, const Machine& machine, const SimulationOptions& options,
               std::span<const Placed> places, const Alike& alike)
      : schedule_(schedule), machine_(machine), options_(options), places_(places), alike_(alike) {}

  SimulationResult run() const {
    const double share = sustained_share();
    if (share >= 1) return Engine(schedule_, machine_, options_, places_, alike_).run();
    SimulationOptions quiet = options_;
    quiet.observer = nullptr;
    const SimulationResult unlimited = Engine(schedule_, machine_, quiet, places_, alike_).run();
    if (unlimited.gave_up) return unlimited;  // a run at lower clocks would give up, too
    std::vector<double> most_ghz;
    // Between two runs the caches are overwritten, while the matrix cores rest.
    const double writes = machine_.gpu.hbm_write_gb_per_s;
    const double between_ns =
        options_.written_before_bytes / (writes > 0 ? writes : machine_.gpu.hbm_gb_per_s);
    for (const RankResult& rank : unlimited.ranks) {
      most_ghz.push_back(sustained_ghz(rank, unlimited.makespan_ns + between_ns, share));
    }
    Engine engine(schedule_, machine_, options_, places_, alike_);
    engine.limit_clocks(most_ghz);
    return engine.run();
  }

 private:
  // The power allowed for long, as a share of the power allowed for a short time; 1 if the machine does not
  // give it.
  double sustained_share() const {
    double share = 1;
    if (!machine_.after_long_load || !machine_.gpu.knows_energies()) return share;
    for (const Op& op : schedule_.ops) {
      if (!multiplies(op.kind)) continue;
      const MatrixRate& rate =
          machine_.gpu.rate(schedule_.buffers[static_cast<std::size_t>(op.src_buffer)].dtype);
      if (rate.sustained_clock_ghz <= 0) continue;
      const double ratio = rate.sustained_clock_ghz / rate.load_clock_ghz;
      share = std::min(share, ratio * ratio * ratio);
    }
    return share;
  }

  // The clock f at which a run of `period_ns` draws `share` of the budget in the mean: g(f)/f · work /
  // period; 0 if the run draws no more without a limit. At a lower clock the matmuls take longer, and so does
  // the run.
  double sustained_ghz(const RankResult& rank, double period_ns, double share) const {
    constexpr int kSteps = 50;
    const double highest = rank.matrix_clock_ghz;
    const double allowed = share * power_budget(machine_.gpu);
    const auto drawn = [&](double ghz) { return draw_of_cycle(machine_.gpu, ghz) * rank.matrix_work; };
    if (drawn(highest) <= allowed * period_ns) return 0;  // the matrix cores rest enough
    double low = 0, high = highest;
    for (int i = 0; i < kSteps; ++i) {
      const double ghz = (low + high) / 2;
      const double longer_ns = rank.matrix_busy_ns * (highest / ghz - 1);
      (drawn(ghz) > allowed * (period_ns + longer_ns) ? high : low) = ghz;
    }
    return high;
  }

  const Schedule& schedule_;
  const Machine& machine_;
  const SimulationOptions& options_;
  std::span<const Placed> places_;
  const Alike& alike_;
};

// The schedule that an engine runs: the nodes or ranks that stand for all, or the whole schedule.
class MaybeFolded {
 public:
  MaybeFolded(const Schedule& whole, const Machine& machine, const SimulationOptions& options)
      : whole_(whole), same_luck_(options.same_luck) {
    const bool watched = options.observer != nullptr && !same_luck_;  // observers need all ranks
    if (options.symmetry == Symmetry::off || watched) return;
    if (options.symmetry == Symmetry::automatic && whole.ranks <= kMostRanksInFull) return;
    const Numbers numbers = same_luck_ ? Numbers::of_all : Numbers::none;
    if (options.symmetry == Symmetry::ranks) folded_ = fold_ranks(whole, machine, numbers);
    if (!folded_) folded_ = fold_nodes(whole, machine, numbers);
    if (folded_) alike_ = same_luck_ ? folded_->in_full() : folded_->once();
  }
  const Schedule& schedule() const { return folded_ && !same_luck_ ? folded_->schedule : whole_; }
  const Alike& alike() const { return alike_; }

 private:
  const Schedule& whole_;
  const bool same_luck_;
  std::optional<FoldedRun> folded_;
  Alike alike_;
};

// A schedule without its boundaries, and with no other change. Kernels that run side by side compete for
// compute units, and the dispatcher would crowd the first free unit with workgroups that have to wait and
// then share its rate to the end. So every workgroup runs on the compute unit of the run with boundaries, and
// a compute unit takes its workgroups in the same order.
class WithoutBoundaries {
 public:
  WithoutBoundaries(const Schedule& schedule, const Machine& machine)
      : schedule_(schedule), relaxed_(with_tile_dependences(schedule)), machine_(machine) {}

  SimulationResult run(SimulationOptions options) const {
    options.counterfactual.dependences_for_barriers = false;
    const MaybeFolded with_boundaries(schedule_, machine_, options);
    const MaybeFolded without(relaxed_, machine_, options);
    const bool alike = with_boundaries.alike().simulated_ranks == without.alike().simulated_ranks;
    const Schedule& placed = alike ? with_boundaries.schedule() : schedule_;
    const Schedule& relaxed = alike ? without.schedule() : relaxed_;
    const Alike none;
    std::vector<Placed> at;
    const std::optional<SimulationResult> stopped =
        find_places(placed, options, alike ? with_boundaries.alike() : none, at);
    if (stopped) return *stopped;
    return PowerLimited(relaxed, machine_, options, at, alike ? without.alike() : none).run();
  }

 private:
  // Finds places under the other changes of `options`; none if kernels meet the same kernels as with
  // boundaries. Returns the search run if it was stopped.
  std::optional<SimulationResult> find_places(const Schedule& schedule, SimulationOptions options,
                                              const Alike& alike, std::vector<Placed>& places) const {
    if (keeps_boundaries(schedule)) return std::nullopt;
    if (std::none_of(schedule.host.begin(), schedule.host.end(),
                     [&](const auto& program) { return orders_kernels(program, schedule); })) {
      return std::nullopt;
    }
    options.observer = nullptr;
    options.give_up_after_ns = 0;
    // Only the places of this run are used; limited clocks change places as little as any other clock.
    Engine engine(schedule, machine_, options, {}, alike);
    SimulationResult found = engine.run();
    if (found.gave_up) return found;
    std::vector<std::uint32_t> launch_of(schedule.kernels.size());
    const std::vector<std::uint32_t> launched = kernels_by_launch(schedule);
    for (std::uint32_t i = 0; i < launched.size(); ++i) launch_of[launched[i]] = i;
    places = engine.places();
    for (Placed& place : places) place.kernel = launch_of[place.kernel];
    return std::nullopt;
  }

  const Schedule& schedule_;
  Schedule relaxed_;
  const Machine& machine_;
};

// Throws UserError for groups that no switch of the machine carries out.
void require_switch(const Schedule& schedule, const Machine& machine) {
  if (std::none_of(schedule.ops.begin(), schedule.ops.end(), [](const Op& op) { return op.multimem; }))
    return;
  require_multicast(machine, schedule.ranks, fmt::format("schedule '{}' (multimem)", schedule.name),
                    "use another machine, or groups that are not multimem");
}

SimulationOptions with(SimulationOptions options, const Counterfactual& change) {
  options.counterfactual = change;
  options.observer = nullptr;
  options.give_up_after_ns = 0;
  return options;
}

}  // namespace

SimulationResult simulate(const Schedule& schedule, const Machine& machine,
                          const SimulationOptions& options) {
  require_switch(schedule, machine);
  if (options.counterfactual.dependences_for_barriers) {
    return WithoutBoundaries(schedule, machine).run(options);
  }
  const MaybeFolded run(schedule, machine, options);
  return PowerLimited(run.schedule(), machine, options, {}, run.alike()).run();
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
