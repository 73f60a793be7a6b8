#include "model/workloads/gemm_beside_collective/draft.hpp"

#include <algorithm>
#include <string>

#include "model/parts/collectives.hpp"
#include "model/parts/grid_order.hpp"

namespace tritax {

namespace {

std::int32_t rows_of_x(const GemmBeside& problem) {
  const auto rows = static_cast<std::int32_t>(problem.rows);
  if (problem.gathers()) return rows * problem.gpus;
  if (problem.collective == BesideCollective::all_reduce) return rows;
  const std::int32_t widest = block_of(array_of(problem), 0).rows;
  return problem.sums() ? widest : widest * problem.gpus;
}

// What X must hold of the blocks that `rank` sends, adds up or receives.
void expect_collective(BesideDraft& draft, int rank) {
  ScheduleBuilder& builder = draft.builder;
  const Rect block = draft.block_of(rank);
  switch (draft.problem.collective) {
    case BesideCollective::all_gather:
      return builder.expect_copy({draft.x, kEveryRank, block}, {draft.x, rank, block});
    case BesideCollective::all_reduce:
      return builder.expect_sum({draft.x, kEveryRank, block}, {draft.own, kEveryRank, block});
    case BesideCollective::reduce_scatter:
      return builder.expect_sum({draft.x, rank, draft.place_of(rank, rank, block)},
                                {draft.own, kEveryRank, block});
    case BesideCollective::all_to_all:
      for (int from = 0; from < draft.ranks(); ++from)
        builder.expect_copy({draft.x, rank, draft.place_of(from, rank, block)}, {draft.own, from, block});
  }
}

}  // namespace

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
  const auto rows = static_cast<std::int32_t>(problem.rows);
  const auto cols = static_cast<std::int32_t>(problem.cols);
  if (!problem.gathers()) own = builder.buffer({"own", dtype, rows, cols, tile.m, tile.n});
  x = builder.buffer({"X", dtype, rows_of_x(problem), cols, tile.m, tile.n});
  if (problem.gathers()) own = x;
  builder.result(c);
  builder.input(builder.whole(a));
  builder.input(builder.whole(b));
  if (!problem.gathers()) builder.input(builder.whole(own));
  for (int rank = 0; rank < ranks(); ++rank) {
    if (problem.gathers()) builder.input({x, rank, block_of(rank)});
    builder.expect_product(builder.whole(c, rank), builder.whole(a, rank), builder.whole(b, rank));
    expect_collective(*this, rank);
  }
}

Rect BesideDraft::block_of(int rank) const {
  if (!problem.gathers()) return tritax::block_of(array_of(problem), rank);
  const auto rows = static_cast<std::int32_t>(problem.rows);
  return {rank * rows, 0, rows, static_cast<std::int32_t>(problem.cols)};
}

Rect BesideDraft::place_of(int from, int to, Rect rect) const {
  if (problem.collective == BesideCollective::reduce_scatter) rect.row -= block_of(to).row;
  if (problem.collective == BesideCollective::all_to_all)
    rect.row += from * block_of(0).rows - block_of(to).row;
  return rect;
}

TileIndex piece_of(const BesideDraft& draft) {
  const GemmKnobs& knobs = draft.knobs;
  TileIndex size{knobs.comm_tile_m > 0 ? knobs.comm_tile_m : draft.tile.m,
                 knobs.comm_tile_n > 0 ? knobs.comm_tile_n : draft.tile.n};
  if (!draft.problem.sums() || knobs.comm_tile_m > 0) return size;
  while (std::int64_t{size.row} * size.col > kMostOfReducer) size.row = ceil_div(size.row, 2);
  return size;
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

std::vector<BesidePiece> pieces_of(const BesideDraft& draft, int rank) {
  const TileIndex size = piece_of(draft);
  const auto cut_block = [&](int to) {
    std::vector<BesidePiece> pieces;
    for (const Rect& rect : cut(draft.block_of(to), size.row, size.col)) pieces.push_back({rect, to});
    return pieces;
  };
  if (draft.problem.collective != BesideCollective::all_to_all) return cut_block(rank);
  std::vector<std::vector<BesidePiece>> by_peer;
  for (const int peer : draft.peers_of(rank, 0)) by_peer.push_back(cut_block(peer));
  std::vector<BesidePiece> all = merged(by_peer, draft.knobs.peer_order == PeerOrder::staggered);
  const std::vector<BesidePiece> here = cut_block(rank);
  all.insert(all.end(), here.begin(), here.end());
  return all;
}

void multiply(BesideDraft& draft, const Rect& tile, int rank) {
  draft.builder.matmul(draft.a, draft.b, tile, 0, static_cast<std::int32_t>(draft.problem.gemm.k));
  draft.builder.store(draft.c, tile, rank);
}

void move(BesideDraft& draft, const BesidePiece& piece, std::int32_t index, int rank) {
  ScheduleBuilder& builder = draft.builder;
  const Rect& rect = piece.rect;
  const Rect place = draft.place_of(rank, piece.to, rect);
  const auto copy_to = [&](int to) { builder.copy(draft.x, place, to, draft.own, rect.row, rect.col, rank); };
  if (draft.problem.collective == BesideCollective::all_to_all) return copy_to(piece.to);
  const std::vector<int> peers = draft.peers_of(rank, index);
  if (draft.problem.gathers()) {
    std::for_each(peers.begin(), peers.end(), copy_to);
    return;
  }
  builder.load(draft.own, rect, rank);
  for (const int peer : peers) builder.reduce(draft.own, rect, peer);
  builder.store(draft.x, place, rank);
  if (draft.problem.collective == BesideCollective::reduce_scatter) return;
  for (const int peer : peers) builder.store(draft.x, place, peer);
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
