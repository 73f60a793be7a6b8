// Fused atomics: every workgroup adds its computed tiles onto the sum at their owner (ROCm/iris ex. 08 for
// the all-reduce, ex. 22 for the reduce-scatter, with sums that begin at zero).
//
//   G workgroups:  for own tiles:      matmul; store sum(t)            the first summand: nothing is zeroed
//                  for peers:          begun[own] += 1 there
//                  for tiles of peers: matmul; wait until all workgroups of the owner have begun;
//                                      atomic add onto sum(t) there
//                  exchange arrivals with the counterparts of all peers
//
// The order of the summands is free, and each addition rounds to the dtype of C. No GPU adds fp8, so its sums
// are fp32, and a second kernel rounds them. Only the end of the kernel tells when the last summand has
// arrived.
#include <algorithm>

#include "model/workloads/gemm_reduce_scatter/patterns.hpp"

namespace tritax {

namespace {

struct Tiles {
  std::vector<const SumTile*> own;
  std::vector<const SumTile*> others;
};

Tiles tiles_of(const SumDraft& draft, int rank, const std::vector<SumTile>& all) {
  Tiles tiles;
  for (const SumTile* tile : walk_of(draft, rank, all))
    (tile->owner == rank ? tiles.own : tiles.others).push_back(tile);
  return tiles;
}

void add_workgroup(SumDraft& draft, int rank, const Tiles& tiles, std::int16_t sum, std::int16_t begun,
                   std::int32_t p, std::int32_t workgroups) {
  ScheduleBuilder& builder = draft.builder;
  const auto first = static_cast<std::size_t>(draft.first_item(p, workgroups));
  const auto step = static_cast<std::size_t>(workgroups);
  for (std::size_t i = first; i < tiles.own.size(); i += step) {
    multiply(draft, rank, tiles.own[i]->rect);
    builder.store(sum, draft.place_in_c(rank, tiles.own[i]->rect), rank);
  }
  if (!draft.sends()) return;
  for (const int peer : draft.peers_of(rank, p))
    builder.signal(begun, rank, 1, peer, Scope::system, draft.knobs.lock);
  std::vector<bool> waited(static_cast<std::size_t>(draft.ranks()), false);
  for (std::size_t i = first; i < tiles.others.size(); i += step) {
    const SumTile& tile = *tiles.others[i];
    multiply(draft, rank, tile.rect);
    const auto owner = static_cast<std::size_t>(tile.owner);
    if (!waited[owner]) builder.wait(begun, tile.owner, workgroups, Scope::system, draft.knobs.lock);
    waited[owner] = true;
    builder.atomic_add(sum, draft.place_in_c(tile.owner, tile.rect), tile.owner);
  }
  exchange_done(draft, rank, p);
}

std::int32_t rounding_kernel(SumDraft& draft, int rank, const std::vector<const SumTile*>& own,
                             std::int16_t sum) {
  Kernel kernel;
  kernel.name = "round";
  kernel.rank = rank;
  kernel.resources = tile_copy_resources(draft.machine.gpu, copy_resources().threads, kMostOfReducer);
  const std::int32_t id = draft.builder.kernel(std::move(kernel));
  for (const SumTile* tile : own) {
    const Rect place = draft.place_in_c(rank, tile->rect);
    const std::int32_t rows =
        std::max(1, static_cast<std::int32_t>(kMostOfReducer / std::max(1, draft.tile.n)));
    for (std::int32_t row = 0; row < place.rows; row += rows) {
      draft.builder.workgroup(id);
      const Rect piece{place.row + row, place.col, std::min(rows, place.rows - row), place.cols};
      draft.builder.load(sum, piece, rank);
      draft.builder.store(draft.c, piece, rank);
    }
  }
  return id;
}

}  // namespace

Schedule build_reduce_scatter_atomics(const PartialSums& problem, const Machine& machine,
                                      const SumKnobs& knobs) {
  SumDraft draft("fused-atomics", problem, machine, knobs, false, problem.dtype);
  const std::vector<SumTile> tiles = cut_tiles(draft);
  const std::int32_t workgroups = all_cus(machine.gpu, knobs.gemm_cus);
  const bool rounds = draft.sends() && sum_dtype(problem.dtype) != problem.dtype;
  std::int16_t sum = draft.c;
  if (rounds) {
    const Rect block = block_of(problem, 0);
    sum = draft.builder.buffer(
        {"sum", sum_dtype(problem.dtype), block.rows, block.cols, draft.tile.m, draft.tile.n});
  }
  const std::int16_t begun = draft.sends() ? draft.builder.flags("begun", draft.ranks()) : std::int16_t{-1};
  add_done(draft, workgroups);
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    Kernel kernel;
    kernel.name = "gemm_atomics";
    kernel.rank = rank;
    kernel.resources = draft.gemm_resources;
    kernel.tile = draft.tile;
    kernel.placement = Placement::persistent;
    const std::int32_t id = draft.builder.kernel(std::move(kernel));
    const Tiles own_and_others = tiles_of(draft, rank, tiles);
    for (std::int32_t p = 0; p < workgroups; ++p) {
      draft.builder.workgroup(id);
      add_workgroup(draft, rank, own_and_others, sum, begun, p, workgroups);
    }
    Graph kernels{{id, 0}};
    if (rounds) kernels.push_back({rounding_kernel(draft, rank, own_and_others.own, sum), 0});
    host_program(draft.builder, rank, knobs, kernels);
  }
  return draft.builder.finish();
}

}  // namespace tritax
