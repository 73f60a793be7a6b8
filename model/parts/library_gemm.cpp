#include "model/parts/library_gemm.hpp"

#include <algorithm>
#include <string>

#include "model/cost/matmul_cost.hpp"
#include "model/parts/grid_order.hpp"
#include "model/parts/kernels.hpp"
#include "model/parts/library_gather.hpp"

namespace tritax {

namespace {

// Elements per workgroup that adds parts: one for each of its 32 × 16 threads
// (cublasLt::splitKreduce_kernel<32, 16, …>).
constexpr std::int32_t kLeastPiece = 512;

struct Target {
  std::int16_t buffer = -1;
  Rect rect;
};

Rect inside(const Target& target, const Rect& piece) {
  return {target.rect.row + piece.row, target.rect.col + piece.col, piece.rows, piece.cols};
}

LibraryKernel call_of(const LibraryGemmPlan& plan, LibraryRoutine routine) {
  if (!plan.picks) return {.routine = routine};
  return {.routine = routine,
          .rows = plan.rect.rows,
          .columns = plan.rect.cols,
          .depth = plan.k,
          .dtype = plan.dtype};
}

// Tile number t of the target.
Rect tile_of(const LibraryGemmPlan& plan, std::int32_t t) {
  const MatmulTile& tile = plan.library.tile;
  const TileGrid grid{ceil_div(plan.rect.rows, tile.m), ceil_div(plan.rect.cols, tile.n)};
  const TileIndex index = grouped_tile(t, grid, plan.order.group_m);
  const std::int32_t row = index.row * tile.m;
  const std::int32_t col = index.col * tile.n;
  return {row, col, std::min(tile.m, plan.rect.rows - row), std::min(tile.n, plan.rect.cols - col)};
}

// With several parts of K, stores to `parts`, one part below the other.
std::int32_t compute_kernel(ScheduleBuilder& builder, const Machine& machine, const LibraryGemmPlan& plan,
                            const Target& target) {
  const LibraryTile& library = plan.library;
  const Gpu& gpu = machine.gpu;
  Kernel kernel;
  kernel.name = "library_gemm";
  kernel.rank = plan.rank;
  kernel.profile = KernelProfile::vendor;
  // The LDS of the vendor's kernel is not known; assumed: as much as this project's kernels use for the tile.
  kernel.resources = matmul_resources(gpu, machine.interpreter, plan.dtype, library.tile);
  kernel.tile = library.tile;
  kernel.library = call_of(plan, library.routine);
  const std::int32_t id = builder.kernel(std::move(kernel));
  const auto depth = static_cast<std::int32_t>(depth_of_part(plan.k, library));
  const std::int32_t tiles =
      ceil_div(plan.rect.rows, library.tile.m) * ceil_div(plan.rect.cols, library.tile.n);
  const std::int32_t items = tiles * library.parts;
  const bool persistent = stages_tiles(gpu, plan.dtype) && !plan.shares_units;
  const std::int32_t workgroups = persistent ? std::min(items, gpu.cu_count()) : items;
  for (std::int32_t p = 0; p < workgroups; ++p) {
    builder.workgroup(id);
    for (std::int32_t item = p; item < items; item += workgroups) {
      // The parts of a tile run side by side.
      const std::int32_t part = item % library.parts;
      Rect rect = tile_of(plan, first_item(plan.order, gpu, item / library.parts, tiles));
      const Rect operands{plan.a_row + rect.row, plan.b_column + rect.col, rect.rows, rect.cols};
      builder.matmul(plan.a, plan.b, operands, part * depth, std::min(plan.k, (part + 1) * depth));
      rect.row += part * (library.parts > 1 ? plan.rect.rows : 0);
      builder.store(target.buffer, inside(target, rect), plan.rank);
    }
  }
  return id;
}

// The kernel that adds up the parts of K.
std::int32_t adding_kernel(ScheduleBuilder& builder, const Machine& machine, const LibraryGemmPlan& plan,
                           const Target& target) {
  Kernel kernel;
  kernel.name = std::string(kAddingKernel);
  kernel.profile = KernelProfile::vendor;
  kernel.rank = plan.rank;
  kernel.resources = copy_resources();
  kernel.library = call_of(plan, LibraryRoutine::plain);
  const std::int32_t id = builder.kernel(std::move(kernel));
  const Rect whole{0, 0, plan.rect.rows, plan.rect.cols};
  const std::int64_t worth = std::int64_t{whole.rows} * whole.cols / kLeastPiece;
  const std::int32_t most = kCopiesOfCu * machine.gpu.cu_count();
  const auto pieces = static_cast<std::int32_t>(std::clamp<std::int64_t>(worth, 1, most));
  for (std::int32_t i = 0; i < pieces; ++i) {
    const Rect piece = piece_of(whole, i, pieces);
    if (piece.rows == 0) break;
    builder.workgroup(id);
    Rect part = piece;
    builder.load(plan.parts, part, plan.rank);
    for (std::int32_t other = 1; other < plan.library.parts; ++other) {
      part.row += plan.rect.rows;
      builder.reduce(plan.parts, part, plan.rank);
    }
    builder.store(target.buffer, inside(target, piece), plan.rank);
  }
  return id;
}

}  // namespace

std::int16_t add_buffer_of_parts(ScheduleBuilder& builder, const LibraryTile& library, std::int64_t m,
                                 std::int32_t columns) {
  if (library.parts == 1) return -1;
  return builder.buffer({"parts", library.part_dtype, static_cast<std::int32_t>(m * library.parts), columns,
                         library.tile.m, library.tile.n});
}

std::vector<std::int32_t> add_library_gemm(ScheduleBuilder& builder, const Machine& machine,
                                           const LibraryGemmPlan& plan) {
  const Target target{plan.target, plan.rect};
  if (plan.library.parts == 1) return {compute_kernel(builder, machine, plan, target)};
  const Target between{plan.parts, {0, 0, plan.rect.rows, plan.rect.cols}};
  const std::int32_t computing = compute_kernel(builder, machine, plan, between);
  return {computing, adding_kernel(builder, machine, plan, target)};
}

}  // namespace tritax
