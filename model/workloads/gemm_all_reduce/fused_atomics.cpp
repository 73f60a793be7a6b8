// Fused atomics: every workgroup adds its computed tiles onto the sum on every rank (ROCm/iris ex. 08).
//
//   G workgroups:  for t in p', p'+G, …: store zeros -> own sum(t)
//                  exchange arrivals with the counterparts of all peers: they have the same tiles
//                  for t in p', p'+G, …: matmul; for ranks: atomic add onto sum(t) there
//                  exchange arrivals
//
// The order of the summands is free, and each addition rounds to the dtype of C. No GPU adds fp8, so its sums
// are fp32, and a second kernel rounds them.
#include <algorithm>

#include "model/workloads/gemm_all_reduce/patterns.hpp"

namespace tritax {

namespace {

struct Sums {
  std::int16_t sum = -1;
  std::int16_t zeros = -1;
  std::int16_t zeroed = -1;  // flags (workgroup, rank)
};

void add_workgroup(SumDraft& draft, int rank, const std::vector<SumTile>& tiles, const Sums& sums,
                   std::int32_t p, std::int32_t workgroups) {
  ScheduleBuilder& builder = draft.builder;
  const auto first = static_cast<std::size_t>(draft.first_item(p, workgroups));
  const auto step = static_cast<std::size_t>(workgroups);
  if (draft.sends()) {
    for (std::size_t i = first; i < tiles.size(); i += step) {
      const Rect& rect = tiles[i].rect;
      builder.load(sums.zeros, {0, 0, rect.rows, rect.cols}, rank);
      builder.store(sums.sum, rect, rank);
    }
    exchange_arrivals(builder, draft.peers_of(rank, p), draft.ranks(), rank, p, sums.zeroed,
                      draft.knobs.lock);
  }
  for (std::size_t i = first; i < tiles.size(); i += step) {
    multiply(draft, rank, tiles[i].rect);
    if (!draft.sends()) builder.store(sums.sum, tiles[i].rect, rank);
    if (!draft.sends()) continue;
    for (const int to : ranks_from(draft.knobs.peer_order, draft.ranks(), rank, p))
      builder.atomic_add(sums.sum, tiles[i].rect, to);
  }
  exchange_done(draft, rank, p);
}

std::int32_t rounding_kernel(SumDraft& draft, int rank, const std::vector<SumTile>& tiles, std::int16_t sum) {
  Kernel kernel;
  kernel.name = "round";
  kernel.rank = rank;
  kernel.resources = tile_copy_resources(draft.machine.gpu, copy_resources().threads, kMostOfReducer);
  const std::int32_t id = draft.builder.kernel(std::move(kernel));
  const auto rows = static_cast<std::int32_t>(kMostOfReducer / draft.tile.n);
  for (const SumTile& tile : tiles) {
    const Rect& rect = tile.rect;
    for (std::int32_t row = 0; row < rect.rows; row += rows) {
      draft.builder.workgroup(id);
      const Rect piece{rect.row + row, rect.col, std::min(rows, rect.rows - row), rect.cols};
      draft.builder.load(sum, piece, rank);
      draft.builder.store(draft.c, piece, rank);
    }
  }
  return id;
}

}  // namespace

Schedule build_all_reduce_atomics(const PartialSums& problem, const Machine& machine, const SumKnobs& knobs) {
  SumDraft draft("fused-atomics", problem, machine, knobs, true, problem.dtype);
  const std::vector<SumTile> tiles = whole_tiles(draft);
  const std::int32_t workgroups = all_cus(machine.gpu, knobs.gemm_cus);
  const DType dtype = sum_dtype(problem.dtype);
  const bool rounds = draft.sends() && dtype != problem.dtype;
  Sums sums;
  sums.sum = draft.c;
  if (rounds) {
    sums.sum = draft.builder.buffer({"sum", dtype, static_cast<std::int32_t>(problem.m),
                                     static_cast<std::int32_t>(problem.n), draft.tile.m, draft.tile.n});
  }
  if (draft.sends()) {
    sums.zeros =
        draft.builder.buffer({"zeros", dtype, draft.tile.m, draft.tile.n, draft.tile.m, draft.tile.n});
    draft.builder.input(draft.builder.whole(sums.zeros), InputValues::zero);
    sums.zeroed = draft.builder.flags("zeroed", workgroups * draft.ranks());
  }
  add_done(draft, workgroups);
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    Kernel kernel;
    kernel.name = "gemm_atomics";
    kernel.rank = rank;
    kernel.resources = draft.gemm_resources;
    kernel.tile = draft.tile;
    kernel.placement = Placement::persistent;
    const std::int32_t id = draft.builder.kernel(std::move(kernel));
    for (std::int32_t p = 0; p < workgroups; ++p) {
      draft.builder.workgroup(id);
      add_workgroup(draft, rank, tiles, sums, p, workgroups);
    }
    Graph kernels{{id, 0}};
    if (rounds) kernels.push_back({rounding_kernel(draft, rank, tiles, sums.sum), 0});
    host_program(draft.builder, rank, knobs, kernels);
  }
  return draft.builder.finish();
}

}  // namespace tritax
