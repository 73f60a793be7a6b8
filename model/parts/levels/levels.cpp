#include "model/parts/levels/levels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/core/error.hpp"
#include "model/cost/matmul_cost.hpp"
#include "model/parts/kernels.hpp"
#include "model/schedule/wave_schedule.hpp"

namespace tritax {

namespace {

constexpr std::int32_t kRegistersOfCounters =
    24;                                      // as compilers report for such kernels, without the other parts
constexpr std::int32_t kPrefetchStages = 3;  // default of the pass prefetch-block

WaveProduct product_of(const Gpu& gpu, DType dtype, std::string_view name, std::int32_t m, std::int32_t n,
                       std::int32_t k) {
  WaveProduct product{name, m, n, k, matrix_instruction_for(gpu, dtype, m, n)};
  product.along_m = ceil_div(m, product.instruction.m);
  product.along_n = ceil_div(n, product.instruction.n);
  product.along_k = ceil_div(k, product.instruction.k);
  product.clk_each = interval_clk(gpu, dtype, product.instruction);
  return product;
}

// K that one read of a wave covers, for the rows of an instruction; whole instructions.
std::int32_t depth_of_read(const Gpu& gpu, const Levels& levels) {
  const MatrixInstruction& instruction = levels.products.front().instruction;
  const std::int32_t e = bytes_of(levels.dtype);
  std::int32_t depth = instruction.k;  // wgmma reads LDS itself
  if (levels.feed == Feed::through_cache) depth = kBlockRowBytes / e;
  if (levels.feed == Feed::through_registers || levels.feed == Feed::by_copies) {
    depth = kBytesOfLane * gpu.lanes_per_wave / (instruction.m * e);
  }
  return std::max(1, depth / instruction.k) * instruction.k;
}

std::int32_t moves_of(const Gpu& gpu, double bytes) {
  return static_cast<std::int32_t>(std::ceil(bytes / (kBytesOfLane * gpu.lanes_per_wave)));
}

std::int32_t blocks_of(DType dtype, std::int32_t rows, std::int32_t cols) {
  return ceil_div(rows, kBlockRows) * ceil_div(cols * bytes_of(dtype), kBlockRowBytes);
}

// Sets the stages in LDS and their bytes, together with the bytes that stay beside them and a finished tile
// on its way out.
void place_stages(const Gpu& gpu, const KernelCosts& costs, double stage_bytes, double beside_bytes,
                  double out_bytes, Levels& levels) {
  const double room = gpu.lds_bytes_per_workgroup_max - beside_bytes;
  double staging = 0;
  switch (levels.feed) {
    case Feed::through_cache:
      levels.stages = 1;
      levels.prefetch_distance = kPrefetchStages;
      return;
    case Feed::through_registers:
      levels.stages = levels.tile.pipeline == Pipeline::overlapped && 2 * stage_bytes <= room ? 2 : 1;
      levels.prefetch_distance = 1;
      break;
    case Feed::by_copies:
    case Feed::by_copy_engine:
      staging = stages_tiles(gpu, levels.dtype) ? out_bytes + costs.lds_bytes_of_senders : 0;
      levels.stages = std::clamp(static_cast<std::int32_t>((room - staging) / stage_bytes), 2,
                                 std::max(2, most_stages(costs, levels.dtype)));
      levels.prefetch_distance = levels.stages - 1;
      break;
  }
  levels.lds_bytes =
      static_cast<std::int32_t>(std::ceil(levels.stages * stage_bytes + staging + beside_bytes));
}

std::string tile_text(const Gpu& gpu, const Levels& levels) {
  return fmt::format("tile {}x{}x{} of {} by {} waves on {}", levels.tile.m, levels.tile.n, levels.tile.k,
                     name_of(levels.dtype), levels.tile.waves, gpu.name);
}

void require_room(const Gpu& gpu, const Levels& levels) {
  if (levels.lds_bytes > gpu.lds_bytes_per_workgroup_max) {
    throw UserError(fmt::format(
        "{}: {} stages of operands take {} bytes of LDS, and a workgroup has {}; use "
        "a smaller tile_m, tile_n or tile_k",
        tile_text(gpu, levels), levels.stages, levels.lds_bytes, gpu.lds_bytes_per_workgroup_max));
  }
  const std::int32_t threads = levels.tile.waves * gpu.lanes_per_wave;
  const double available = std::min(gpu.registers_per_thread_max, std::floor(gpu.registers_per_cu / threads));
  const RegisterUse& use = levels.registers;
  if (use.total() <= available) return;
  throw UserError(
      fmt::format("{}: a thread needs {} registers ({} accumulators, {} fragments, {} in flight to LDS, {} "
                  "others), and has {:.0f}; use a smaller tile_m, tile_n or tile_k, or other waves",
                  tile_text(gpu, levels), use.total(), use.accumulators, use.fragments, use.in_flight,
                  use.others, available));
}

Levels begin(const Gpu& gpu, DType dtype, const MatmulTile& tile) {
  TRITAX_ASSERT(tile.m > 0 && tile.n > 0 && tile.k > 0 && tile.waves > 0, "levels of a tile without a shape");
  check_waves(tile.waves, gpu);
  if (is_wave_schedule(tile.pipeline)) {
    throw UserError(
        fmt::format("pipeline {}: the levels below a tile are those of waves that are alike and "
                    "keep to no schedule; use serial or overlapped",
                    kPipelineNames[static_cast<std::size_t>(tile.pipeline)]));
  }
  Levels levels;
  levels.dtype = dtype;
  levels.tile = tile;
  levels.feed = feed_of(gpu, dtype);
  const std::vector<MatrixInstruction> known = matrix_instructions(gpu.arch, dtype);
  levels.waves_in_group = known.empty() ? 1 : known.front().waves;
  if (tile.waves % levels.waves_in_group != 0) {
    throw UserError(
        fmt::format("waves: {} is not a multiple of {}; the matrix instructions of {} take whole groups",
                    tile.waves, levels.waves_in_group, gpu.name));
  }
  return levels;
}

std::int32_t per_lane(const Gpu& gpu, const Levels& levels, double words) {
  return static_cast<std::int32_t>(std::ceil(words / (gpu.lanes_per_wave * levels.waves_in_group)));
}

double accumulator_words(const WaveProduct& product) {
  return static_cast<double>(product.along_m) * product.instruction.m * product.along_n *
         product.instruction.n;
}

// Two sets of fragments of one read's depth, for `rows` rows in total.
std::int32_t fragment_words(const Gpu& gpu, const Levels& levels, const WaveProduct& product,
                            std::int32_t rows) {
  const std::int32_t depth = std::min(levels.read_depth, product.k);
  return per_lane(gpu, levels, 2.0 * rows * depth * bytes_of(levels.dtype) / 4);
}

void count_moves(const Gpu& gpu, double a_bytes, double b_bytes, double wave_a_bytes, double wave_b_bytes,
                 Levels& levels) {
  WaveMoves& moves = levels.moves;
  if (levels.feed == Feed::by_copy_engine) {
    moves.loads_a = moves.loads_b = 1;
    return;
  }
  moves.loads_a = moves_of(gpu, a_bytes / levels.tile.waves);
  moves.loads_b = moves_of(gpu, b_bytes / levels.tile.waves);
  if (levels.feed == Feed::through_registers) {
    moves.writes_a = moves.loads_a;
    moves.writes_b = moves.loads_b;
  }
  moves.reads_a = moves_of(gpu, wave_a_bytes);
  moves.reads_b = moves_of(gpu, wave_b_bytes);
}

}  // namespace

double WaveProduct::flops_share() const {
  const double computed = static_cast<double>(instructions()) * instruction.m * instruction.n * instruction.k;
  return static_cast<double>(m) * n * k / computed;
}

double Levels::flops() const {
  double flops = 0;
  for (const WaveProduct& product : products) flops += 2.0 * product.m * product.n * product.k;
  return flops * waves.waves();
}

Feed feed_of(const Gpu& gpu, DType dtype) {
  if (gpu.arch == "xe-hpc") return Feed::through_cache;
  if (!gpu.async_tile_copy) return Feed::through_registers;
  const DType like = dtype == DType::fp64 ? dtype : DType::fp16;  // all types but fp64 have the same feed
  const std::vector<MatrixInstruction> known = matrix_instructions(gpu.arch, like);
  return !known.empty() && known.front().from_lds ? Feed::by_copy_engine : Feed::by_copies;
}

Levels lower_matmul(const Gpu& gpu, const KernelCosts& costs, DType dtype, const MatmulTile& given) {
  MatmulTile tile = given;
  tile.k = step_depth(gpu, costs, dtype, given);
  Levels levels = begin(gpu, dtype, tile);
  levels.waves = gemm_wave_tiles(tile.m, tile.n, tile.waves / levels.waves_in_group);
  levels.products = {product_of(gpu, dtype, "C = A·B", levels.waves.rows(), levels.waves.n, tile.k)};
  const WaveProduct& product = levels.products.front();
  levels.read_depth = depth_of_read(gpu, levels);
  const double e = bytes_of(dtype);
  const double a_bytes = tile.m * e * tile.k, b_bytes = tile.n * e * tile.k;
  place_stages(gpu, costs, a_bytes + b_bytes, 0, tile.m * e * tile.n, levels);

  RegisterUse& use = levels.registers;
  use.accumulators = per_lane(gpu, levels, accumulator_words(product) * bytes_of(accumulator_of(dtype)) / 4);
  use.others = kRegistersOfCounters;
  const double wave_a = product.m * e * tile.k, wave_b = product.n * e * tile.k;
  if (levels.feed == Feed::through_cache) {
    use.fragments = per_lane(gpu, levels, (wave_a + wave_b) / 4);
    levels.moves.loads_a = blocks_of(dtype, product.m, tile.k);
    levels.moves.loads_b = blocks_of(dtype, tile.k, product.n);
    levels.moves.reads_a = levels.moves.loads_a;
    levels.moves.reads_b = levels.moves.loads_b;
  } else {
    if (levels.feed != Feed::by_copy_engine) {
      use.fragments = fragment_words(gpu, levels, product, product.m + product.n);
    }
    if (levels.feed == Feed::through_registers) {
      use.in_flight =
          static_cast<std::int32_t>(std::ceil((a_bytes + b_bytes) / (4.0 * tile.waves * gpu.lanes_per_wave)));
    }
    count_moves(gpu, a_bytes, b_bytes, wave_a, wave_b, levels);
  }
  require_room(gpu, levels);
  return levels;
}

Levels lower_attend(const Gpu& gpu, const KernelCosts& costs, DType dtype, const MatmulTile& tile) {
  Levels levels = begin(gpu, dtype, tile);
  levels.waves = attention_wave_tiles(tile.m, tile.n, tile.k, tile.waves / levels.waves_in_group);
  levels.products = {product_of(gpu, dtype, "S = Q·Kᵀ", levels.waves.m, tile.n, tile.k),
                     product_of(gpu, dtype, "O = P·V", levels.waves.m, tile.k, tile.n)};
  const WaveProduct& scores = levels.products.front();
  levels.read_depth = depth_of_read(gpu, levels);
  const double e = bytes_of(dtype);
  const double block_bytes = tile.n * e * tile.k;  // of keys, and the same of values
  const double query_bytes = tile.m * e * tile.k;
  // wgmma reads queries from LDS as well.
  const bool queries_in_lds = levels.feed == Feed::by_copy_engine;
  place_stages(gpu, costs, 2 * block_bytes, queries_in_lds ? query_bytes : 0, 0, levels);

  RegisterUse& use = levels.registers;
  use.accumulators = per_lane(
      gpu, levels, accumulator_words(levels.products.front()) + accumulator_words(levels.products.back()));
  use.others = kRegistersOfCounters;
  // Weights, in the type of the operands, are an operand of the second product.
  use.fragments = per_lane(gpu, levels, scores.m * e * tile.n / 4);
  if (!queries_in_lds) use.fragments += per_lane(gpu, levels, scores.m * e * tile.k / 4);
  if (levels.feed == Feed::through_cache) {
    use.fragments += per_lane(gpu, levels, block_bytes / 4);
    levels.moves.loads_a = levels.moves.reads_a = blocks_of(dtype, tile.k, tile.n);
    levels.moves.loads_b = levels.moves.reads_b = blocks_of(dtype, tile.n, tile.k);
  } else {
    if (!queries_in_lds) use.fragments += fragment_words(gpu, levels, scores, scores.instruction.n);
    count_moves(gpu, block_bytes, block_bytes, block_bytes, block_bytes, levels);
  }
  require_room(gpu, levels);
  return levels;
}

}  // namespace tritax
