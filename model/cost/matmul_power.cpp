#include "model/cost/matmul_power.hpp"

namespace tritax {

double draw_per_byte(const Gpu& gpu, double pj_per_byte) {
  return pj_per_byte * 1e-3 / (gpu.boost_clock_ghz * gpu.boost_clock_ghz * gpu.power_limit_w);
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
