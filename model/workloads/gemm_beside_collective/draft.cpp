#include "model/workloads/gemm_beside_collective/draft.hpp"

#include <algorithm>
#include <string>

#include "model/parts/collectives.hpp"
#include "model/parts/grid_order.hpp"

namespace tritax {

BesideDraft::BesideDraft(std::string_view pattern, const GemmBeside& problem_, const Machine& machine_,
                         const GemmKnobs& knobs_)
    : problem(problem_),
      machine(machine_),
      knobs(knobs_),
      tile(matmul_tile(knobs_)),
      gemm_resources(matmul_resources(machine_.gpu, machine_.interpreter, problem_.gemm.dtype, tile)),
      builder(std::string(pattern), problem_.gpus) {
  const DType dtype = problem.gemm.dtype;
  const auto m = static_cast<std::int32_t>(problem.gemm.m);
  const auto n = static_cast<std::int32_t>(problem.gemm.n);
  const auto k = static_cast<std::int32_t>(problem.gemm.k);
  a = builder.buffer({"A", dtype, m, k, tile.m, tile.k});
  b = builder.buffer({"B", dtype, k, n, tile.k, tile.n});
  c = builder.buffer({"C", dtype, m, n, tile.m, tile.n});
  x = builder.buffer({"X", dtype, static_cast<std::int32_t>(problem.rows) * ranks(),
                      static_cast<std::int32_t>(problem.cols), tile.m, tile.n});
  builder.result(c);
  builder.input(builder.whole(a));
  builder.input(builder.whole(b));
  for (int rank = 0; rank < ranks(); ++rank) {
    builder.input({x, rank, block_of(rank)});
    builder.expect_product(builder.whole(c, rank), builder.whole(a, rank), builder.whole(b, rank));
    builder.expect_copy({x, kEveryRank, block_of(rank)}, {x, rank, block_of(rank)});
  }
}

Rect BesideDraft::block_of(int rank) const {
  const auto rows = static_cast<std::int32_t>(problem.rows);
  return {rank * rows, 0, rows, static_cast<std::int32_t>(problem.cols)};
}

std::vector<Rect> tiles_of_c(const BesideDraft& draft) {
  const auto m = static_cast<std::int32_t>(draft.problem.gemm.m);
  const auto n = static_cast<std::int32_t>(draft.problem.gemm.n);
  const TileGrid grid{ceil_div(m, draft.tile.m), ceil_div(n, draft.tile.n)};
  std::vector<Rect> tiles;
  for (std::int32_t t = 0; t < grid.count(); ++t) {
    const TileIndex at = grouped_tile(t, grid, draft.knobs.group_m);
    const std::int32_t row = at.row * draft.tile.m;
    const std::int32_t col = at.col * draft.tile.n;
    tiles.push_back({row, col, std::min(draft.tile.m, m - row), std::min(draft.tile.n, n - col)});
  }
  return tiles;
}

std::vector<Rect> pieces_of_block(const BesideDraft& draft, int rank) {
  const std::int32_t height = draft.knobs.comm_tile_m > 0 ? draft.knobs.comm_tile_m : draft.tile.m;
  const std::int32_t width = draft.knobs.comm_tile_n > 0 ? draft.knobs.comm_tile_n : draft.tile.n;
  return cut(draft.block_of(rank), height, width);
}

void multiply(BesideDraft& draft, const Rect& tile, int rank) {
  draft.builder.matmul(draft.a, draft.b, tile, 0, static_cast<std::int32_t>(draft.problem.gemm.k));
  draft.builder.store(draft.c, tile, rank);
}

void send(BesideDraft& draft, const Rect& piece, std::int32_t index, int rank) {
  for (const int peer : peers_of(draft.knobs.peer_order, draft.ranks(), rank, index)) {
    draft.builder.copy(draft.x, piece, peer, draft.x, piece.row, piece.col, rank);
  }
}

std::int32_t gemm_kernel(BesideDraft& draft, int rank, std::int32_t workgroups) {
  Kernel kernel;
  kernel.name = "gemm";
  kernel.rank = rank;
  kernel.resources = draft.gemm_resources;
  kernel.tile = draft.tile;
  kernel.placement = Placement::persistent;
  const std::int32_t id = draft.builder.kernel(std::move(kernel));
  const std::vector<Rect> tiles = tiles_of_c(draft);
  for (std::int32_t p = 0; p < workgroups; ++p) {
    draft.builder.workgroup(id);
    for (auto i = static_cast<std::size_t>(first_item(draft.knobs, draft.machine.gpu, p, workgroups));
         i < tiles.size(); i += static_cast<std::size_t>(workgroups)) {
      multiply(draft, tiles[i], rank);
    }
  }
  return id;
}

}  // namespace tritax
