// The clock of the matrix cores under the power limit.
//
// Dynamic power is activity times frequency times voltage squared, and voltage follows frequency, so the
// power of an activity per cycle grows with the cube of the clock. The activity of a GPU is the sum over the
// running matmuls of three terms: the share of the matrix cores' peak, the A tiles that stream through LDS (B
// tiles are read once per 64 rows at any tile width; the first term contains them), and the operands that
// miss the caches. In units in which the power limit is 1, the clock f in GHz follows from
//
//     f^3 (share of peak / load_clock^3 + operand_energy A/clk + miss_energy misses/clk) = 1
//
// with energies in pJ/B at the boost clock, scaled to the limit. Fitted to the clocks of the 30 plain
// products in scenarios/measured/h200-dram-reads.csv with their counted reads, from 1.35 to 1.63 GHz, the law
// leaves an error of 2 %.
//
// For matrix work and A tiles the highest sum so far counts, for misses the mean share so far: a regulator
// does not wait for the next peak, and no rate has to be solved again at each rest of a workgroup.
//
// For GPUs with unknown energies, every busy compute unit draws the same: the busy fraction u draws u /
// load_clock^3, and runs (1/u)^(1/3) faster than load_clock.
//
// A power limit other than the limit of the load clocks changes the budget of 1. The cube of the clock holds
// down to the clock below which the voltage is constant (model/cost/matmul_power.hpp).
#include "sim/engine_clock.hpp"

#include <algorithm>
#include <cmath>

#include "model/cost/matmul_power.hpp"

namespace tritax::engine {

namespace {
constexpr int kBusyBins = 32;
}  // namespace

double Clock::at_draw_ghz(const GpuState& gpu, DType dtype, double power) const {
  const double light = light_clock_ghz(run_.machine.gpu, dtype);
  double clock_ghz = power > 0 ? std::min(light, clock_of_draw_ghz(run_.machine.gpu, power)) : light;
  if (gpu.power.most_ghz > 0) clock_ghz = std::min(clock_ghz, gpu.power.most_ghz);
  return clock_ghz;
}

double Clock::find_factor(const GpuState& gpu, DType dtype) const {
  const MatrixRate& rate = run_.machine.gpu.rate(dtype);
  if (run_.machine.gpu.knows_energies())
    return at_draw_ghz(gpu, dtype, gpu.power.applied) / rate.load_clock_ghz;
  const double busy = static_cast<double>(std::max(1, gpu.power.busy_bin)) / kBusyBins;
  const double flat = run_.machine.gpu.flat_voltage_ghz / rate.load_clock_ghz;
  return std::min(clock_of_draw(busy / power_budget(run_.machine.gpu), flat),
                  light_clock_ghz(run_.machine.gpu, dtype) / rate.load_clock_ghz);
}

// Highest possible clock from now on: misses may become fewer, the rest of the draw counts at its highest.
double Clock::most_factor(const GpuState& gpu, DType dtype) const {
  if (!run_.machine.gpu.knows_energies()) return factor(gpu, dtype);
  return at_draw_ghz(gpu, dtype, gpu.power.most / (1 + kClockStep)) /
         run_.machine.gpu.rate(dtype).load_clock_ghz;
}

void Clock::find_factors(GpuState& gpu) const {
  for (const MatmulShape& shape : run_.shapes) {
    gpu.clock_factors[static_cast<std::size_t>(shape.dtype)] = find_factor(gpu, shape.dtype);
  }
}

void Clock::begin_draw(WorkgroupState& wg, const MatmulShape& shape, double clk, double missed_bytes) {
  const Gpu& machine = run_.machine.gpu;
  if (!machine.knows_energies()) return;
  Power& power = run_.gpus[static_cast<std::size_t>(wg.rank)].power;
  // A call that takes longer than the law draws the same power for a longer time.
  const double per_byte = shape.slowness * draw_per_byte(machine, machine.miss_pj_per_byte);
  wg.power = shape.work / clk;
  wg.power_if_missed = per_byte * shape.cost.operand_bytes / clk;
  power.now += wg.power;
  power.if_missed += wg.power_if_missed;
  power.work += shape.work + per_byte * missed_bytes;
  power.asked_bytes += shape.cost.operand_bytes;
  power.missed_bytes += missed_bytes;
}

void Clock::end_draw(const WorkgroupState& wg) {
  Power& power = run_.gpus[static_cast<std::size_t>(wg.rank)].power;
  power.now -= wg.power;
  power.if_missed -= wg.power_if_missed;
}

bool Clock::update(GpuState& gpu) {
  Power& power = gpu.power;
  if (!run_.machine.gpu.knows_energies()) {
    const std::int32_t cus = run_.machine.gpu.cu_count();
    const std::int32_t bin = (gpu.busy_matrix_cus * kBusyBins + cus - 1) / cus;
    if (bin <= power.busy_bin) return false;
    power.busy_bin = bin;
    apply(gpu);
    return true;
  }
  power.most = std::max(power.most, power.now);
  power.most_missed = std::max(power.most_missed, power.if_missed);
  const double wanted =
      power.most + power.most_missed * power.missed_bytes / std::max(1.0, power.asked_bytes);
  if (std::abs(wanted - power.applied) <= kClockStep * power.applied) return false;
  power.applied = wanted;
  apply(gpu);
  return true;
}

// The slowest clock of all matmul types, at most the boost clock.
double Clock::slowest_ghz(const GpuState& gpu) const {
  double slowest_ghz = run_.machine.gpu.boost_clock_ghz;
  for (const MatmulShape& shape : run_.shapes) {
    const double clock_ghz = run_.machine.gpu.rate(shape.dtype).load_clock_ghz * factor(gpu, shape.dtype);
    slowest_ghz = std::min(slowest_ghz, clock_ghz);
  }
  return slowest_ghz;
}

void Clock::apply(GpuState& gpu) {
  find_factors(gpu);
  gpu.power.clock_ghz = slowest_ghz(gpu);
  gpu.clock_share = std::min(1.0, gpu.power.clock_ghz / run_.machine.gpu.boost_clock_ghz);
}

}  // namespace tritax::engine
