// Patterns with summation fused into the GEMM: a workgroup with a tile of the product in its registers sends
// the tile or adds to it.
#include <algorithm>
#include <numeric>

#include "model/parts/sum_patterns.hpp"

namespace tritax {

namespace {

std::int32_t fused_kernel(SumDraft& draft, int rank, const char* name) {
  Kernel kernel;
  kernel.name = name;
  kernel.rank = rank;
  kernel.resources = draft.gemm_resources;
  kernel.tile = draft.kernel_tile();
  kernel.placement = Placement::persistent;
  return draft.builder.kernel(std::move(kernel));
}

// Operations on a tile whose own part of the sum is in the accumulator.
void add_slot_tile(SumDraft& draft, int rank, const SumTile& tile, std::int16_t arrived,
                   std::vector<bool>& opened, std::int32_t workgroup) {
  ScheduleBuilder& builder = draft.builder;
  if (tile.owner != rank) {
    await_opened_once(draft, opened, tile.owner);
    builder.store(draft.slots, draft.place_in_slot(tile.owner, rank, tile.rect), tile.owner);
    builder.signal(arrived, tile.number, 1, tile.owner, Scope::system, draft.knobs.lock);
    return;
  }
  if (draft.sends()) builder.wait(arrived, tile.number, draft.ranks() - 1, Scope::system, draft.knobs.lock);
  for (const int peer : draft.peers_of(rank, workgroup))
    builder.reduce(draft.slots, draft.place_in_slot(rank, peer, tile.rect), rank);
  store_sum(draft, rank, tile.rect, workgroup);
}

// Strides that reach all ranks.
std::vector<int> strides_of(int ranks, std::int32_t most) {
  std::vector<int> strides;
  for (int stride = 1; stride < ranks; ++stride) {
    if (std::gcd(stride, ranks) == 1 && static_cast<std::int32_t>(strides.size()) < most)
      strides.push_back(stride);
  }
  return strides;
}

// A tile at one step of its path.
struct RingTile {
  const SumTile* tile = nullptr;
  int step = 0;
  int next = 0;
};

std::vector<RingTile> ring_walk(const SumDraft& draft, int rank, const std::vector<SumTile>& tiles) {
  const int ranks = draft.ranks();
  const std::vector<int> strides = strides_of(ranks, draft.knobs.rings);
  std::vector<std::vector<RingTile>> by_step(static_cast<std::size_t>(ranks));
  std::vector<std::size_t> seen(static_cast<std::size_t>(ranks), 0);  // tiles per block
  for (const SumTile& tile : tiles) {
    const std::size_t place = seen[static_cast<std::size_t>(tile.owner)]++;
    const int stride = strides.empty() ? 1 : strides[place % strides.size()];
    // Step s of a block of `owner` runs on rank owner + stride·(s + 1).
    int step = ranks - 1;
    for (int at = tile.owner; at != rank; at = (at + ranks - stride) % ranks) --step;
    by_step[static_cast<std::size_t>(step)].push_back({&tile, step, (rank + stride) % ranks});
  }
  std::vector<RingTile> walk;
  for (const auto& list : by_step) walk.insert(walk.end(), list.begin(), list.end());
  return walk;
}

// Operations on a tile at one step of its path.
void add_ring_tile(SumDraft& draft, int rank, const RingTile& at, std::int16_t incoming, std::int16_t arrived,
                   std::vector<bool>& opened, std::int32_t workgroup) {
  ScheduleBuilder& builder = draft.builder;
  const SumTile& tile = *at.tile;
  if (at.step > 0) {
    builder.wait(arrived, tile.number, 1, Scope::system, draft.knobs.lock);
    builder.reduce(incoming, tile.rect, rank);
  }
  if (at.step + 1 == draft.ranks()) {
    store_sum(draft, rank, tile.rect, workgroup);
    return;
  }
  await_opened_once(draft, opened, at.next);
  builder.store(incoming, tile.rect, at.next);
  builder.signal(arrived, tile.number, 1, at.next, Scope::system, draft.knobs.lock);
}

}  // namespace

void add_fused_slots(SumDraft& draft) {
  draft.add_slots();
  add_opened(draft);
  const std::vector<SumTile> tiles = cut_tiles(draft);
  const std::int16_t arrived = draft.sends()
                                   ? draft.builder.flags("arrived", static_cast<std::int32_t>(tiles.size()))
                                   : std::int16_t{-1};
  const std::int32_t workgroups = all_cus(draft.machine.gpu, draft.knobs.gemm_cus);
  if (draft.everywhere && draft.opens()) add_done(draft, workgroups);
  const ProductShares shares = shares_of(draft, workgroups, tiles.size());
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    const std::int32_t id = fused_kernel(draft, rank, "gemm_slots");
    const std::vector<const SumTile*> walk = walk_of(draft, rank, tiles);
    for (std::int32_t p = 0; p < workgroups; ++p) {
      draft.builder.workgroup(id);
      tell_opened(draft, rank, p == 0);
      std::vector<bool> opened(static_cast<std::size_t>(draft.ranks()), false);
      multiply_shares(
          draft, shares, rank, draft.first_item(p, workgroups),
          [&](std::size_t i) -> const Rect& { return walk[i]->rect; },
          [&](std::size_t i) { add_slot_tile(draft, rank, *walk[i], arrived, opened, p); });
      exchange_done(draft, rank, p);
    }
    host_program(draft.builder, rank, draft.knobs, {{id, 0}});
  }
}

void add_ring(SumDraft& draft) {
  add_opened(draft);
  const std::vector<SumTile> tiles = cut_tiles(draft);
  std::int16_t incoming = -1;
  std::int16_t arrived = -1;
  if (draft.sends()) {
    incoming =
        draft.builder.buffer({"incoming", draft.wire_dtype(), static_cast<std::int32_t>(draft.problem.m),
                              static_cast<std::int32_t>(draft.problem.n), draft.tile.m, draft.tile.n});
    arrived = draft.builder.flags("arrived", static_cast<std::int32_t>(tiles.size()));
  }
  const std::int32_t workgroups = all_cus(draft.machine.gpu, draft.knobs.gemm_cus);
  if (draft.everywhere && draft.opens()) add_done(draft, workgroups);
  const ProductShares shares = shares_of(draft, workgroups, tiles.size());
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    const std::int32_t id = fused_kernel(draft, rank, draft.alone() ? "ring" : "gemm_ring");
    const std::vector<RingTile> walk = ring_walk(draft, rank, tiles);
    for (std::int32_t p = 0; p < workgroups; ++p) {
      draft.builder.workgroup(id);
      tell_opened(draft, rank, p == 0);
      std::vector<bool> opened(static_cast<std::size_t>(draft.ranks()), false);
      multiply_shares(
          draft, shares, rank, draft.first_item(p, workgroups),
          [&](std::size_t i) -> const Rect& { return walk[i].tile->rect; },
          [&](std::size_t i) { add_ring_tile(draft, rank, walk[i], incoming, arrived, opened, p); });
      exchange_done(draft, rank, p);
    }
    host_program(draft.builder, rank, draft.knobs, {{id, 0}});
  }
}

}  // namespace tritax
