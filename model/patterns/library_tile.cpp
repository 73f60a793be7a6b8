#include "model/patterns/library_tile.hpp"

#include <optional>
#include <utility>

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

}  // namespace

MatmulTile library_tile(const GemmAllScatter& workload, const Gpu& gpu) {
  // Tall and square tiles down to what a decode step with a few rows needs.
  constexpr std::pair<std::int32_t, std::int32_t> shapes[] = {{256, 256}, {256, 128}, {128, 256}, {128, 128},
                                                              {256, 64},  {64, 256},  {128, 64},  {64, 128},
                                                              {64, 64},   {32, 128},  {32, 64},   {16, 64}};
  MatmulTile best;
  double best_ns = 0;
  for (const auto& [m, n] : shapes) {
    for (const std::int32_t waves : {4, 8}) {
      const MatmulTile tile{m, n, 128 / bytes_of(workload.dtype), waves, Pipeline::overlapped};
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
