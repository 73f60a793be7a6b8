#include "model/parts/gemm_bound.hpp"

#include <algorithm>
#include <cmath>

#include "model/cost/matmul_cost.hpp"
#include "model/cost/matmul_power.hpp"
#include "model/cost/power_bound.hpp"
#include "model/parts/kernels.hpp"

namespace tritax {

namespace {

std::int64_t ceil_of(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Workgroups go round robin over the dies; where no die has more than compute units, none shares one.
bool may_share(const Pattern& pattern, const Gpu& gpu, const GemmKnobs& knobs) {
  std::int64_t on_die = ceil_of(knobs.gemm_cus, gpu.xcds);
  if (pattern.roles != Roles::in_turn) on_die += ceil_of(knobs.comm_cus, gpu.xcds);
  return on_die > gpu.cus_per_xcd;
}

}  // namespace

double gemm_bound_ns(const Pattern& pattern, const GemmShape& gemm, const Machine& machine,
                     const GemmKnobs& knobs) {
  if (!pattern.uses("tile") || !pattern.uses("gemm_cus") || knobs.gemm_cus <= 0) return 0;
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

  const std::int64_t tiles = ceil_of(gemm.m, knobs.tile_m) * ceil_of(gemm.n, knobs.tile_n);
  const std::int64_t workgroups = knobs.gemm_cus;
  const double cus = gpu.cu_count();
  const double chain = static_cast<double>(ceil_of(tiles, workgroups)) / boost;
  double power = 0;  // in tiles, as the chain
  if (!gpu.knows_energies() && may_share(pattern, gpu, knobs)) {
    const int residents =
        residents_at_most(gpu, matmul_resources(gpu, machine.interpreter, gemm.dtype, tile));
    power = static_cast<double>(tiles) / (shared_gain(gain, residents) * cus);
  } else if (!gpu.knows_energies()) {
    power = static_cast<double>(tiles / workgroups) * std::cbrt(static_cast<double>(workgroups) / cus) +
            std::cbrt(static_cast<double>(tiles % workgroups) / cus);
  }
  power /= std::cbrt(power_budget(gpu));
  const HostCosts& host = machine.host;
  const double host_ns = host.launch_latency_ns + (knobs.host_barriers ? 2 * host.barrier_ns : 0);
  return host_ns + std::max(chain, power) * tile_ns;
}

}  // namespace tritax
