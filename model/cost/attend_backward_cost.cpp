#include "model/cost/attend_backward_cost.hpp"

#include <algorithm>
#include <cmath>

#include "model/core/error.hpp"
#include "model/cost/attend_blocks.hpp"

namespace tritax {

namespace {

constexpr double kFlopsOfPair = 10;     // of a query and a key, per column
constexpr double kPlainOfScore = 6;     // vector instructions besides the exponential
constexpr double kBytesOfSum = 4;       // fp32
constexpr double kSlicedQueries = 16;   // queries that waves of 64 lanes take at a time
constexpr double kColumnsOfWgmma = 64;  // columns of dQ per instruction

struct BackwardBlock {
  double m = 0, n = 0, d = 0, e = 0;
  double waves = 0;
};

double backward_lds_bytes(const Gpu& gpu, bool wgmma, const BackwardBlock& block) {
  const auto& [m, n, d, e, w] = block;
  if (wgmma) {
    const double groups = n / kWgmmaRows;
    return (3 * n * d + 4 * groups * m * d + (1 + std::max(1.0, d / kColumnsOfWgmma)) * m * n) * e +
           2 * kBytesOfSum * m * d;
  }
  if (gpu.lanes_per_wave == 64)
    return ((2 + 4 * w) * m * d + 2 * n * d * m / kSlicedQueries + (1 + w) * m * n) * e;
  return ((2 * w + 2) * m * d + 6 * n * d + (w / 2 + 6) * m * n) * e;
}

// Instructions that move the bytes of LDS, and the additions, per SIMD of waves of 64 lanes: reads of columns
// and writes of T move half as many bytes as others.
double backward_moves(const Gpu& gpu, const BackwardBlock& block) {
  const auto& [m, n, d, e, w] = block;
  const double narrow = (2 * w * m * d + n * d * m / kSlicedQueries + (1 + w) * m * n) * e;
  const double bytes = backward_lds_bytes(gpu, false, block) + narrow;
  return (bytes / kBytesOfInstruction + m * d) / (gpu.lanes_per_wave * gpu.simds_per_cu);
}

struct BackwardClocks {
  double matrix = 0, matrix_at_peak = 0, exponentials = 0, plain = 0, port = 0, lds = 0;
  double moves = 0;        // issued by a wave
  double handed_over = 0;  // reads of Q and dO
  double exchange = 0;     // of T, between waves
};

BackwardClocks clocks_of_backward(const Gpu& gpu, const KernelCosts& costs, const MatrixRate& rate,
                                  bool wgmma, const BackwardBlock& block) {
  const auto& [m, n, d, e, waves] = block;
  const double simds = gpu.simds_per_cu;
  const double busy = std::min(1.0, waves / simds);
  const double lanes = gpu.lanes_per_wave == 64 ? 16 : 32;
  const double reached =
      works_in_turn(costs) && gpu.async_tile_copy ? kPeakShareOfMmaSync : rate.issue_efficiency;
  BackwardClocks t;
  t.matrix_at_peak = kFlopsOfPair * m * n * d / (rate.flop_per_clk_per_cu * busy);
  t.matrix = t.matrix_at_peak / reached;
  t.exponentials = m * n / (kExpPerSimd * simds * busy);
  t.plain = (kPlainOfScore * m * n + m * d) / (lanes * simds * busy);
  const double port_bytes = m * (2 * d * e + 2 * kBytesOfSum + kBytesOfSum * d);
  t.port =
      std::max(costs.matmul_least_step_clk, costs.matmul_step_clk + port_bytes / gpu.cu_l2_bytes_per_clk);
  t.lds = backward_lds_bytes(gpu, wgmma, block) / gpu.lds_bytes_per_clk;
  t.moves = kIssueClk * backward_moves(gpu, block);
  t.exchange = (1 + waves) * m * n * e / gpu.lds_bytes_per_clk;
  t.handed_over = waves * 4 * m * d * e / gpu.lds_bytes_per_clk;
  return t;
}

BackwardBlock backward_block(const MatmulTile& tile, DType dtype, std::int32_t least_keys, double d) {
  BackwardBlock block{rounded_up(tile.m, kLeastEdge), rounded_up(tile.n, least_keys), d,
                      static_cast<double>(bytes_of(dtype)), 0};
  block.waves = std::min<double>(tile.waves, block.n / kLeastEdge);
  return block;
}

double vector_clocks(const Gpu& gpu, const BackwardClocks& t) {
  return gpu.lanes_per_wave == 64 ? t.exponentials + t.plain : std::max(t.exponentials, t.plain);
}

double backward_clocks(const Gpu& gpu, const KernelCosts& costs, DType dtype, const MatmulTile& tile,
                       double d) {
  const bool wgmma = gpu.async_tile_copy && !works_in_turn(costs);
  const BackwardClocks t = clocks_of_backward(
      gpu, costs, gpu.rate(dtype), wgmma, backward_block(tile, dtype, wgmma ? kWgmmaRows : kLeastEdge, d));
  const double vector = vector_clocks(gpu, t);
  if (works_in_turn(costs)) return std::max(t.matrix + vector + t.lds, t.port);
  if (wgmma) {
    const double exposed = t.exponentials + (tile.pipeline == Pipeline::serial ? t.plain : 0);
    return std::max(std::max(t.matrix, t.lds) + exposed, t.port);
  }
  const double issue = vector + t.matrix_at_peak * kIssueClk / kMatrixInstructionClk;
  switch (tile.pipeline) {
    case Pipeline::serial:
      return std::max(t.matrix + vector + t.lds, t.port);
    case Pipeline::overlapped:
      return std::max({t.matrix + vector + t.exchange, t.lds, t.port});
    case Pipeline::ping_pong:
      return std::max({t.matrix + vector, t.lds, t.port});
    case Pipeline::interleaved:
      return std::max({t.matrix, issue + t.moves, t.lds, t.port});
    case Pipeline::producer_consumer:
      return std::max({t.matrix + vector + t.handed_over, t.lds, t.port});
  }
  TRITAX_ASSERT(false, "a known pipeline");
}

// The same where the work of other workgroups fills all waits.
double shared_backward_clocks(const Gpu& gpu, const KernelCosts& costs, DType dtype, const MatmulTile& given,
                              double d) {
  MatmulTile tile = given;
  tile.pipeline = Pipeline::overlapped;
  if (works_in_turn(costs) || gpu.async_tile_copy) return backward_clocks(gpu, costs, dtype, tile, d);
  const BackwardClocks t =
      clocks_of_backward(gpu, costs, gpu.rate(dtype), false, backward_block(tile, dtype, kLeastEdge, d));
  return std::max({t.matrix, vector_clocks(gpu, t), t.lds, t.port});
}

}  // namespace

AttendCost attend_backward_cost(const Gpu& gpu, const KernelCosts& costs, DType dtype,
                                const MatmulTile& given, const Resources& resources,
                                const BackwardWork& work) {
  TRITAX_ASSERT(given.m > 0 && given.n > 0 && given.waves > 0, "attend_backward without a tile shape");
  MatmulTile tile = given;
  if (works_in_turn(costs))
    tile.pipeline = Pipeline::overlapped;  // loads of blocks overlap the work of waves
  rate_of_attention(gpu, dtype);
  const double d = work.cols, e = bytes_of(dtype);
  StreamedBlocks blocks;
  blocks.clocks = backward_clocks(gpu, costs, dtype, tile, d);
  blocks.shared_clocks = shared_backward_clocks(gpu, costs, dtype, tile, d);
  blocks.rows = tile.m;
  blocks.cols = work.cols;
  blocks.count = std::ceil(static_cast<double>(work.queries) / tile.m);
  blocks.stream_bytes = work.queries * (d * e + kBytesOfSum);
  if (work.begins) blocks.held_bytes = 2 * work.keys * d * e;
  AttendCost result = cost_of_blocks(gpu, costs, dtype, tile, resources, blocks);
  MatmulCost& cost = result.cost;
  cost.sum_bytes = work.queries * d * kBytesOfSum;
  cost.operand_bytes += cost.sum_bytes;
  cost.flops = kFlopsOfPair * work.queries * work.keys * d;
  return result;
}

AttendCost attend_cost_of(const Gpu& gpu, const KernelCosts& costs, DType dtype, const MatmulTile& tile,
                          const Resources& resources, const Op& op, bool begins) {
  const std::int32_t range = op.k_end - op.k_begin;
  if (op.kind == OpKind::attend)
    return attend_cost(gpu, costs, dtype, tile, resources, {op.rect.rows, op.rect.cols, range, begins});
  return attend_backward_cost(gpu, costs, dtype, tile, resources,
                              {op.rect.rows, op.rect.cols / 2, range, begins});
}

}  // namespace tritax
