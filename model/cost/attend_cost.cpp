#include "model/cost/attend_cost.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/core/error.hpp"
#include "model/cost/attend_blocks.hpp"

namespace tritax {

namespace {

constexpr double kOpsPerScore = 4;
constexpr double kMaskOps = 6;  // three comparisons, two conjunctions, a selection

constexpr std::int32_t kStagesOfMmaSync = 2;

// Compiled kernels mask every block, also those that all queries see.
double ops_per_score(const KernelCosts& costs) {
  return costs.compiled_attention ? kOpsPerScore + kMaskOps : kOpsPerScore;
}

// Of a block of heads of d columns; see the header.
double chain_ns(const Gpu& gpu, double d) {
  constexpr double kConstantShare = 0.3, kColumns = 128;
  return gpu.attend_chain_ns * (kConstantShare + (1 - kConstantShare) * d / kColumns);
}

// Asynchronous matrix instructions need a whole group of rows.
bool in_turn(const Gpu& gpu, const KernelCosts& costs, const MatmulTile& tile) {
  return works_in_turn(costs) || (costs.compiled_attention && gpu.async_tile_copy && tile.m < kWgmmaRows);
}

// Cycles per block of tile.n keys if each wave does its work in turn.
double clocks_in_turn(const Gpu& gpu, const KernelCosts& costs, const MatrixRate& rate,
                      const MatmulTile& tile, double d, double e) {
  const bool one_unit = gpu.lanes_per_wave == 64;
  const double m = rounded_up(tile.m, kLeastEdge);
  const double n = tile.n, simds = gpu.simds_per_cu;
  const double reached = gpu.async_tile_copy ? kPeakShareOfMmaSync : rate.issue_efficiency;
  const double t_matrix = 4 * m * n * d / (rate.flop_per_clk_per_cu * reached);
  const double t_exp = m * n / (kExpPerSimd * simds);
  const double t_plain = (ops_per_score(costs) * m * n + m * d) / ((one_unit ? 16 : 32) * simds);
  const double lds_bytes = (1 + m / kLeastEdge) * 2 * n * d * e + m * d * e;
  return t_matrix + (one_unit ? t_exp + t_plain : std::max(t_exp, t_plain)) +
         lds_bytes / gpu.lds_bytes_per_clk;
}

// Cycles of a block of tile.n keys.
double block_clocks(const Gpu& gpu, const KernelCosts& costs, DType dtype, const MatmulTile& tile, double d) {
  const MatrixRate& rate = gpu.rate(dtype);
  const bool wgmma = gpu.async_tile_copy;
  const bool one_unit = gpu.lanes_per_wave == 64;
  const double m = rounded_up(tile.m, wgmma ? kWgmmaRows : kLeastEdge);
  const double n = tile.n;
  const double block_bytes = 2 * n * d * bytes_of(dtype);
  const double simds = gpu.simds_per_cu;
  const std::int32_t waves = std::min<std::int32_t>(tile.waves, static_cast<std::int32_t>(m) / kLeastEdge);
  const double busy = std::min(1.0, tile.waves / simds);

  const double t_matrix = 4 * m * n * d / (rate.flop_per_clk_per_cu * rate.issue_efficiency * busy);
  const double t_exp = m * n / (kExpPerSimd * simds * busy);
  const double t_plain = (ops_per_score(costs) * m * n + m * d) / ((one_unit ? 16 : 32) * simds * busy);
  const double t_vector = one_unit ? t_exp + t_plain : std::max(t_exp, t_plain);
  const double t_port =
      std::max(costs.matmul_least_step_clk, costs.matmul_step_clk + block_bytes / gpu.cu_l2_bytes_per_clk);
  if (in_turn(gpu, costs, tile))
    return std::max(clocks_in_turn(gpu, costs, rate, tile, d, bytes_of(dtype)), t_port);
  if (wgmma) {
    const double read_bytes = m / kWgmmaRows * (block_bytes + kWgmmaRows * d * bytes_of(dtype));
    const double t_wgmma = std::max(t_matrix, read_bytes / gpu.lds_bytes_per_clk);
    const bool hides_plain = tile.pipeline != Pipeline::serial && !costs.compiled_attention;
    return std::max(t_wgmma + (hides_plain ? t_exp : t_exp + t_plain), t_port);
  }
  const double t_lds = (1 + waves) * block_bytes / gpu.lds_bytes_per_clk;
  const double t_issue = t_vector + t_matrix * rate.issue_efficiency * kIssueClk / kMatrixInstructionClk;
  switch (tile.pipeline) {
    case Pipeline::serial:
      return std::max(t_matrix + t_vector + t_lds, t_port);
    case Pipeline::overlapped:
      break;
    case Pipeline::ping_pong:
      return std::max({t_matrix, t_issue, t_lds, t_port});
    case Pipeline::interleaved: {  // a wave loads and writes its part of a block and reads the whole block
      const double moved = (2 / simds + 1) * block_bytes / (gpu.lanes_per_wave * kBytesOfInstruction);
      return std::max({t_matrix, t_issue + moved * kIssueClk, t_lds, t_port});
    }
    case Pipeline::producer_consumer:
      return std::max(
          {std::max(t_matrix, t_vector) + waves * block_bytes / gpu.lds_bytes_per_clk, t_lds, t_port});
  }
  return std::max({t_matrix, t_vector, t_lds, t_port});
}

}  // namespace

const MatrixRate& rate_of_attention(const Gpu& gpu, DType dtype) {
  const MatrixRate& rate = gpu.rate(dtype);
  if (rate.flop_per_clk_per_cu > 0) return rate;
  throw UserError(fmt::format("dtype {}: {} has no matrix instruction for it", name_of(dtype), gpu.name));
}

AttendCost cost_of_blocks(const Gpu& gpu, const KernelCosts& costs, DType dtype, const MatmulTile& tile,
                          const Resources& resources, const StreamedBlocks& blocks) {
  const double d = blocks.cols, e = bytes_of(dtype);
  AttendCost result;
  result.steps = blocks.count;
  result.shared_speedup = blocks.clocks / blocks.shared_clocks;
  MatmulCost& cost = result.cost;
  cost.compute_ns = result.steps * blocks.clocks / gpu.rate(dtype).load_clock_ghz;
  cost.a_bytes = cost.b_bytes = blocks.stream_bytes;
  if (blocks.held_bytes > 0) {
    cost.q_bytes = blocks.held_bytes;
    cost.prologue_ns = gpu.hbm_latency_ns + costs.matmul_op_ns + cost.q_bytes / gpu.cu_load_gb_per_s;
  }
  cost.operand_bytes = cost.a_bytes + cost.b_bytes + cost.q_bytes;

  const double room = resources.lds_bytes > 0 ? resources.lds_bytes : gpu.lds_bytes_per_workgroup_max;
  result.stages =
      std::clamp(static_cast<std::int32_t>(room / (2 * blocks.rows * d * e)), 1, costs.most_operand_stages);
  if (blocks.in_turn || works_in_turn(costs)) result.stages = kStagesOfMmaSync;
  if (tile.pipeline == Pipeline::serial) {
    const double block_ns = 2 * blocks.rows * d * e / gpu.cu_load_gb_per_s;
    const std::array<double, 3> latency_ns{gpu.l2_latency_ns, gpu.llc_latency_ns,
                                           gpu.memory_stage_latency_ns()};
    for (std::size_t level = 0; level < latency_ns.size(); ++level) {
      result.wait_ns[level] =
          result.steps * latency_ns[level] * (2 + block_ns / std::max(1e-9, gpu.hbm_latency_ns));
    }
    return result;
  }
  const MatmulTile block{blocks.rows, blocks.rows, blocks.cols, tile.waves, tile.pipeline};
  const auto from = [&](double latency_ns) {
    return result.steps * stage_interval_ns(gpu, dtype, block, result.stages, latency_ns);
  };
  result.from_llc_ns = from(gpu.llc_latency_ns);
  result.from_memory_ns = from(gpu.memory_stage_latency_ns());
  return result;
}

AttendCost attend_cost(const Gpu& gpu, const KernelCosts& costs, DType dtype, const MatmulTile& given,
                       const Resources& resources, const AttendWork& work) {
  TRITAX_ASSERT(given.m > 0 && given.n > 0 && given.waves > 0, "attend without a tile shape");
  MatmulTile tile = given;
  const bool turns = in_turn(gpu, costs, given);
  if (turns) {
    if (costs.attend_block_keys > 0) tile.n = costs.attend_block_keys;
    tile.pipeline = Pipeline::overlapped;  // loads of keys and values overlap the work of waves
  }
  rate_of_attention(gpu, dtype);
  const double d = work.cols, e = bytes_of(dtype);
  MatmulTile overlapped = tile;
  overlapped.pipeline = Pipeline::overlapped;
  StreamedBlocks blocks;
  blocks.clocks = block_clocks(gpu, costs, dtype, tile, d);
  blocks.shared_clocks = block_clocks(gpu, costs, dtype, overlapped, d);
  blocks.in_turn = turns;
  blocks.rows = tile.n;
  blocks.cols = work.cols;
  blocks.count = std::ceil(static_cast<double>(work.keys) / tile.n);
  blocks.stream_bytes = work.keys * d * e;
  if (work.begins) blocks.held_bytes = work.rows * d * e;
  AttendCost result = cost_of_blocks(gpu, costs, dtype, tile, resources, blocks);
  result.cost.flops = 4.0 * work.rows * work.keys * d;
  if (costs.compiled_attention) {
    for (double& wait_ns : result.wait_ns) wait_ns += result.steps * chain_ns(gpu, d);
  }
  return result;
}

}  // namespace tritax
