#include "model/parts/gemm_bound.hpp"

#include <algorithm>
#include <cmath>

#include "model/core/ceil_div.hpp"
#include "model/cost/matmul_cost.hpp"
#include "model/cost/matmul_power.hpp"
#include "model/cost/power_bound.hpp"
#include "model/parts/kernels.hpp"

namespace tritax {

namespace {

// Whether workgroups may share a compute unit. Workgroups go round robin over the dies, and share none where
// no die has more workgroups than compute units.
bool may_share(const Pattern& pattern, const Gpu& gpu, const GemmKnobs& knobs) {
  std::int64_t on_die = ceil_div(knobs.gemm_cus, gpu.xcds);
  if (pattern.roles != Roles::in_turn) on_die += ceil_div(knobs.comm_cus, gpu.xcds);
  return on_die > gpu.cus_per_xcd;
}

// Time in tiles: `chain`, the tiles of the busiest workgroup, one after the other; `power`, where power
// limits the clock, the time of all rounds at the clock of their active compute units.
struct Rounds {
  double chain = 0;
  double power = 0;
};

Rounds rounds_of(const Gpu& gpu, std::int64_t tiles, std::int64_t workgroups, WorkSharing sharing) {
  const auto share = static_cast<double>(tiles) / static_cast<double>(workgroups);
  const double cus = gpu.cu_count();
  const auto at_clock_of = [&](std::int64_t units) { return std::cbrt(static_cast<double>(units) / cus); };
  if (sharing == WorkSharing::iterations) return {share, share * at_clock_of(workgroups)};
  return {
      static_cast<double>(ceil_div(tiles, workgroups)),
      static_cast<double>(tiles / workgroups) * at_clock_of(workgroups) + at_clock_of(tiles % workgroups)};
}

// `residents`: workgroups that may share a compute unit.
double bound_of(const GemmShape& gemm, const Machine& machine, const GemmKnobs& knobs,
                std::int64_t workgroups, int residents, WorkSharing sharing) {
  const Gpu& gpu = machine.gpu;
  const MatmulTile tile = matmul_tile(knobs);
  MatmulTile overlapped = tile;
  overlapped.pipeline = Pipeline::overlapped;
  const auto cost_ns = [&](const MatmulTile& of) {
    return matmul_cost(gpu, machine.interpreter, gemm.dtype, of, of.m, of.n, gemm.k).compute_ns;
  };
  const double gain = std::max(1.0, cost_ns(tile) / cost_ns(overlapped));
  const double tile_ns = cost_ns(tile) / most_luck(gpu, machine.interpreter);
  const double boost = std::max(1.0, gpu.boost_clock_ghz / gpu.rate(gemm.dtype).load_clock_ghz);

  const std::int64_t tiles = ceil_div(gemm.m, knobs.tile_m) * ceil_div(gemm.n, knobs.tile_n);
  const Rounds rounds = rounds_of(gpu, tiles, workgroups, sharing);
  double power = 0;
  if (!gpu.knows_energies() && residents > 1) {
    power = static_cast<double>(tiles) / (shared_gain(gain, residents) * gpu.cu_count());
  } else if (!gpu.knows_energies()) {
    power = rounds.power;
  }
  power /= std::cbrt(power_budget(gpu));
  const HostCosts& host = machine.host;
  const double host_ns = host.launch_latency_ns + (knobs.host_barriers ? 2 * host.barrier_ns : 0);
  return host_ns + std::max(rounds.chain / boost, power) * tile_ns;
}

int residents_of(const GemmShape& gemm, const Machine& machine, const GemmKnobs& knobs) {
  return residents_at_most(
      machine.gpu, matmul_resources(machine.gpu, machine.interpreter, gemm.dtype, matmul_tile(knobs)));
}

}  // namespace

double gemm_bound_ns(const Pattern& pattern, const GemmShape& gemm, const Machine& machine,
                     const GemmKnobs& knobs, WorkSharing sharing) {
  if (!pattern.uses("tile") || !pattern.uses("gemm_cus")) return 0;
  GemmKnobs given = knobs;  // without gemm_cus: all compute units, or all that other roles leave
  if (given.gemm_cus <= 0) given.gemm_cus = machine.gpu.cu_count();
  const int residents = may_share(pattern, machine.gpu, given) ? residents_of(gemm, machine, knobs) : 1;
  return bound_of(gemm, machine, given, given.gemm_cus, residents, sharing);
}

double gemm_bound_ns(const GemmShape& gemm, const Machine& machine, const GemmKnobs& knobs,
                     std::int64_t workgroups, WorkSharing sharing) {
  const bool shares_units = ceil_div(workgroups, machine.gpu.xcds) > machine.gpu.cus_per_xcd;
  const int residents = shares_units ? residents_of(gemm, machine, knobs) : 1;
  return bound_of(gemm, machine, knobs, workgroups, residents, sharing);
}

double gemm_bound_ns(const GemmShape& gemm, const Machine& machine, const GemmKnobs& knobs,
                     const Resources& resources) {
  const int residents = residents_at_most(machine.gpu, resources);
  const std::int64_t workgroups = std::int64_t{residents} * machine.gpu.cu_count();
  return bound_of(gemm, machine, knobs, workgroups, residents, WorkSharing::whole_tiles);
}

}  // namespace tritax
