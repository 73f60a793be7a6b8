#include "model/patterns/library_tile.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "model/core/error.hpp"
#include "model/cost/matmul_cost.hpp"
#include "model/patterns/common.hpp"

namespace tritax {

namespace {

// Time of the whole GEMM of one GPU by the cost law, nothing if the tile does not fit.
std::optional<double> gemm_ns(const GemmAllScatter& workload, const Gpu& gpu, const MatmulTile& tile) {
  try {
    matmul_resources(gpu, workload.dtype, tile);
  } catch (const UserError&) {
    return std::nullopt;  // not a candidate on this GPU
  }
  const MatmulCost cost = matmul_cost(gpu, workload.dtype, tile, tile.m, tile.n, workload.k);
  const std::int32_t tiles =
      ceil_div(static_cast<std::int32_t>(workload.m), tile.m) * ceil_div(widest_block(workload), tile.n);
  const double store_ns =
      static_cast<double>(tile.m) * tile.n * bytes_of(workload.dtype) / gpu.cu_store_gb_per_s;
  return ceil_div(tiles, gpu.cu_count()) * (cost.compute_ns + cost.prologue_ns + store_ns);
}

struct Shape {
  std::int32_t m = 0;
  std::int32_t n = 0;
};

// Largest first: tall and square tiles down to what a decode step with a few rows needs.
std::vector<Shape> library_shapes(const Gpu& gpu, DType dtype) {
  if (gpu.async_tile_copy || bytes_of(dtype) != 2) {
    return {{256, 256}, {256, 128}, {128, 256}, {128, 128}, {256, 64}, {64, 256},
            {128, 64},  {64, 128},  {64, 64},   {32, 128},  {32, 64},  {16, 64}};
  }
  constexpr std::int32_t smallest_tile = 1024;  // elements
  std::vector<Shape> shapes;
  for (const std::int32_t m : {256, 224, 192, 160, 128, 96, 64, 32, 16}) {
    for (const std::int32_t n : {256, 224, 192, 160, 128, 96, 64, 32, 16}) {
      if (m * n >= smallest_tile) shapes.push_back({m, n});
    }
  }
  std::stable_sort(shapes.begin(), shapes.end(),
                   [](const Shape& a, const Shape& b) { return a.m * a.n > b.m * b.n; });
  return shapes;
}

// Whether the library has tuned no kernel for a shape like this, and takes the one that it has for all.
bool has_untuned_kernel(const GemmAllScatter& workload, const Gpu& gpu) {
  constexpr std::int64_t deepest_tuned = 4096;
  constexpr std::int64_t untuned = 16384;
  constexpr double largest_tuned = 1.5e10;  // multiplications, at K beyond 2048
  const double multiplications =
      static_cast<double>(workload.m) * widest_block(workload) * static_cast<double>(workload.k);
  return gpu.arch == "gfx942" && workload.dtype == DType::fp32 && multiplications > largest_tuned &&
         2 * workload.k > deepest_tuned + untuned;
}

}  // namespace

MatmulTile library_tile(const GemmAllScatter& workload, const Gpu& gpu) {
  if (has_untuned_kernel(workload, gpu)) return {64, 256, 16, 4, Pipeline::overlapped};
  MatmulTile best;
  double best_ns = 0;
  for (const Shape& shape : library_shapes(gpu, workload.dtype)) {
    for (const std::int32_t waves : {4, 8}) {
      const MatmulTile tile{shape.m, shape.n, 128 / bytes_of(workload.dtype), waves, Pipeline::overlapped};
      const std::optional<double> ns = gemm_ns(workload, gpu, tile);
      if (!ns || (best.m > 0 && *ns >= best_ns)) continue;
      best_ns = *ns;
      best = tile;
    }
  }
  if (best.m == 0) throw UserError("library: none of the library's tiles fits a compute unit of " + gpu.name);
  return best;
}

}  // namespace tritax
