#include "model/parts/group_tile.hpp"

#include <algorithm>

#include "model/core/error.hpp"
#include "model/parts/kernels.hpp"
#include "model/parts/usual_first.hpp"

namespace tritax {

namespace {

bool tile_of_group_fits(const GemmKnobs& knobs, DType dtype, const Gpu& gpu, const KernelCosts& costs) {
  try {
    matmul_resources(gpu, costs, dtype, matmul_tile(knobs));
    return true;
  } catch (const UserError&) {
    return false;
  }
}

}  // namespace

GemmKnobs with_tile_for(const GemmKnobs& usual, DType dtype, const Machine& machine, std::int64_t rows,
                        std::int64_t columns) {
  GemmKnobs knobs = usual;
  const auto fits = [&](const GemmKnobs& tried) {
    return tile_of_group_fits(tried, dtype, machine.gpu, machine.interpreter);
  };
  const auto halve = [&](std::int32_t GemmKnobs::*edge, std::int64_t wanted) {
    while (knobs.*edge > kTileStep && knobs.*edge / 2 >= wanted) {
      GemmKnobs smaller = knobs;
      smaller.*edge /= 2;
      const bool as_is = fits(smaller);
      if (!as_is && smaller.waves > 1) smaller.waves /= 2;
      if (!as_is && !fits(smaller)) break;
      knobs = smaller;
    }
  };
  halve(&GemmKnobs::tile_m, rows);
  halve(&GemmKnobs::tile_n, columns);
  return knobs;
}

Axis tile_rows_axis(const Pattern& pattern, const Values& base, DType dtype, const Machine& machine,
                    const Values& pins) {
  Axis rows = usual_first(pattern, base, "tile_m", {});
  if (pins.given("tile_m") || !pattern.uses("tile")) return rows;
  rows.travels = true;
  rows.relative = true;
  for (const std::int64_t other : {16, 32, 64, 128, 256}) {
    if (other == base["tile_m"]) continue;
    rows.values.push_back(
        {{other}, 0, [other, dtype, gpu = machine.gpu, costs = machine.interpreter](Values& knobs) {
           knobs.assume("tile_m", other);
           return tile_of_group_fits(gemm_knobs_of(knobs), dtype, gpu, costs);
         }});
  }
  return rows;
}

double peak_bound_ns(double flops, DType dtype, const Machine& machine) {
  const Gpu& gpu = machine.gpu;
  const MatrixRate& rate = gpu.rate(dtype);
  const double flop_per_ns =
      rate.flop_per_clk_per_cu * gpu.cu_count() * std::max(gpu.boost_clock_ghz, rate.load_clock_ghz);
  return machine.host.launch_latency_ns + flops / flop_per_ns;
}

}  // namespace tritax
