#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "model/microbench/launch_and_wait.hpp"
#include "model/microbench/schedules.hpp"
#include "model/parts/grid_order.hpp"
#include "model/schedule/builder.hpp"

namespace tritax {

Schedule matmul_tiles(int ranks, DType dtype, std::int32_t m, std::int32_t n, std::int32_t k, int workgroups,
                      int tiles, bool store_each) {
  ScheduleBuilder builder("matmul tiles", ranks);
  // As square a grid of operand tiles as the workgroups fill, so that operands are shared as in a GEMM.
  int rows = 1;
  while (rows * rows < workgroups) ++rows;
  const std::int32_t k_step = 128 / bytes_of(dtype);
  const int cols = (workgroups + rows - 1) / rows;
  const std::int16_t a = builder.buffer({"A", dtype, rows * m, k, m, k_step});
  const std::int16_t b = builder.buffer({"B", dtype, k, cols * n, k_step, n});
  const std::int16_t c = builder.buffer({"C", dtype, rows * m, cols * n, m, n});
  std::vector<std::int32_t> kernels;
  for (int rank = 0; rank < ranks; ++rank) {
    Kernel kernel;
    kernel.name = "tiles";
    kernel.rank = rank;
    kernel.tile = {m, n, k_step, 8, Pipeline::overlapped};
    kernels.push_back(builder.kernel(std::move(kernel)));
    for (int p = 0; p < workgroups; ++p) {
      builder.workgroup(kernels.back());
      const Rect rect{p % rows * m, p / rows * n, m, n};
      for (int t = 0; t < tiles; ++t) {
        builder.matmul(a, b, rect, 0, k);
        if (store_each || t + 1 == tiles) builder.store(c, rect, rank);
      }
    }
  }
  launch_and_wait(builder, ranks, kernels);
  return builder.finish();
}

namespace {
// In K steps.
int steps_behind(int row, int col, Stagger stagger) {
  constexpr int kMost = 12, kFar = 4;
  switch (stagger) {
    case Stagger::none:
      return 0;
    case Stagger::between_columns:
      return col % kMost;
    case Stagger::between_rows:
      return row % kMost;
    case Stagger::each:
      return (row + col) % kMost;
    case Stagger::far:  // 5 and 7 have no divisor with 12 in common: all steps come up in every row and
                        // column
      return kFar * ((5 * row + 7 * col) % kMost);
  }
  return 0;
}
}  // namespace

Schedule staggered_tiles(std::int32_t m, std::int32_t n, std::int32_t k, int workgroups, int tiles,
                         Stagger stagger) {
  ScheduleBuilder builder("staggered tiles", 1);
  constexpr std::int32_t kStep = 64;
  int rows = 1;
  while (rows * rows < workgroups) ++rows;
  const int cols = (workgroups + rows - 1) / rows;
  const std::int16_t a = builder.buffer({"A", DType::bf16, rows * m, k, m, kStep});
  const std::int16_t b = builder.buffer({"B", DType::bf16, k, cols * n, kStep, n});
  const std::int16_t c = builder.buffer({"C", DType::bf16, rows * m, cols * n, m, n});
  Kernel kernel;
  kernel.name = "tiles";
  kernel.rank = 0;
  kernel.tile = {m, n, kStep, 8, Pipeline::overlapped};
  const std::int32_t added = builder.kernel(std::move(kernel));
  for (int p = 0; p < workgroups; ++p) {
    builder.workgroup(added);
    const int row = p % rows, col = p / rows;
    const Rect rect{row * m, col * n, m, n};
    const std::int32_t behind = kStep * steps_behind(row, col, stagger);
    if (behind > 0) builder.matmul(a, b, rect, k - behind, k);
    for (int t = 0; t < tiles; ++t) builder.matmul(a, b, rect, 0, k);
    builder.store(c, rect, 0);
  }
  launch_and_wait(builder, 1, {added});
  return builder.finish();
}

Schedule low_tiles(std::int32_t n, std::int32_t k, int workgroups, int tiles, OpKind kind, int count) {
  constexpr std::int32_t kRows = 16, kStep = 64;
  ScheduleBuilder builder("low tiles", 1);
  const std::int16_t a = builder.buffer({"A", DType::bf16, kRows, k, kRows, kStep});
  const std::int16_t b = builder.buffer({"B", DType::bf16, k, workgroups * n, kStep, n});
  std::vector<std::int16_t> c;
  for (int i = 0; i <= (kind == OpKind::store ? count : 0); ++i)
    c.push_back(builder.buffer({"C" + std::to_string(i), DType::bf16, kRows, workgroups * n, kRows, n}));
  const std::int16_t stored = builder.flags("stored", workgroups);
  Kernel kernel;
  kernel.name = "tiles";
  kernel.tile = {128, n, kStep, 8, Pipeline::overlapped};
  const std::int32_t id = builder.kernel(std::move(kernel));
  for (int p = 0; p < workgroups; ++p) {
    builder.workgroup(id);
    const Rect rect{0, p * n, kRows, n};
    for (int t = 0; t < tiles; ++t) {
      builder.matmul(a, b, rect, 0, k);
      for (const std::int16_t buffer : c) builder.store(buffer, rect, 0);
      for (int i = 0; i < (kind == OpKind::signal ? count : 0); ++i)
        builder.signal(stored, p, 1, 0, Scope::gpu, LockProtocol::load_store);
    }
  }
  launch_and_wait(builder, 1, {id});
  return builder.finish();
}

Schedule chain(std::int32_t k, int workgroups, int tiles, ChainEnd end) {
  constexpr std::int32_t kSide = 128, kStep = 64;
  ScheduleBuilder builder("chain", 1);
  const std::int16_t a = builder.buffer({"A", DType::bf16, kSide, k, kSide, kStep});
  const std::int16_t b = builder.buffer({"B", DType::bf16, k, workgroups * kSide, kStep, kSide});
  const std::int16_t c = builder.buffer({"C", DType::bf16, kSide, workgroups * kSide, kSide, kSide});
  const std::int16_t stored = builder.flags("stored", workgroups * tiles);
  Kernel kernel;
  kernel.name = "chain";
  kernel.tile = {kSide, kSide, kStep, 8, Pipeline::overlapped};
  kernel.placement = Placement::persistent;
  const std::int32_t id = builder.kernel(std::move(kernel));
  for (int p = 0; p < workgroups; ++p) {
    builder.workgroup(id);
    const Rect rect{0, p * kSide, kSide, kSide};
    for (int t = 0; t < tiles; ++t) {
      builder.matmul(a, b, rect, 0, k);
      if (end >= ChainEnd::store) builder.store(c, rect, 0);
      if (end >= ChainEnd::signal)
        builder.signal(stored, p * tiles + t, 1, 0, Scope::gpu, LockProtocol::load_store);
    }
  }
  for (int p = 0; p < workgroups && end >= ChainEnd::wait; ++p) {
    builder.workgroup(id);
    for (int t = 0; t < tiles; ++t)
      builder.wait(stored, p * tiles + t, 1, Scope::gpu, LockProtocol::load_store);
    if (end >= ChainEnd::barrier) builder.barrier();
  }
  launch_and_wait(builder, 1, {id});
  return builder.finish();
}

Schedule matmul_steps(int ranks, int count, bool in_graph, int workgroups) {
  constexpr std::int32_t kRows = 64, kCols = 128, kDepth = 4096, kStep = 64;
  ScheduleBuilder builder("matmul steps", ranks);
  const std::int16_t a = builder.buffer({"A", DType::bf16, kRows, kDepth, kRows, kStep});
  const std::int16_t b = builder.buffer({"B", DType::bf16, kDepth, kCols, kStep, kCols});
  for (int rank = 0; rank < ranks; ++rank) {
    builder.host(rank, HostOpKind::barrier);
    Graph graph;
    for (int i = 0; i < count; ++i) {
      Kernel kernel;
      kernel.name = "tile";
      kernel.rank = rank;
      kernel.tile = {kRows, kCols, kStep, 8, Pipeline::overlapped};
      const std::int32_t id = builder.kernel(std::move(kernel));
      for (int p = 0; p < workgroups; ++p) {
        builder.workgroup(id);
        builder.matmul(a, b, {0, 0, kRows, kCols}, 0, kDepth);
      }
      if (in_graph) {
        graph.push_back({id, 0});
      } else {
        builder.launch(rank, id);
      }
    }
    if (in_graph) builder.graph_launch(rank, std::move(graph));
    builder.host(rank, HostOpKind::device_synchronize);
    builder.host(rank, HostOpKind::barrier);
  }
  return builder.finish();
}

Schedule plain_gemm(const PlainGemm& gemm, std::int32_t compute_units, int ranks) {
  ScheduleBuilder builder("gemm", ranks);
  const std::int32_t k_step = 128 / bytes_of(gemm.dtype);
  const std::int16_t a = builder.buffer({"A", gemm.dtype, gemm.m, gemm.k, gemm.tile_m, k_step});
  const std::int16_t b = builder.buffer({"B", gemm.dtype, gemm.k, gemm.n, k_step, gemm.tile_n});
  const std::int16_t c = builder.buffer({"C", gemm.dtype, gemm.m, gemm.n, gemm.tile_m, gemm.tile_n});
  builder.result(c);
  builder.input(builder.whole(a));
  builder.input(builder.whole(b));
  const TileGrid grid{(gemm.m + gemm.tile_m - 1) / gemm.tile_m, (gemm.n + gemm.tile_n - 1) / gemm.tile_n};
  const std::int32_t workgroups = std::min(compute_units, grid.count());
  for (int rank = 0; rank < ranks; ++rank) {
    builder.expect_product(builder.whole(c, rank), builder.whole(a, rank), builder.whole(b, rank));
    Kernel kernel;
    kernel.name = "gemm";
    kernel.rank = rank;
    kernel.tile = {gemm.tile_m, gemm.tile_n, k_step, 8, Pipeline::overlapped};
    kernel.placement = Placement::persistent;
    const std::int32_t id = builder.kernel(std::move(kernel));
    for (std::int32_t p = 0; p < workgroups; ++p) {
      builder.workgroup(id);
      for (std::int32_t t = p; t < grid.count(); t += workgroups) {
        const TileIndex index = grouped_tile(t, grid, gemm.group_m);
        const std::int32_t row = index.row * gemm.tile_m;
        const std::int32_t col = index.col * gemm.tile_n;
        const Rect rect{row, col, std::min(gemm.tile_m, gemm.m - row), std::min(gemm.tile_n, gemm.n - col)};
        builder.matmul(a, b, rect, 0, gemm.k);
        builder.store(c, rect, rank);
      }
    }
    builder.launch(rank, id);
    builder.host(rank, HostOpKind::device_synchronize);
  }
  return builder.finish();
}

}  // namespace tritax
