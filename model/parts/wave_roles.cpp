#include "model/parts/wave_roles.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/core/error.hpp"
#include "model/cost/matmul_step.hpp"
#include "model/parts/kernels.hpp"

namespace tritax {

namespace {

constexpr std::int32_t kRegisterStep = 8;
constexpr std::int32_t kStagesOfRoles = 2;
constexpr std::int32_t kMostThreadsOfRoles = 1024;
// As in matmul_resources.cpp.
constexpr std::int32_t kOtherRegistersOfConsumer = 24;
constexpr std::int32_t kFragmentBytesOfConsumer = 32;

std::int32_t consumer_registers(const Gpu& gpu, const MatmulTile& tile) {
  const std::int32_t threads = tile.waves * gpu.lanes_per_wave;
  return ceil_div(tile.m * tile.n, threads) +
         2 * ceil_div(fragment_edges(tile) * kFragmentBytesOfConsumer, 4 * gpu.lanes_per_wave) +
         kOtherRegistersOfConsumer;
}

std::string roles_text(const MatmulTile& tile, std::int32_t producers) {
  return fmt::format("producers: a tile of {}x{}x{} with {} producers and {} consumers", tile.m, tile.n,
                     tile.k, producers, tile.waves);
}

void check_roles(const Gpu& gpu, const MatmulTile& tile, std::int32_t producers) {
  if (gpu.async_tile_copy) {
    throw UserError(
        fmt::format("producers: {} copies operands into LDS by itself; leave them out", gpu.name));
  }
  const std::int32_t most = kMostThreadsOfRoles / gpu.lanes_per_wave;
  if (tile.waves + producers <= most) return;
  throw UserError(fmt::format("{} are {} waves; at most {} are allowed", roles_text(tile, producers),
                              tile.waves + producers, most));
}

}  // namespace

WaveRoles wave_roles(const Gpu& gpu, const KernelCosts& costs, DType dtype, const MatmulTile& tile,
                     std::int32_t producers) {
  check_roles(gpu, tile, producers);
  const MatrixRate& rate = gpu.rate(dtype);
  const std::int32_t e = bytes_of(dtype);
  WaveRoles roles;
  roles.resources.threads = (tile.waves + producers) * gpu.lanes_per_wave;
  roles.resources.lds_bytes = kStagesOfRoles * (tile.m + tile.n) * tile.k * e;
  if (roles.resources.lds_bytes > gpu.lds_bytes_per_workgroup_max) {
    throw UserError(fmt::format(
        "{} needs {} bytes of LDS, a stage to fill and one to read, but {} has {}: use a "
        "smaller tile or less of K",
        roles_text(tile, producers), roles.resources.lds_bytes, gpu.name, gpu.lds_bytes_per_workgroup_max));
  }
  const double share_of_wave = std::floor(gpu.registers_per_cu / roles.resources.threads);
  const std::int32_t allowed =
      static_cast<std::int32_t>(std::min(gpu.registers_per_thread_max, share_of_wave)) / kRegisterStep *
      kRegisterStep;
  roles.resources.registers_per_thread = consumer_registers(gpu, tile);
  if (roles.resources.registers_per_thread > allowed) {
    throw UserError(
        fmt::format("{} needs {} registers a thread, but {} waves of {} have {} each: use a smaller "
                    "tile or fewer producers",
                    roles_text(tile, producers), roles.resources.registers_per_thread, tile.waves + producers,
                    gpu.name, allowed));
  }

  const double bytes = static_cast<double>(tile.k) * e;
  const double together = matmul_step_clk(gpu, costs, rate, e, tile);
  Gpu free = gpu;  // for t_mfma alone
  free.lds_bytes_per_clk = free.cu_l2_bytes_per_clk = 1e18;
  const double t_mfma = matmul_step_clk(free, KernelCosts{}, rate, e, tile);
  const double t_read = tile.waves * fragment_edges(tile) * bytes / gpu.lds_bytes_per_clk;
  roles.matmul_share = std::min(1.0, together / std::max(together, t_mfma + t_read));
  return roles;
}

}  // namespace tritax
