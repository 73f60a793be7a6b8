// Resources of a workgroup that computes matrix tiles.
//
// Registers per thread (32-bit):
//   accumulators  m·n / threads, fp32; two registers each in fp64
//   fragments     two sets (one in use, one arriving) of 32 bytes of K for the wave's rows and columns: the
//                 depth of the 16×16 instructions of 16- and 8-bit types. None with wgmma, which reads LDS
//   in flight     the next operand stage on its way to LDS, (m + n)·k·e / threads. None with asynchronous
//                 copies, nor in waves that only consume
//   the rest      addresses, masks and counters
// LDS: one stage of (m + n)·k·e for the serial pipeline (Triton, two stages: one in LDS, one in registers);
// for the overlapped pipeline two as far as LDS allows, and for producers and consumers two. Threads are the
// threads of the waves that multiply; for wave schedules see model/schedule/wave_schedule.hpp. Where copies
// are asynchronous, there are two to eight stages beside a finished tile on its way out: with one stage, no
// operand could arrive while the stage is multiplied.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/core/error.hpp"
#include "model/cost/matmul_cost.hpp"
#include "model/parts/kernels.hpp"
#include "model/schedule/wave_schedule.hpp"

namespace tritax {

namespace {

constexpr std::int32_t kOtherRegisters =
    24;  // as compilers report for such kernels, less the parts counted above
constexpr std::int32_t kFragmentBytesOfK = 32;
constexpr std::int32_t kRegisterBytes = 4;

std::int32_t stage_bytes(const Gpu& gpu, const KernelCosts& costs, DType dtype, const MatmulTile& tile) {
  return (tile.m + tile.n) * step_depth(gpu, costs, dtype, tile) * bytes_of(dtype);
}

std::int32_t fragment_registers(const Gpu& gpu, const MatmulTile& tile) {
  return 2 * ceil_div(fragment_edges(tile) * kFragmentBytesOfK, 4 * gpu.lanes_per_wave);
}

std::string describe(const Gpu& gpu, DType dtype, const MatmulTile& tile) {
  const std::int32_t producers = producers_of(gpu, tile);
  return fmt::format("tile {}x{}x{} of {} with {} waves{} on {}", tile.m, tile.n, tile.k, name_of(dtype),
                     tile.waves, producers > 0 ? fmt::format(" and {} producers", producers) : "", gpu.name);
}

std::int32_t registers_per_thread(const Gpu& gpu, const KernelCosts& costs, DType dtype,
                                  const MatmulTile& tile, std::int32_t threads) {
  const std::int32_t accumulators =
      ceil_div(tile.m * tile.n * bytes_of(accumulator_of(dtype)), kRegisterBytes * threads);
  if (gpu.async_tile_copy) return accumulators + kOtherRegisters;
  const std::int32_t in_flight = tile.pipeline == Pipeline::producer_consumer
                                     ? 0
                                     : ceil_div(stage_bytes(gpu, costs, dtype, tile), 4 * threads);
  return accumulators + fragment_registers(gpu, tile) + in_flight + kOtherRegisters;
}

std::int32_t lds_bytes(const Gpu& gpu, const KernelCosts& costs, DType dtype, const MatmulTile& tile) {
  const std::int32_t stage = stage_bytes(gpu, costs, dtype, tile);
  if (tile.pipeline == Pipeline::serial) return stage;
  if (tile.pipeline == Pipeline::producer_consumer) return 2 * stage;
  if (!gpu.async_tile_copy) return 2 * stage <= gpu.lds_bytes_per_workgroup_max ? 2 * stage : stage;
  const std::int32_t staging =
      stages_tiles(gpu, dtype)
          ? tile.m * tile.n * bytes_of(dtype) + static_cast<std::int32_t>(costs.lds_bytes_of_senders)
          : 0;
  return staging +
         std::max(2, operand_stages(gpu, costs, dtype, tile, gpu.lds_bytes_per_workgroup_max)) * stage;
}

}  // namespace

Resources matmul_resources(const Gpu& gpu, const KernelCosts& costs, DType dtype, const MatmulTile& tile) {
  TRITAX_ASSERT(tile.m > 0 && tile.n > 0 && tile.k > 0 && tile.waves > 0,
                "resources of a tile without a shape");
  check_waves(tile.waves, gpu);
  if (const std::string fault = fault_of_waves(gpu, tile); !fault.empty()) throw UserError(fault);
  if (gpu.async_tile_copy && tile.waves % kWavesOfWgmma != 0) {
    throw UserError(
        fmt::format("waves: {} is not a multiple of {}; the matrix instructions of {} take whole warp groups",
                    tile.waves, kWavesOfWgmma, gpu.name));
  }

  Resources resources;
  const std::int32_t multiplying = tile.waves * gpu.lanes_per_wave;
  resources.threads = multiplying + producers_of(gpu, tile) * gpu.lanes_per_wave;
  resources.lds_bytes = lds_bytes(gpu, costs, dtype, tile);
  if (resources.lds_bytes > gpu.lds_bytes_per_workgroup_max) {
    throw UserError(
        fmt::format("{} needs {} bytes of LDS, but a workgroup has at most {}: use a smaller tile_k, tile_m "
                    "or tile_n",
                    describe(gpu, dtype, tile), resources.lds_bytes, gpu.lds_bytes_per_workgroup_max));
  }

  resources.registers_per_thread = registers_per_thread(gpu, costs, dtype, tile, multiplying);
  const double available = registers_of_thread(gpu, tile.pipeline, resources.threads);
  if (resources.registers_per_thread > available) {
    throw UserError(fmt::format(
        "{} needs {} registers per thread, but only {} are available: use a smaller tile_m, tile_n or "
        "tile_k, or other waves",
        describe(gpu, dtype, tile), resources.registers_per_thread, available));
  }
  return resources;
}

}  // namespace tritax
