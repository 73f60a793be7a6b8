// GEMM and summation in separate kernels or workgroups: one after the other, or side by side.
#include <algorithm>

#include "model/parts/staged_sums.hpp"
#include "model/parts/sum_patterns.hpp"

namespace tritax {

namespace {

// Where peers store sums here too, a run ends when all stores are complete; a waiting host says so anyway.
void add_end(SumDraft& draft, std::int32_t workgroups) {
  if (draft.everywhere && draft.opens()) add_done(draft, workgroups);
}

// The adding kernel begins when the GEMM of its rank has ended, and tells its counterparts so. `ready` < 0:
// the host has.
std::int32_t pulling_kernel(SumDraft& draft, int rank, std::int32_t workgroups,
                            const std::vector<const SumTile*>& items, std::int16_t ready) {
  Kernel kernel;
  kernel.name = "pull_and_add";
  kernel.rank = rank;
  kernel.resources = tile_copy_resources(draft.machine.gpu, copy_resources().threads, kMostOfReducer);
  kernel.placement = Placement::persistent;
  const std::int32_t id = draft.builder.kernel(std::move(kernel));
  for (std::int32_t q = 0; q < workgroups; ++q) {
    draft.builder.workgroup(id);
    if (ready >= 0) {
      exchange_arrivals(draft.builder, draft.peers_of(rank, q), draft.ranks(), rank, q, ready,
                        draft.knobs.lock, draft.knobs.serves);
    }
    send_and_add(draft, rank, q, workgroups, items, {});
    exchange_done(draft, rank, q);
  }
  return id;
}

}  // namespace

void add_bulk_synchronous(SumDraft& draft) {
  const bool pushed = draft.knobs.transport == Transport::push;
  draft.add_partial();
  if (pushed) draft.add_slots();
  add_opened(draft);
  const std::vector<SumTile> tiles = tiles_to_walk(draft);
  const std::vector<SumTile> items =
      draft.sends() ? items_of(draft, tiles, kMostOfReducer) : std::vector<SumTile>{};
  const std::int32_t gemm = all_cus(draft.machine.gpu, draft.knobs.gemm_cus);
  const std::int32_t adding = all_cus(draft.machine.gpu, draft.knobs.comm_cus);
  SumFlags flags;
  std::int16_t ready = -1;
  if (draft.sends() && pushed)
    flags.arrived = draft.builder.flags("arrived", static_cast<std::int32_t>(items.size()));
  if (draft.sends() && !pushed) ready = draft.builder.flags("ready", adding * draft.ranks());
  add_end(draft, adding);
  const ProductShares shares = shares_of(draft, gemm, tiles.size());
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    Graph kernels{{partial_gemm_kernel(draft, shares, rank, tiles, flags), 0}};
    if (draft.sends()) {
      const auto order = walk_of_items(shares, walk_of(draft, rank, tiles), items, rank);
      kernels.push_back({pushed ? adding_kernel(draft, rank, adding, order, flags)
                                : pulling_kernel(draft, rank, adding, order, ready),
                         0});
    }
    host_program(draft.builder, rank, draft.knobs, kernels);
  }
}

void add_direct(SumDraft& draft, const std::function<std::int32_t(int rank)>& behind) {
  const bool pushed = draft.knobs.transport == Transport::push;
  const std::vector<SumTile> items = cut_tiles(draft);
  const std::int32_t workgroups = all_cus(draft.machine.gpu, draft.knobs.comm_cus);
  SumFlags flags;
  std::int16_t ready = -1;
  if (pushed) {
    draft.add_slots();
    add_opened(draft);
    if (draft.sends())
      flags.arrived = draft.builder.flags("arrived", static_cast<std::int32_t>(items.size()));
  } else if (draft.opens()) {
    ready = draft.builder.flags("ready", workgroups * draft.ranks());
  }
  // A kernel behind reads what peers have stored, which no host says.
  if ((draft.opens() && (draft.everywhere || !pushed)) || behind) add_done(draft, workgroups);
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    const std::vector<const SumTile*> order = walk_of(draft, rank, items);
    const std::int32_t kernel = pushed ? adding_kernel(draft, rank, workgroups, order, flags)
                                       : pulling_kernel(draft, rank, workgroups, order, ready);
    Graph launches = staged_launches(draft, rank, kernel);
    if (behind) launches.push_back({behind(rank), 0});
    host_program(draft.builder, rank, draft.knobs, launches);
  }
}

void add_producer_consumer(SumDraft& draft) {
  draft.add_partial();
  if (draft.knobs.transport == Transport::push) draft.add_slots();
  add_opened(draft);
  const Split split = split_cus(draft.knobs, draft.machine.gpu, draft.ranks(), Roles::in_two_kernels);
  const std::vector<SumTile> tiles = tiles_to_walk(draft);
  const std::vector<SumTile> items =
      draft.sends() ? items_of(draft, tiles, kMostOfReducer) : std::vector<SumTile>{};
  const SumFlags flags = draft.sends() ? add_flags(draft, tiles.size(), items.size()) : SumFlags{};
  add_end(draft, split.comm);
  const ProductShares shares = shares_of(draft, split.gemm, tiles.size());
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    Graph kernels{{partial_gemm_kernel(draft, shares, rank, tiles, flags), 0}};
    if (draft.sends()) {
      const auto order = walk_of_items(shares, walk_of(draft, rank, tiles), items, rank);
      kernels.push_back({adding_kernel(draft, rank, split.comm, order, flags), 1});
    }
    host_program(draft.builder, rank, draft.knobs, kernels);
  }
}

void add_workgroup_specialised(SumDraft& draft) {
  draft.add_partial();
  if (draft.knobs.transport == Transport::push) draft.add_slots();
  add_opened(draft);
  const Split split = split_cus(draft.knobs, draft.machine.gpu, draft.ranks(), Roles::in_one_kernel);
  const std::vector<SumTile> tiles = tiles_to_walk(draft);
  const std::vector<SumTile> items = draft.sends() ? items_of(draft, tiles, 0) : std::vector<SumTile>{};
  const SumFlags flags = draft.sends() ? add_flags(draft, tiles.size(), items.size()) : SumFlags{};
  add_end(draft, split.comm);
  const std::int32_t workgroups = split.gemm + split.comm;
  const ProductShares shares = shares_of(draft, split.gemm, tiles.size());
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    Kernel kernel;
    kernel.name = "specialised";
    kernel.rank = rank;
    kernel.resources =
        with_copy_role(draft.machine.gpu, draft.gemm_resources, std::int64_t{draft.tile.m} * draft.tile.n);
    kernel.tile = draft.tile;
    kernel.placement = Placement::persistent;
    const std::int32_t id = draft.builder.kernel(std::move(kernel));
    const std::vector<const SumTile*> walk = walk_of(draft, rank, tiles);
    const std::vector<const SumTile*> order = walk_of_items(shares, walk, items, rank);
    for (std::int32_t p = 0; p < workgroups; ++p) {
      draft.builder.workgroup(id);
      tell_opened(draft, rank, p == 0);
      const std::int32_t number = draft.first_item(p, workgroups);
      if (number < split.gemm) {
        compute_partials(draft, shares, rank, number, walk, flags);
        continue;
      }
      send_and_add(draft, rank, number - split.gemm, split.comm, order, flags);
      exchange_done(draft, rank, number - split.gemm);
    }
    host_program(draft.builder, rank, draft.knobs, {{id, 0}});
  }
}

}  // namespace tritax
