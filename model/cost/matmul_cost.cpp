#include "model/cost/matmul_cost.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "model/core/ceil_div.hpp"
#include "model/core/error.hpp"
#include "model/cost/matmul_step.hpp"

namespace tritax {

namespace {

// Rows and columns of the smallest matrix instruction of AMD parts.
constexpr std::int32_t kInstructionEdge = 16;

// The tile with the depth of a step.
MatmulTile of_step(const Gpu& gpu, const KernelCosts& costs, DType dtype, const MatmulTile& tile) {
  MatmulTile step = tile;
  step.k = step_depth(gpu, costs, dtype, tile);
  return step;
}

// Share of the matrix cores that have a wave with at least one instruction's worth of the tile. Waves of a
// library's kernels share a deep step too: four slices of 128 in MT16x16x512 of hipBLASLt.
double busy_simd_share(const Gpu& gpu, const KernelCosts& costs, const MatmulTile& tile) {
  constexpr std::int32_t kSlice = 128;
  const std::int32_t slices = costs.tuned ? std::max(1, tile.k / kSlice) : 1;
  const std::int32_t blocks =
      slices * ceil_div(tile.m, kInstructionEdge) * ceil_div(tile.n, kInstructionEdge);
  return static_cast<double>(std::min({gpu.simds_per_cu, tile.waves, blocks})) / gpu.simds_per_cu;
}

// False on GPUs that only copy asynchronously (A100), and in fp64, which has no wgmma.
bool multiplies_by_wgmma(const Gpu& gpu, double element_bytes) {
  constexpr std::string_view kAmpere = "sm_80";
  constexpr double kLargestElement = 4;
  return gpu.async_tile_copy && element_bytes <= kLargestElement && gpu.arch != kAmpere;
}

// The tile as wgmma multiplies it: rows rounded up to whole instructions. Tuned kernels swap rows and columns
// if only the columns are a multiple of an instruction.
MatmulTile along_wgmma(const KernelCosts& costs, const MatmulTile& tile) {
  MatmulTile along = tile;
  if (costs.tuned && tile.m % kWgmmaRows != 0 && tile.n % kWgmmaRows == 0) std::swap(along.m, along.n);
  along.m = ceil_div(along.m, kWgmmaRows) * kWgmmaRows;
  return along;
}

// Bytes that the wgmma instructions of one K step of depth 1 element read from LDS, per byte of an element:
// every 64-row instruction reads its rows of A and its columns of B. Warp groups split the rows first, then
// the columns.
double wgmma_operand_elements(const MatmulTile& tile) {
  const std::int32_t row_blocks = ceil_div(tile.m, kWgmmaRows);
  const std::int32_t groups = std::max(1, tile.waves / kWavesOfWgmma);
  const std::int32_t column_splits = std::max(1, groups / row_blocks);
  return static_cast<double>(row_blocks) * (column_splits * kWgmmaRows + tile.n);
}

}  // namespace

double matmul_step_clk(const Gpu& gpu, const KernelCosts& costs, const MatrixRate& rate, double e,
                       const MatmulTile& given) {
  const bool wgmma = multiplies_by_wgmma(gpu, e);
  const MatmulTile tile = wgmma ? along_wgmma(costs, given) : given;
  const double depth = tile.k;
  const double flop_per_clk = rate.flop_per_clk_per_cu * rate.issue_efficiency;
  const double t_port =
      std::max(costs.matmul_least_step_clk,
               costs.matmul_step_clk + (tile.m + tile.n) * depth * e / gpu.cu_l2_bytes_per_clk);

  if (wgmma) {
    const double t_flops = 2.0 * tile.m * tile.n * depth / flop_per_clk;
    const double t_operands = wgmma_operand_elements(tile) * depth * e / gpu.lds_bytes_per_clk;
    return std::max({t_flops, t_operands, t_port});
  }

  const double t_mfma = 2.0 * tile.m * tile.n * depth / (flop_per_clk * busy_simd_share(gpu, costs, tile));
  const double t_read = tile.waves * fragment_edges(tile) * depth * e / gpu.lds_bytes_per_clk;
  if (gpu.async_tile_copy) return std::max({t_mfma, t_read, t_port});  // mma.sync
  const double t_write = (tile.m + tile.n) * depth * e / gpu.lds_bytes_per_clk;
  switch (tile.pipeline) {
    case Pipeline::serial:
      return std::max(t_mfma + t_write + t_read, t_port);
    case Pipeline::producer_consumer:
      return std::max({t_mfma + t_read, t_write + t_read, t_port});
    case Pipeline::overlapped:
    case Pipeline::ping_pong:
    case Pipeline::interleaved:
      break;
  }
  return std::max({t_mfma, t_write + t_read, t_port});
}

std::int32_t step_depth(const Gpu& gpu, const KernelCosts& costs, DType dtype, const MatmulTile& tile) {
  const bool by_rows = gpu.async_tile_copy && costs.copy_engine_row_bytes > 0;
  return by_rows ? costs.copy_engine_row_bytes / bytes_of(dtype) : tile.k;
}

double matmul_steps(const KernelCosts& costs, const MatmulTile& tile, std::int64_t k, double e) {
  constexpr double kRowBytes = 128;
  const auto usual = static_cast<std::int64_t>(kRowBytes / e);
  const std::int64_t whole = costs.tuned ? std::min<std::int64_t>(tile.k, usual) : tile.k;
  return static_cast<double>((k + whole - 1) / whole * whole) / tile.k;
}

std::int32_t fragment_edges(const MatmulTile& tile) {
  std::int32_t best = tile.m + tile.n;
  for (std::int32_t wm = 1; wm <= tile.waves; ++wm) {
    if (tile.waves % wm != 0) continue;
    const std::int32_t rows = std::max(kInstructionEdge, ceil_div(tile.m, wm));
    const std::int32_t cols = std::max(kInstructionEdge, ceil_div(tile.n, tile.waves / wm));
    best = std::min(best, rows + cols);
  }
  return best;
}

std::int32_t operand_stages(const Gpu& gpu, const KernelCosts& costs, DType dtype, const MatmulTile& tile,
                            double lds_bytes) {
  const double e = bytes_of(dtype);
  const double staging =
      stages_tiles(gpu, dtype) ? static_cast<double>(tile.m) * tile.n * e + costs.lds_bytes_of_senders : 0;
  const double stage = (static_cast<double>(tile.m) + tile.n) * step_depth(gpu, costs, dtype, tile) * e;
  const double room = (lds_bytes > 0 ? lds_bytes : gpu.lds_bytes_per_workgroup_max) - staging;
  return std::clamp(static_cast<std::int32_t>(room / stage), 1, most_stages(costs, dtype));
}

bool has_sender(const Schedule& schedule, const Kernel& kernel, const Gpu& gpu) {
  if (!gpu.async_tile_store || kernel.tile.m <= 0) return false;
  const auto is_fp64 = [&](std::int16_t buffer) {
    return schedule.buffers[static_cast<std::size_t>(buffer)].dtype == DType::fp64;
  };
  if (std::none_of(schedule.buffers.begin(), schedule.buffers.end(),
                   [](const Buffer& buffer) { return buffer.dtype == DType::fp64; })) {
    return true;
  }
  const auto multiplies_fp64 = [&](const Workgroup& program) {
    const auto first = schedule.ops.begin() + static_cast<std::ptrdiff_t>(program.first_op);
    return std::any_of(first, first + program.op_count,
                       [&](const Op& op) { return op.kind == OpKind::matmul && is_fp64(op.src_buffer); });
  };
  return std::none_of(kernel.workgroups.begin(), kernel.workgroups.end(), multiplies_fp64) &&
         std::none_of(kernel.items.begin(), kernel.items.end(), multiplies_fp64);
}

double stage_interval_ns(const Gpu& gpu, DType dtype, const MatmulTile& tile, std::int32_t stages,
                         double latency_ns) {
  const double interval_ns = latency_ns / std::max(1, stages - 1);
  if (gpu.async_tile_copy || tile.pipeline != Pipeline::serial) return interval_ns;
  const double stage_bytes = (static_cast<double>(tile.m) + tile.n) * tile.k * bytes_of(dtype);
  const double of_hbm = gpu.hbm_latency_ns > 0 ? latency_ns / gpu.hbm_latency_ns : 1;
  return interval_ns + of_hbm * stage_bytes / gpu.cu_load_gb_per_s +
         stage_bytes / (gpu.lds_bytes_per_clk * gpu.boost_clock_ghz);
}

PeerStages peer_stages(const Gpu& gpu, const MatmulTile& tile, DType dtype, double steps, std::int32_t stages,
                       double a_bytes, double gb_per_s, double round_trip_ns) {
  const double stage_bytes = (static_cast<double>(tile.m) + tile.n) * tile.k * bytes_of(dtype);
  PeerStages of;
  of.latency_ns = steps * round_trip_ns / std::max(1, stages - 1);
  of.load_ns = a_bytes / gb_per_s;
  of.write_ns = steps * stage_bytes / (gpu.lds_bytes_per_clk * gpu.boost_clock_ghz);
  of.one_by_one = !gpu.async_tile_copy && tile.pipeline == Pipeline::serial;
  return of;
}

double spread_width(const Gpu& gpu, const KernelCosts& costs) {
  const double uniform = std::sqrt(3.0) * gpu.matmul_spread;
  if (!coalesces(gpu, costs)) return uniform;
  return uniform / std::hypot(1 - kOwnSpread, kOwnSpread);  // of the sum of both parts
}

MatmulCost matmul_cost(const Gpu& gpu, const KernelCosts& costs, DType dtype, const MatmulTile& given,
                       std::int64_t rows, std::int64_t cols, std::int64_t k) {
  TRITAX_ASSERT(given.m > 0 && given.n > 0 && given.k > 0 && given.waves > 0, "matmul without a tile shape");
  const MatmulTile tile = of_step(gpu, costs, dtype, given);
  const MatrixRate& rate = gpu.rate(dtype);
  if (rate.flop_per_clk_per_cu <= 0) {
    throw UserError(fmt::format("dtype {}: {} has no matrix instruction for it", name_of(dtype), gpu.name));
  }
  const double depth = static_cast<double>(k);
  const double e = bytes_of(dtype);
  const double steps = matmul_steps(costs, tile, k, e);

  MatmulCost cost;
  cost.compute_ns = steps * matmul_step_clk(gpu, costs, rate, e, tile) / rate.load_clock_ghz;
  cost.prologue_ns = gpu.hbm_latency_ns + costs.matmul_op_ns;
  cost.a_bytes = static_cast<double>(rows) * depth * e;
  cost.b_bytes = static_cast<double>(cols) * depth * e;
  cost.operand_bytes = cost.a_bytes + cost.b_bytes;
  cost.flops = 2.0 * static_cast<double>(rows) * static_cast<double>(cols) * depth;
  return cost;
}

}  // namespace tritax
