#include "model/cost/attend_cost.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/core/error.hpp"

namespace tritax {

namespace {

constexpr std::int32_t kRowsOfWave = 16;  // least rows of a matrix instruction
constexpr double kOpsPerScore = 4;
constexpr double kMaskOps = 6;     // three comparisons, two conjunctions, a selection
constexpr double kExpPerSimd = 4;  // per clock
// For waves of 64 lanes: clocks between two instructions of one wave, clocks of a 16×16 matrix instruction,
// and the most bytes that a lane moves per instruction.
constexpr double kIssueClk = 4;
constexpr double kMatrixInstructionClk = 16;
constexpr double kBytesOfInstruction = 16;

double rounded_up(std::int32_t value, std::int32_t to) { return (value + to - 1) / to * to; }

constexpr double kPeakShareOfMmaSync = 0.629;  // on GPUs with wgmma
constexpr std::int32_t kStagesOfMmaSync = 2;

// Compiled kernels mask every block, also those that all queries see.
double ops_per_score(const KernelCosts& costs) {
  return costs.compiled_attention ? kOpsPerScore + kMaskOps : kOpsPerScore;
}

// Asynchronous matrix instructions need a whole group of rows.
bool in_turn(const Gpu& gpu, const KernelCosts& costs, const MatmulTile& tile) {
  return costs.attend_block_keys > 0 ||
         (costs.compiled_attention && gpu.async_tile_copy && tile.m < kWgmmaRows);
}

// Cycles per block of tile.n keys if each wave does its work in turn.
double clocks_in_turn(const Gpu& gpu, const KernelCosts& costs, const MatrixRate& rate,
                      const MatmulTile& tile, double d, double e) {
  const bool one_unit = gpu.lanes_per_wave == 64;
  const double m = rounded_up(tile.m, kRowsOfWave);
  const double n = tile.n, simds = gpu.simds_per_cu;
  const double reached = gpu.async_tile_copy ? kPeakShareOfMmaSync : rate.issue_efficiency;
  const double t_matrix = 4 * m * n * d / (rate.flop_per_clk_per_cu * reached);
  const double t_exp = m * n / (kExpPerSimd * simds);
  const double t_plain = (ops_per_score(costs) * m * n + m * d) / ((one_unit ? 16 : 32) * simds);
  const double lds_bytes = (1 + m / kRowsOfWave) * 2 * n * d * e + m * d * e;
  return t_matrix + (one_unit ? t_exp + t_plain : std::max(t_exp, t_plain)) +
         lds_bytes / gpu.lds_bytes_per_clk;
}

// Cycles of a block of tile.n keys.
double block_clocks(const Gpu& gpu, const KernelCosts& costs, DType dtype, const MatmulTile& tile, double d) {
  const MatrixRate& rate = gpu.rate(dtype);
  const bool wgmma = gpu.async_tile_copy;
  const bool one_unit = gpu.lanes_per_wave == 64;
  const double m = rounded_up(tile.m, wgmma ? kWgmmaRows : kRowsOfWave);
  const double n = tile.n;
  const double block_bytes = 2 * n * d * bytes_of(dtype);
  const double simds = gpu.simds_per_cu;
  const std::int32_t waves = std::min<std::int32_t>(tile.waves, static_cast<std::int32_t>(m) / kRowsOfWave);
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

AttendCost attend_cost(const Gpu& gpu, const KernelCosts& costs, DType dtype, const MatmulTile& given,
                       const Resources& resources, const AttendWork& work) {
  TRITAX_ASSERT(given.m > 0 && given.n > 0 && given.waves > 0, "attend without a tile shape");
  MatmulTile tile = given;
  const bool turns = in_turn(gpu, costs, given);
  if (turns) {
    if (costs.attend_block_keys > 0) tile.n = costs.attend_block_keys;
    tile.pipeline = Pipeline::overlapped;  // loads of keys and values overlap the work of waves
  }
  const MatrixRate& rate = gpu.rate(dtype);
  if (rate.flop_per_clk_per_cu <= 0) {
    throw UserError(fmt::format("dtype {}: {} has no matrix instruction for it", name_of(dtype), gpu.name));
  }
  const double d = work.cols, e = bytes_of(dtype);
  MatmulTile overlapped = tile;
  overlapped.pipeline = Pipeline::overlapped;
  const double clocks = block_clocks(gpu, costs, dtype, tile, d);

  AttendCost result;
  result.steps = std::ceil(static_cast<double>(work.keys) / tile.n);
  result.shared_speedup = clocks / block_clocks(gpu, costs, dtype, overlapped, d);
  MatmulCost& cost = result.cost;
  cost.compute_ns = result.steps * clocks / rate.load_clock_ghz;
  cost.a_bytes = cost.b_bytes = work.keys * d * e;
  cost.flops = 4.0 * work.rows * work.keys * d;
  if (work.begins) {
    cost.q_bytes = work.rows * d * e;
    cost.prologue_ns = gpu.hbm_latency_ns + costs.matmul_op_ns + cost.q_bytes / gpu.cu_load_gb_per_s;
  }
  cost.operand_bytes = cost.a_bytes + cost.b_bytes + cost.q_bytes;

  const double room = resources.lds_bytes > 0 ? resources.lds_bytes : gpu.lds_bytes_per_workgroup_max;
  result.stages =
      std::clamp(static_cast<std::int32_t>(room / (2 * tile.n * d * e)), 1, costs.most_operand_stages);
  if (turns) result.stages = kStagesOfMmaSync;
  if (costs.compiled_attention) result.wait_ns.fill(result.steps * gpu.attend_chain_ns);
  if (tile.pipeline == Pipeline::serial) {
    const double block_ns = 2 * tile.n * d * e / gpu.cu_load_gb_per_s;
    const std::array<double, 3> latency_ns{gpu.l2_latency_ns, gpu.llc_latency_ns,
                                           gpu.memory_stage_latency_ns()};
    for (std::size_t level = 0; level < latency_ns.size(); ++level) {
      result.wait_ns[level] +=
          result.steps * latency_ns[level] * (2 + block_ns / std::max(1e-9, gpu.hbm_latency_ns));
    }
    return result;
  }
  const MatmulTile block{tile.n, tile.n, work.cols, tile.waves, tile.pipeline};
  const auto from = [&](double latency_ns) {
    return result.steps * stage_interval_ns(gpu, dtype, block, result.stages, latency_ns);
  };
  result.from_llc_ns = from(gpu.llc_latency_ns);
  result.from_memory_ns = from(gpu.memory_stage_latency_ns());
  return result;
}

}  // namespace tritax
