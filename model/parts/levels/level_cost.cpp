#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "model/cost/attend_cost.hpp"
#include "model/cost/matmul_step.hpp"
#include "model/parts/kernels.hpp"
#include "model/parts/levels/levels.hpp"

namespace tritax {

namespace {

using Part = std::pair<const char*, double>;

// Combines parts: side by side (overlapped), or the first three in turn beside the port (serial).
LevelCost combined(Pipeline pipeline, Part matrix, Part vector, Part lds, Part port) {
  LevelCost cost;
  if (pipeline == Pipeline::serial) {
    const double in_turn = matrix.second + vector.second + lds.second;
    if (in_turn < port.second) return {port.second, port.first};
    std::array<Part, 3> parts{matrix, vector, lds};
    const auto worst = std::max_element(parts.begin(), parts.end(),
                                        [](const Part& a, const Part& b) { return a.second < b.second; });
    return {in_turn, fmt::format("{}, in turn with the rest", worst->first)};
  }
  for (const Part& part : {matrix, vector, lds, port}) {
    if (part.second > cost.clk) cost = {part.second, part.first};
  }
  return cost;
}

// Matrix cycles of the waves (or groups) of the fullest SIMD, one after the other.
double matrix_clk(const Gpu& gpu, const Levels& levels) {
  double clk = 0;
  for (const WaveProduct& product : levels.products) clk += product.instructions() * product.clk_each;
  // A group has one wave on every SIMD that it uses.
  const std::int32_t simds = std::max(1, gpu.simds_per_cu / levels.waves_in_group);
  return clk * ceil_div(levels.waves.waves(), simds) / gpu.rate(levels.dtype).issue_efficiency;
}

// Bytes that wgmma instructions read: each reads its rows of A and its columns of B.
double read_by_instructions(const WaveProduct& product, double e) {
  return static_cast<double>(product.instructions()) * (product.instruction.m + product.instruction.n) *
         product.instruction.k * e;
}

double lds_clk(const Gpu& gpu, const Levels& levels) {
  const double lane_bytes = static_cast<double>(kBytesOfLane) * gpu.lanes_per_wave;
  const WaveMoves& moves = levels.moves;
  double bytes = 0;
  switch (levels.feed) {
    case Feed::through_cache:
      return 0;
    case Feed::by_copy_engine:
      for (const WaveProduct& product : levels.products) {
        bytes += read_by_instructions(product, bytes_of(levels.dtype)) * levels.waves.waves();
      }
      break;
    case Feed::through_registers:
    case Feed::by_copies:
      bytes =
          (moves.writes_a + moves.writes_b + moves.reads_a + moves.reads_b) * lane_bytes * levels.tile.waves;
      break;
  }
  return bytes / gpu.lds_bytes_per_clk;
}

// Exponentials and other vector work on scores and results, as in model/cost/attend_cost.hpp.
double vector_clk(const Gpu& gpu, const Levels& levels) {
  if (levels.waves.loop == TileLoop::gemm) return 0;
  const WaveProduct& scores = levels.products.front();
  const double m = static_cast<double>(scores.along_m) * scores.instruction.m;
  const double n = scores.n, d = scores.k;
  const bool one_unit = gpu.lanes_per_wave == 64;
  const std::int32_t simds = std::max(1, gpu.simds_per_cu / levels.waves_in_group);
  const double in_turn = ceil_div(levels.waves.waves(), simds);
  const double exponentials = m * n / 4 / levels.waves_in_group;
  const double plain = (4 * m * n + m * d) / (one_unit ? 16 : 32) / levels.waves_in_group;
  return in_turn * (one_unit ? exponentials + plain : std::max(exponentials, plain));
}

// Operand bytes of a step through the port towards L2. Through the cache every wave loads its own operands;
// waves with common operands find them in L1.
double operand_bytes(const Levels& levels) {
  const MatmulTile& tile = levels.tile;
  const double e = bytes_of(levels.dtype);
  if (levels.waves.loop == TileLoop::attention) return 2 * e * tile.n * tile.k;
  return (tile.m + tile.n) * e * tile.k;
}

}  // namespace

LevelCost tile_cost(const Gpu& gpu, const KernelCosts& costs, const Levels& levels) {
  if (levels.waves.loop == TileLoop::attention) {
    const AttendWork work{levels.tile.m, levels.tile.k, levels.tile.n};
    const AttendCost cost = attend_cost(gpu, costs, levels.dtype, levels.tile, {}, work);
    return {cost.cost.compute_ns / cost.steps * gpu.rate(levels.dtype).load_clock_ghz, "its law"};
  }
  return {
      matmul_step_clk(gpu, costs, gpu.rate(levels.dtype), bytes_of(levels.dtype), levels.tile),
      "its law",
  };
}

LevelCost wave_cost(const Gpu& gpu, const KernelCosts& costs, const Levels& levels) {
  const double port = std::max(costs.matmul_least_step_clk,
                               costs.matmul_step_clk + operand_bytes(levels) / gpu.cu_l2_bytes_per_clk);
  Part matrix{"the matrix cores", matrix_clk(gpu, levels)};
  Part lds{"LDS", lds_clk(gpu, levels)};
  if (levels.feed == Feed::by_copy_engine) {  // wgmma reads while it multiplies, in every pipeline
    if (lds.second > matrix.second) matrix = {"operands of wgmma out of LDS", lds.second};
    lds.second = 0;
  }
  return combined(levels.tile.pipeline, matrix, {"vector work", vector_clk(gpu, levels)}, lds,
                  {"the port towards L2", port});
}

}  // namespace tritax
