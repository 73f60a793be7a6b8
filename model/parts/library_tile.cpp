#include "model/parts/library_tile.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "model/core/ceil_div.hpp"
#include "model/core/error.hpp"
#include "model/cost/matmul_cost.hpp"
#include "model/cost/move_cost.hpp"
#include "model/parts/kernels.hpp"

namespace tritax {

namespace {

// Stages of operands in LDS: one in use, one arrived, one on its way. cuBLAS hardly ever has fewer.
constexpr std::int32_t kFewestStages = 3;

// Workspace for the parts of K: cuBLAS's default on Hopper (NVIDIA cuBLAS documentation, cublasSetWorkspace);
// assumed for AMD's libraries too.
constexpr double kWorkspaceBytes = 32.0 * 1024 * 1024;

// Time to add up the parts of K: all parts are read, and the result is written once.
double add_parts_ns(const GemmShape& gemm, const Machine& machine, const KernelCosts& vendor,
                    std::int32_t parts) {
  if (parts == 1) return 0;
  const double elements = static_cast<double>(gemm.m) * static_cast<double>(gemm.n);
  const double bytes = elements * (parts * bytes_of(accumulator_of(gemm.dtype)) + bytes_of(gemm.dtype));
  const Gpu& gpu = machine.gpu;
  const double latency_ns = machine.library.kernel_start_ns + gpu.l2_latency_ns;
  return kernel_gap_ns(machine.host, vendor) + latency_ns + bytes / gpu.hbm_gb_per_s;
}

// Time of the whole GEMM of one GPU by the cost law; none if the tile does not fit.
std::optional<double> gemm_ns(const GemmShape& gemm, const Machine& machine, const KernelCosts& vendor,
                              const LibraryTile& choice, double matmul_share) {
  const Gpu& gpu = machine.gpu;
  const MatmulTile& tile = choice.tile;
  Resources resources;
  try {
    resources = matmul_resources(gpu, vendor, gemm.dtype, tile);
  } catch (const UserError&) {
    return std::nullopt;  // not a candidate on this GPU
  }
  const std::int64_t depth = std::min(gemm.k, depth_of_part(gemm.k, choice));
  MatmulCost cost = matmul_cost(gpu, vendor, gemm.dtype, tile, tile.m, tile.n, depth);
  cost.compute_ns /= matmul_share;
  const std::int64_t columns = gemm.n;
  const std::int64_t rows_of_tiles = ceil_div(gemm.m, tile.m), columns_of_tiles = ceil_div(columns, tile.n);
  const std::int64_t tiles = rows_of_tiles * columns_of_tiles * choice.parts;
  const DType stored = choice.parts > 1 ? accumulator_of(gemm.dtype) : gemm.dtype;
  const std::int32_t stages = operand_stages(gpu, vendor, gemm.dtype, tile, resources.lds_bytes);
  if (gpu.async_tile_copy && stages < kFewestStages) return std::nullopt;
  const double store_ns = static_cast<double>(tile.m) * tile.n * bytes_of(stored) /
                          unit_gb_per_s(gpu, vendor, DataMoveKind::local_store);
  const auto rounds = static_cast<double>(ceil_div(tiles, gpu.cu_count()));
  const double e = bytes_of(gemm.dtype);
  const double operands = static_cast<double>(gemm.k) * e * static_cast<double>(gemm.m + columns);
  const double result = static_cast<double>(gemm.m * columns) * e;
  const double fetched = static_cast<double>(tiles) * cost.operand_bytes;
  // Stages arrive as late as an operand that no other tile has fetched yet. All tiles of the first round
  // fetch at once, so that all wait for memory. In later rounds only tiles of the first row and of the first
  // column do; they count if they are most tiles.
  const double others =
      (1 - 1.0 / static_cast<double>(rows_of_tiles)) * (1 - 1.0 / static_cast<double>(columns_of_tiles));
  const double steps = matmul_steps(vendor, tile, depth, e);
  const double arrival_ns =
      steps * stage_interval_ns(gpu, gemm.dtype, tile, stages, gpu.memory_stage_latency_ns());
  const double first_ns = std::max(cost.compute_ns, arrival_ns);
  const double later_ns = others < 0.5 ? first_ns : cost.compute_ns;
  const double tiles_ns =
      first_ns + (rounds - 1) * later_ns + rounds * (cost.prologue_ns + vendor.stage_op_ns + store_ns);
  const double l2_ns = fetched / (gpu.xcds * l2_gb_per_s(gpu, vendor));
  const double memory_ns = (operands + result) / gpu.hbm_gb_per_s;
  return std::max({tiles_ns, l2_ns, memory_ns}) + add_parts_ns(gemm, machine, vendor, choice.parts);
}

// Whether a tile is larger than the whole matrix, rounded up to the smallest edge.
bool exceeds(const MatmulTile& tile, const GemmShape& gemm) {
  constexpr std::int64_t smallest_edge = 16;
  const auto rounded = [](std::int64_t size) { return ceil_div(size, smallest_edge) * smallest_edge; };
  return tile.m > rounded(gemm.m) || tile.n > rounded(gemm.n);
}

struct Shape {
  std::int32_t m = 0;
  std::int32_t n = 0;
};

// All pairs of edges that satisfy `allowed`, largest first.
template <typename Allowed>
std::vector<Shape> shapes_of(std::span<const std::int32_t> edges, const Allowed& allowed) {
  std::vector<Shape> shapes;
  for (const std::int32_t m : edges) {
    for (const std::int32_t n : edges) {
      if (allowed(m, n)) shapes.push_back({m, n});
    }
  }
  std::stable_sort(shapes.begin(), shapes.end(),
                   [](const Shape& a, const Shape& b) { return a.m * a.n > b.m * b.n; });
  return shapes;
}

// Kernels of the library, among which it picks.
struct Kernels {
  std::vector<Shape> shapes;
  std::int32_t step = 0;  // depth of a K step, elements
  LibraryRoutine routine = LibraryRoutine::gemm;
  double matmul_share = 1;  // share of the rate of the matrix cores
};

// Tall and square tiles down to what a decode step with a few rows needs.
std::vector<Shape> library_shapes(const Gpu& gpu, DType dtype) {
  if (gpu.async_tile_copy && dtype == DType::fp64) {
    return {{128, 128}, {256, 64}, {64, 256}, {128, 64}, {64, 128}, {64, 64}, {64, 32}, {32, 64}, {32, 32}};
  }
  if (gpu.async_tile_copy && dtype != DType::fp32) {
    constexpr std::array<std::int32_t, 12> edges{256, 192, 160, 128, 112, 96, 80, 64, 48, 32, 16, 320};
    return shapes_of(
        edges, [](std::int32_t m, std::int32_t n) { return m % kWgmmaRows == 0 || n % kWgmmaRows == 0; });
  }
  if (gpu.async_tile_copy)
    return {{256, 128}, {128, 256}, {128, 64}, {64, 128}, {64, 64}, {64, 32}, {32, 64}};
  if (bytes_of(dtype) != 2) {
    return {{256, 256}, {256, 128}, {128, 256}, {128, 128}, {256, 64}, {64, 256},
            {128, 64},  {64, 128},  {64, 64},   {32, 128},  {32, 64},  {16, 64}};
  }
  constexpr std::array<std::int32_t, 9> edges{256, 224, 192, 160, 128, 96, 64, 32, 16};
  return shapes_of(edges, [](std::int32_t, std::int32_t) { return true; });
}

// Depths of the K steps of a tile's kernels. The 16-bit kernels of hipBLASLt fill the LDS that small tiles
// leave free: known steps have up to 28 Ki elements and a depth of at most 512.
std::vector<std::int32_t> depths_of(const Shape& shape, std::int32_t usual, const Gpu& gpu, DType dtype) {
  constexpr std::int32_t most_elements = 28 * 1024, deepest = 512;
  std::vector<std::int32_t> depths{usual};
  if (gpu.async_tile_copy || bytes_of(dtype) != 2) return depths;
  for (std::int32_t depth = 2 * usual; depth <= deepest && (shape.m + shape.n) * depth <= most_elements;
       depth *= 2)
    depths.push_back(depth);
  return depths;
}

std::vector<MatmulTile> tiles_of(const Shape& shape, const Kernels& kernels, const Gpu& gpu, DType dtype) {
  std::vector<MatmulTile> tiles;
  for (const std::int32_t depth : depths_of(shape, kernels.step, gpu, dtype)) {
    for (const std::int32_t waves : {4, 8})
      tiles.push_back({shape.m, shape.n, depth, waves, Pipeline::overlapped});
  }
  return tiles;
}

// The largest power of two up to 16 that divides the bytes of every row of A, B and C.
std::int64_t row_alignment(const GemmShape& gemm) {
  std::int64_t together = 16 | gemm.k * bytes_of(gemm.dtype);
  together |= gemm.n * bytes_of(gemm.dtype);
  if (gemm.least_n > 0) together |= gemm.least_n * bytes_of(gemm.dtype);
  return together & -together;
}

Kernels library_kernels(const GemmShape& gemm, const Machine& machine) {
  constexpr std::int64_t tensor_map_bytes = 16;  // alignment that a copy requires
  constexpr std::int64_t async_copy_bytes = 4;
  const std::int64_t alignment = row_alignment(gemm);
  const bool odd = alignment < async_copy_bytes;
  const double share = odd ? machine.library.odd_row_share : machine.library.even_row_share;
  if (bytes_of(gemm.dtype) == 2 && alignment < tensor_map_bytes && share > 0) {
    return {{{256, 128}, {128, 256}, {128, 128}, {64, 64}},
            odd ? 32 : 64,
            odd ? LibraryRoutine::gemm_odd_rows : LibraryRoutine::gemm_even_rows,
            share};
  }
  return {library_shapes(machine.gpu, gemm.dtype), 128 / bytes_of(gemm.dtype)};
}

// Whether the library has no tuned kernel for a similar shape, and so uses its single kernel for all such
// shapes.
bool has_untuned_kernel(const GemmShape& gemm, const Gpu& gpu) {
  constexpr std::int64_t deepest_tuned = 4096;
  constexpr std::int64_t untuned = 16384;
  constexpr double largest_tuned = 1.5e10;  // multiplications, at K beyond 2048
  const double multiplications =
      static_cast<double>(gemm.m) * static_cast<double>(gemm.n) * static_cast<double>(gemm.k);
  return gpu.arch == "gfx942" && gemm.dtype == DType::fp32 && multiplications > largest_tuned &&
         2 * gemm.k > deepest_tuned + untuned;
}

}  // namespace

std::int64_t depth_of_part(std::int64_t k, const LibraryTile& choice) {
  return ceil_div(ceil_div(k, choice.tile.k), choice.parts) * choice.tile.k;
}

LibraryTile library_tile(const GemmShape& gemm, const Machine& machine) {
  if (has_untuned_kernel(gemm, machine.gpu)) return {{64, 256, 16, 4, Pipeline::overlapped}};
  constexpr std::array<std::int32_t, 8> parts_of_k{1, 2, 3, 4, 6, 8, 12, 16};
  const double part_bytes = static_cast<double>(gemm.m * gemm.n) * bytes_of(accumulator_of(gemm.dtype));
  const Kernels kernels = library_kernels(gemm, machine);
  const KernelCosts vendor = costs(machine, KernelProfile::vendor);
  std::int32_t smallest =
      std::numeric_limits<std::int32_t>::max();  // elements of a tile that fits every matrix
  for (const Shape& shape : kernels.shapes) smallest = std::min(smallest, shape.m * shape.n);
  LibraryTile best;
  double best_ns = 0;
  for (const std::int32_t parts : parts_of_k) {
    if (parts > 1 && parts * part_bytes > kWorkspaceBytes) break;
    for (const Shape& shape : kernels.shapes) {
      for (const MatmulTile& tile : tiles_of(shape, kernels, machine.gpu, gemm.dtype)) {
        if (parts > 1 && gemm.k < std::int64_t{2} * parts * tile.k) continue;
        if (exceeds(tile, gemm) && tile.m * tile.n > smallest) continue;
        const LibraryTile choice{tile, parts, accumulator_of(gemm.dtype), kernels.routine};
        const std::optional<double> ns = gemm_ns(gemm, machine, vendor, choice, kernels.matmul_share);
        if (!ns || (best.tile.m > 0 && *ns >= best_ns)) continue;
        best_ns = *ns;
        best = choice;
      }
    }
  }
  if (best.tile.m == 0) {
    throw UserError("library: none of the library's tiles fits a compute unit of " + machine.gpu.name);
  }
  // The last part may be empty.
  best.parts = static_cast<std::int32_t>(ceil_div(gemm.k, depth_of_part(gemm.k, best)));
  return best;
}

}  // namespace tritax
