#include "model/cost/matmul_power.hpp"

#include <algorithm>
#include <cmath>

namespace tritax {

double load_budget_w(const Gpu& gpu) {
  return (gpu.load_power_w > 0 ? gpu.load_power_w : gpu.power_limit_w) - gpu.idle_power_w;
}

double power_budget(const Gpu& gpu) {
  return gpu.power_limit_w > 0 ? (gpu.power_limit_w - gpu.idle_power_w) / load_budget_w(gpu) : 1;
}

double clock_of_draw(double draw, double flat) {
  const double cube = 1 / draw;
  const double clock = std::cbrt(cube);
  return clock < flat ? cube / (flat * flat) : clock;
}

double clock_of_draw_ghz(const Gpu& gpu, double draw) {
  return clock_of_draw(draw / power_budget(gpu), gpu.flat_voltage_ghz);
}

double draw_of_cycle(const Gpu& gpu, double clock_ghz) {
  const double volts = std::max(clock_ghz, gpu.flat_voltage_ghz);
  return volts * volts;
}

double draw_per_byte(const Gpu& gpu, double pj_per_byte) {
  return pj_per_byte * 1e-3 / (gpu.boost_clock_ghz * gpu.boost_clock_ghz * load_budget_w(gpu));
}

double matmul_draw(const Gpu& gpu, DType dtype, const MatmulCost& cost) {
  if (!gpu.knows_energies()) return 0;
  const MatrixRate& rate = gpu.rate(dtype);
  const double load_ghz = rate.load_clock_ghz;
  return cost.flops / (gpu.cu_count() * rate.flop_per_clk_per_cu) * (1 / (load_ghz * load_ghz * load_ghz)) +
         draw_per_byte(gpu, gpu.operand_pj_per_byte) * cost.a_bytes;
}

double light_clock_ghz(const Gpu& gpu, DType dtype) {
  const double light_ghz = gpu.rate(dtype).light_clock_ghz;
  return light_ghz > 0 ? light_ghz : gpu.boost_clock_ghz;
}

}  // namespace tritax
