#include "model/parts/partial_sums.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "model/core/error.hpp"
#include "model/machine/check_machine.hpp"

namespace tritax {

namespace {

Rect common(const Rect& x, const Rect& y) {
  const std::int32_t row = std::max(x.row, y.row);
  const std::int32_t col = std::max(x.col, y.col);
  return {row, col, std::max(0, std::min(x.row + x.rows, y.row + y.rows) - row),
          std::max(0, std::min(x.col + x.cols, y.col + y.cols) - col)};
}

// Adds the tiles of a rectangle of C, in the order of the knobs; numbers continue those in `tiles`.
void add_tiles(const SumDraft& draft, const Rect& area, int owner, std::vector<SumTile>& tiles) {
  const TileGrid grid{ceil_div(area.rows, draft.tile.m), ceil_div(area.cols, draft.tile.n)};
  for (std::int32_t t = 0; t < grid.count(); ++t) {
    const TileIndex index = grouped_tile(t, grid, draft.knobs.group_m);
    const std::int32_t row = index.row * draft.tile.m;
    const std::int32_t col = index.col * draft.tile.n;
    SumTile tile;
    tile.rect = {area.row + row, area.col + col, std::min(draft.tile.m, area.rows - row),
                 std::min(draft.tile.n, area.cols - col)};
    tile.owner = owner;
    tile.number = static_cast<std::int32_t>(tiles.size());
    tiles.push_back(std::move(tile));
  }
}

int owner_of(const PartialSums& sums, const Rect& rect) {
  for (int rank = 0; rank < sums.gpus; ++rank) {
    const Rect block = block_of(sums, rank);
    if (rect.row < block.row + block.rows && rect.col < block.col + block.cols) return rank;
  }
  return sums.gpus - 1;
}

// Rows and columns of an item: those of the knobs, or of the GEMM tile, halved until it has `most` elements.
TileIndex size_of_item(const SumDraft& draft, std::int64_t most) {
  const SumKnobs& knobs = draft.knobs;
  TileIndex size{knobs.comm_tile_m > 0 ? knobs.comm_tile_m : draft.tile.m,
                 knobs.comm_tile_n > 0 ? knobs.comm_tile_n : draft.tile.n};
  if (knobs.comm_tile_m > 0 || knobs.comm_tile_n > 0 || most == 0) return size;
  while (std::int64_t{size.row} * size.col > most) size.row = ceil_div(size.row, 2);
  return size;
}

std::int64_t elements_of_item(const SumDraft& draft) {
  const TileIndex size = size_of_item(draft, kMostOfReducer);
  return std::int64_t{size.row} * size.col;
}

// Inputs, and the reference: their sum over the ranks, as blocks on their owners, or whole on all ranks.
void add_reference_alone(SumDraft& draft) {
  ScheduleBuilder& builder = draft.builder;
  builder.input(builder.whole(draft.partial));
  for (int owner = 0; owner < draft.ranks(); ++owner) {
    const Rect block = block_of(draft.problem, owner);
    if (block.rows == 0 || block.cols == 0) continue;  // more ranks than rows
    builder.expect_sum({draft.c, draft.everywhere ? kEveryRank : owner, draft.place_in_c(owner, block)},
                       {draft.partial, kEveryRank, block});
  }
}

// The same for Σ over ranks s of A_s·B_s.
void add_reference(SumDraft& draft) {
  if (draft.alone()) return add_reference_alone(draft);
  ScheduleBuilder& builder = draft.builder;
  const auto m = static_cast<std::int32_t>(draft.problem.m);
  const auto n = static_cast<std::int32_t>(draft.problem.n);
  const auto a_of = [&](int rank, std::int32_t row, std::int32_t rows) {
    return Region{draft.a, rank, {row, 0, rows, depth_of(draft.problem, rank)}};
  };
  const auto b_of = [&](int rank, std::int32_t col, std::int32_t cols) {
    return Region{draft.b, rank, {0, col, depth_of(draft.problem, rank), cols}};
  };
  for (int rank = 0; rank < draft.ranks(); ++rank) builder.input(a_of(rank, 0, m));
  for (int rank = 0; rank < draft.ranks(); ++rank) builder.input(b_of(rank, 0, n));
  for (int source = 0; source < draft.ranks(); ++source) {
    if (draft.everywhere) {
      builder.expect_product(builder.whole(draft.c), a_of(source, 0, m), b_of(source, 0, n), source > 0);
      continue;
    }
    for (int owner = 0; owner < draft.ranks(); ++owner) {
      const Rect block = block_of(draft.problem, owner);
      builder.expect_product({draft.c, owner, draft.place_in_c(owner, block)},
                             a_of(source, block.row, block.rows), b_of(source, block.col, block.cols),
                             source > 0);
    }
  }
}

// The tile that a workgroup has in its accumulator at a time: a GEMM tile, or a piece that is moved as one.
MatmulTile tile_of(const PartialSums& problem, const SumKnobs& knobs) {
  if (problem.k > 0) return matmul_tile(knobs);
  return {knobs.comm_tile_m > 0 ? knobs.comm_tile_m : kPieceAlone,
          knobs.comm_tile_n > 0 ? knobs.comm_tile_n : kPieceAlone, 0, 0};
}

Resources resources_of(const PartialSums& problem, const Machine& machine, const MatmulTile& tile) {
  if (problem.k > 0) return matmul_resources(machine.gpu, machine.interpreter, problem.dtype, tile);
  return tile_copy_resources(machine.gpu, copy_resources().threads, std::int64_t{tile.m} * tile.n);
}

}  // namespace

Rect block_of(const PartialSums& sums, int rank) {
  const bool rows = sums.blocks == Blocks::rows;
  const Share share = share_of(rows ? sums.m : sums.n, rank, sums.gpus);
  const auto begin = static_cast<std::int32_t>(share.begin);
  const auto size = static_cast<std::int32_t>(share.size());
  if (rows) return {begin, 0, size, static_cast<std::int32_t>(sums.n)};
  return {0, begin, static_cast<std::int32_t>(sums.m), size};
}

std::vector<Rect> blocks_of(const PartialSums& sums) {
  std::vector<Rect> blocks;
  for (int rank = 0; rank < sums.gpus; ++rank) blocks.push_back(block_of(sums, rank));
  return blocks;
}

std::int32_t depth_of(const PartialSums& sums, int rank) {
  return static_cast<std::int32_t>(share_of(sums.k, rank, sums.gpus).size());
}

SumDraft::SumDraft(std::string_view pattern, const PartialSums& problem_, const Machine& machine_,
                   const SumKnobs& knobs_, bool everywhere_)
    : SumDraft(pattern, problem_, machine_, knobs_, everywhere_, knobs_.result.value_or(problem_.dtype)) {}

SumDraft::SumDraft(std::string_view pattern, const PartialSums& problem_, const Machine& machine_,
                   const SumKnobs& knobs_, bool everywhere_, DType c_dtype)
    : problem(problem_),
      machine(machine_),
      knobs(knobs_),
      everywhere(everywhere_),
      tile(tile_of(problem_, knobs_)),
      gemm_resources(resources_of(problem_, machine_, tile)),
      builder(std::string(pattern), problem_.gpus) {
  const auto m = static_cast<std::int32_t>(problem.m);
  const auto n = static_cast<std::int32_t>(problem.n);
  const std::int32_t k = depth_of(problem, 0);
  const Rect block = everywhere ? Rect{0, 0, m, n} : block_of(problem, 0);
  if (alone()) {
    partial = builder.buffer({"own", problem.dtype, m, n, tile.m, tile.n});
  } else {
    a = builder.buffer({"A", problem.dtype, m, k, tile.m, tile.k});
    b = builder.buffer({"B", problem.dtype, k, n, tile.k, tile.n});
  }
  c = builder.buffer({"C", c_dtype, block.rows, block.cols, tile.m, tile.n});
  builder.result(c);
  add_reference(*this);
}

Rect SumDraft::place_in_c(int owner, Rect rect) const {
  if (everywhere) return rect;
  const Rect block = block_of(problem, owner);
  rect.row -= block.row;
  rect.col -= block.col;
  return rect;
}

Rect SumDraft::place_in_slot(int owner, int source, Rect rect) const {
  const Rect block = block_of(problem, owner);
  rect.row += source * block_of(problem, 0).rows - block.row;
  rect.col -= block.col;
  return rect;
}

void SumDraft::add_partial() {
  partial = !sends() ? c
                     : builder.buffer({"partial", wire_dtype(), static_cast<std::int32_t>(problem.m),
                                       static_cast<std::int32_t>(problem.n), tile.m, tile.n});
}

void SumDraft::add_slots() {
  if (!sends()) return;
  const Rect widest = block_of(problem, 0);
  slots = builder.buffer({"slots", wire_dtype(), widest.rows * ranks(), widest.cols, tile.m, tile.n});
}

std::vector<SumTile> cut_tiles(const SumDraft& draft) {
  std::vector<SumTile> tiles;
  for (int owner = 0; owner < draft.ranks(); ++owner) {
    add_tiles(draft, block_of(draft.problem, owner), owner, tiles);
  }
  return tiles;
}

std::vector<SumTile> tiles_to_walk(const SumDraft& draft) {
  const std::vector<Rect> blocks = blocks_of(draft.problem);
  const bool none_is_cut = std::all_of(blocks.begin(), blocks.end(), [&](const Rect& block) {
    return block.row % draft.tile.m == 0 && block.col % draft.tile.n == 0;
  });
  return none_is_cut ? cut_tiles(draft) : whole_tiles(draft);
}

std::vector<SumTile> whole_tiles(const SumDraft& draft) {
  std::vector<SumTile> tiles;
  add_tiles(draft,
            {0, 0, static_cast<std::int32_t>(draft.problem.m), static_cast<std::int32_t>(draft.problem.n)}, 0,
            tiles);
  for (SumTile& tile : tiles) tile.owner = owner_of(draft.problem, tile.rect);
  return tiles;
}

std::vector<SumTile> items_of(const SumDraft& draft, const std::vector<SumTile>& whole, std::int64_t most) {
  const TileGrid grid{ceil_div(static_cast<std::int32_t>(draft.problem.m), draft.tile.m),
                      ceil_div(static_cast<std::int32_t>(draft.problem.n), draft.tile.n)};
  std::vector<std::int32_t> number_at(whole.size());
  for (const SumTile& tile : whole) {
    const std::int32_t place = tile.rect.row / draft.tile.m * grid.cols + tile.rect.col / draft.tile.n;
    number_at[static_cast<std::size_t>(place)] = tile.number;
  }
  const TileIndex size = size_of_item(draft, most);
  std::vector<SumTile> items;
  for (int owner = 0; owner < draft.ranks(); ++owner) {
    const Rect block = block_of(draft.problem, owner);
    for (std::int32_t row = 0; row < block.rows; row += size.row) {
      for (std::int32_t col = 0; col < block.cols; col += size.col) {
        SumTile item;
        item.rect = {block.row + row, block.col + col, std::min(size.row, block.rows - row),
                     std::min(size.col, block.cols - col)};
        item.owner = owner;
        item.number = static_cast<std::int32_t>(items.size());
        const Rect& rect = item.rect;
        for (std::int32_t i = rect.row / draft.tile.m; i <= (rect.row + rect.rows - 1) / draft.tile.m; ++i) {
          for (std::int32_t j = rect.col / draft.tile.n; j <= (rect.col + rect.cols - 1) / draft.tile.n; ++j)
            item.tiles.push_back(number_at[static_cast<std::size_t>(i * grid.cols + j)]);
        }
        items.push_back(std::move(item));
      }
    }
  }
  return items;
}

std::vector<const SumTile*> walk_of(const SumDraft& draft, int rank, const std::vector<SumTile>& tiles) {
  const std::vector<int> peers = draft.peers_of(rank, 0);
  std::vector<std::size_t> place_of(static_cast<std::size_t>(draft.ranks()), peers.size());
  for (std::size_t i = 0; i < peers.size(); ++i) place_of[static_cast<std::size_t>(peers[i])] = i;
  std::vector<std::vector<const SumTile*>> by_owner(peers.size());
  std::vector<const SumTile*> own;
  for (const SumTile& tile : tiles) {
    if (tile.owner == rank) {
      own.push_back(&tile);
    } else {
      by_owner[place_of[static_cast<std::size_t>(tile.owner)]].push_back(&tile);
    }
  }
  std::vector<const SumTile*> walk = merged(by_owner, draft.knobs.peer_order == PeerOrder::staggered);
  walk.insert(walk.end(), own.begin(), own.end());
  return walk;
}

std::vector<const SumTile*> walk_of_items(const ProductShares& shares,
                                          const std::vector<const SumTile*>& walk,
                                          const std::vector<SumTile>& items, int rank) {
  // With whole tiles only, places in the walk say more: they order workgroups within a round.
  const bool in_parts = shares.split[static_cast<std::size_t>(rank)].sharers > 0;
  const std::vector<std::int64_t> until =
      in_parts ? iterations_until_whole(shares, rank) : std::vector<std::int64_t>(walk.size(), 0);
  std::vector<std::size_t> place_of(walk.size());
  for (std::size_t i = 0; i < walk.size(); ++i) place_of[static_cast<std::size_t>(walk[i]->number)] = i;
  struct Placed {
    bool own = false;
    std::int64_t until = 0;  // until all tiles of the item are complete
    std::size_t place = 0;   // of the last tile of the item
    const SumTile* item = nullptr;
  };
  std::vector<Placed> placed;
  for (const SumTile& item : items) {
    Placed one{item.owner == rank, 0, 0, &item};
    for (const std::int32_t tile : item.tiles) {
      const std::size_t place = place_of[static_cast<std::size_t>(tile)];
      one.place = std::max(one.place, place);
      one.until = std::max(one.until, until[place]);
    }
    placed.push_back(one);
  }
  std::stable_sort(placed.begin(), placed.end(), [](const Placed& x, const Placed& y) {
    if (x.own != y.own) return y.own;
    return x.until != y.until ? x.until < y.until : x.place < y.place;
  });
  std::vector<const SumTile*> order;
  for (const Placed& one : placed) order.push_back(one.item);
  return order;
}

bool has_multimem(const Machine& machine, int gpus, DType dtype) {
  return has_multicast(machine, gpus) && adds_in_switch(dtype);
}

void multiply(SumDraft& draft, int rank, const Rect& rect) {
  if (draft.alone()) return draft.builder.load(draft.partial, rect, rank);
  draft.builder.matmul(draft.a, draft.b, rect, 0, depth_of(draft.problem, rank));
}

void store_sum(SumDraft& draft, int rank, const Rect& rect, std::int32_t workgroup) {
  const Rect place = draft.place_in_c(rank, rect);
  if (!draft.everywhere) return draft.builder.store(draft.c, place, rank);
  add_of_all(draft, [&] {
    draft.builder.store(draft.c, place, rank);
    for (const int peer : draft.peers_of(rank, workgroup)) draft.builder.store(draft.c, place, peer);
  });
}

namespace {

// Signals that a tile of partial sums is stored. Push: to the own GPU, which sends the tile; pull: to every
// owner of a part of the tile.
void announce(SumDraft& draft, int rank, const SumTile& tile, const SumFlags& flags) {
  if (flags.lock < 0) return;
  const LockProtocol lock = draft.knobs.lock;
  if (draft.knobs.transport == Transport::push) {
    draft.builder.signal(flags.lock, tile.number, 1, rank, Scope::gpu, lock);
    return;
  }
  for (int owner = 0; owner < draft.ranks(); ++owner) {
    const Rect part = common(tile.rect, block_of(draft.problem, owner));
    if (part.rows == 0 || part.cols == 0) continue;
    if (owner == rank) {
      draft.builder.signal(flags.lock, tile.number, 1, rank, Scope::gpu, lock);
    } else {
      draft.builder.signal(flags.arrived, tile.number, 1, owner, Scope::system, lock);
    }
  }
}

void await_tiles(SumDraft& draft, const SumTile& item, const SumFlags& flags) {
  if (flags.lock < 0) return;
  for (const std::int32_t tile : item.tiles)
    draft.builder.wait(flags.lock, tile, 1, Scope::gpu, draft.knobs.lock);
}

void send_item(SumDraft& draft, int rank, const SumTile& item, const SumFlags& flags) {
  await_tiles(draft, item, flags);
  const Rect& rect = item.rect;
  draft.builder.copy(draft.slots, draft.place_in_slot(item.owner, rank, rect), item.owner, draft.partial,
                     rect.row, rect.col, rank);
  draft.builder.signal(flags.arrived, item.number, 1, item.owner, Scope::system, draft.knobs.lock);
}

void add_item(SumDraft& draft, int rank, const SumTile& item, const SumFlags& flags, std::int32_t workgroup) {
  const bool pushed = draft.knobs.transport == Transport::push;
  const std::int32_t peers = draft.ranks() - 1;
  await_tiles(draft, item, flags);
  if (pushed && draft.sends()) {
    draft.builder.wait(flags.arrived, item.number, peers, Scope::system, draft.knobs.lock);
  } else if (flags.lock >= 0) {
    for (const std::int32_t tile : item.tiles)
      draft.builder.wait(flags.arrived, tile, peers, Scope::system, draft.knobs.lock);
  }
  add_of_all(draft, [&] {
    draft.builder.load(draft.partial, item.rect, rank);
    for (const int peer : draft.peers_of(rank, workgroup)) {
      if (pushed) {
        draft.builder.reduce(draft.slots, draft.place_in_slot(rank, peer, item.rect), rank);
      } else {
        draft.builder.reduce(draft.partial, item.rect, peer);
      }
    }
  });
  store_sum(draft, rank, item.rect, workgroup);
}

}  // namespace

ProductShares shares_of(SumDraft& draft, std::int32_t workgroups, std::size_t tiles) {
  std::vector<RankProduct> products;
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    const std::int32_t depth = draft.alone() ? 1 : depth_of(draft.problem, rank);
    products.push_back({static_cast<std::int64_t>(tiles), depth});
  }
  MatmulTile tile = draft.tile;
  if (draft.alone()) tile.k = 1;
  return share_products(draft.builder, draft.machine.gpu, draft.knobs, tile, workgroups, std::move(products));
}

void multiply_shares(SumDraft& draft, const ProductShares& shares, int rank, std::int32_t number,
                     const std::function<const Rect&(std::size_t place)>& rect_of,
                     const std::function<void(std::size_t place)>& finish) {
  const auto place = [](std::int64_t tile) { return static_cast<std::size_t>(tile); };
  const auto multiply_part = [&](std::int64_t tile, std::int32_t k_begin, std::int32_t k_end) {
    const Rect& rect = rect_of(place(tile));
    if (draft.alone()) return draft.builder.load(draft.partial, rect, rank);
    draft.builder.matmul(draft.a, draft.b, rect, k_begin, k_end);
  };
  add_shares(draft.builder, shares, rank, number,
             {multiply_part, [&](std::int64_t tile) { return rect_of(place(tile)); },
              [&](std::int64_t tile) { finish(place(tile)); }});
}

void compute_partials(SumDraft& draft, const ProductShares& shares, int rank, std::int32_t number,
                      const std::vector<const SumTile*>& walk, const SumFlags& flags) {
  const bool pulled = draft.knobs.transport != Transport::push;
  bool opened = false;
  multiply_shares(
      draft, shares, rank, number, [&](std::size_t i) -> const Rect& { return walk[i]->rect; },
      [&](std::size_t i) {
        if (pulled && !opened) {
          for (const int peer : draft.peers_of(rank, number)) await_opened(draft, peer);
        }
        opened = true;
        draft.builder.store(draft.partial, walk[i]->rect, rank);
        announce(draft, rank, *walk[i], flags);
      });
}

std::int32_t partial_gemm_kernel(SumDraft& draft, const ProductShares& shares, int rank,
                                 const std::vector<SumTile>& tiles, const SumFlags& flags) {
  Kernel kernel;
  kernel.name = "gemm";
  kernel.rank = rank;
  kernel.resources = draft.gemm_resources;
  kernel.tile = draft.tile;
  kernel.placement = Placement::persistent;
  const std::int32_t id = draft.builder.kernel(std::move(kernel));
  const std::vector<const SumTile*> walk = walk_of(draft, rank, tiles);
  const auto workgroups = static_cast<std::int32_t>(shares.workgroups);
  for (std::int32_t p = 0; p < workgroups; ++p) {
    draft.builder.workgroup(id);
    tell_opened(draft, rank, p == 0);
    compute_partials(draft, shares, rank, draft.first_item(p, workgroups), walk, flags);
  }
  return id;
}

void send_and_add(SumDraft& draft, int rank, std::int32_t first, std::int32_t stride,
                  const std::vector<const SumTile*>& items, const SumFlags& flags) {
  const bool pushed = draft.knobs.transport == Transport::push;
  const auto own = static_cast<std::size_t>(
      std::count_if(items.begin(), items.end(), [&](const SumTile* item) { return item->owner == rank; }));
  const std::size_t others = items.size() - own;
  std::vector<bool> opened(static_cast<std::size_t>(draft.ranks()), false);
  const auto step = static_cast<std::size_t>(stride);
  for (auto i = static_cast<std::size_t>(first); pushed && i < others; i += step) {
    await_opened_once(draft, opened, items[i]->owner);
    send_item(draft, rank, *items[i], flags);
  }
  for (auto i = static_cast<std::size_t>(first); i < own; i += step)
    add_item(draft, rank, *items[others + i], flags, first);
}

std::int32_t adding_kernel(SumDraft& draft, int rank, std::int32_t workgroups,
                           const std::vector<const SumTile*>& items, const SumFlags& flags) {
  Kernel kernel;
  kernel.name = "send_and_add";
  kernel.rank = rank;
  kernel.resources =
      tile_copy_resources(draft.machine.gpu, copy_resources().threads, elements_of_item(draft));
  kernel.placement = Placement::persistent;
  const std::int32_t id = draft.builder.kernel(std::move(kernel));
  for (std::int32_t q = 0; q < workgroups; ++q) {
    draft.builder.workgroup(id);
    if (draft.alone()) tell_opened(draft, rank, q == 0);  // else the GEMM kernel does
    send_and_add(draft, rank, q, workgroups, items, flags);
    exchange_done(draft, rank, q);
  }
  return id;
}

SumFlags add_flags(SumDraft& draft, std::size_t tiles, std::size_t items) {
  SumFlags flags;
  flags.lock = draft.builder.flags("lock", static_cast<std::int32_t>(tiles));
  const bool pushed = draft.knobs.transport == Transport::push;
  flags.arrived = draft.builder.flags("arrived", static_cast<std::int32_t>(pushed ? items : tiles));
  return flags;
}

}  // namespace tritax
