// Patterns where copy engines move partial sums.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "model/machine/check_machine.hpp"
#include "model/parts/collectives.hpp"
#include "model/parts/sum_patterns.hpp"

namespace tritax {

namespace {

// Place inside a block, and size of the block, in the direction in which pieces are cut.
struct Along {
  std::int32_t begin = 0;
  std::int32_t size = 0;
};
Along along(const SumDraft& draft, const Rect& rect) {
  if (draft.problem.blocks == Blocks::rows) return {rect.row, rect.rows};
  return {rect.col, rect.cols};
}

// Rows or columns of a piece of a block: whole tiles.
std::int32_t piece_size(const SumDraft& draft, int owner) {
  const std::int32_t step = draft.problem.blocks == Blocks::rows ? draft.tile.m : draft.tile.n;
  const std::int32_t size = along(draft, block_of(draft.problem, owner)).size;
  return ceil_div(ceil_div(size, draft.knobs.chunks), step) * step;
}

std::int32_t piece_at(const SumDraft& draft, int owner, std::int32_t place) {
  return (place - along(draft, block_of(draft.problem, owner)).begin) / piece_size(draft, owner);
}

// Piece `i` of a block; empty beyond the last.
Rect piece_of_block(const SumDraft& draft, int owner, std::int32_t i) {
  Rect piece = block_of(draft.problem, owner);
  const std::int32_t size = along(draft, piece).size;
  const std::int32_t each = piece_size(draft, owner);
  const auto first = static_cast<std::int32_t>(std::min<std::int64_t>(std::int64_t{i} * each, size));
  const std::int32_t count = std::min(each, size - first);
  if (draft.problem.blocks == Blocks::rows) {
    piece.row += first;
    piece.rows = count;
  } else {
    piece.col += first;
    piece.cols = count;
  }
  return piece;
}

// Number of a piece among the pieces of all peers.
std::int32_t number_of_piece(const SumDraft& draft, int owner, std::int32_t piece) {
  return owner * draft.knobs.chunks + piece;
}

std::int32_t gemm_of(SumDraft& draft, int rank, const std::string& name,
                     const std::vector<const SumTile*>& tiles, bool first) {
  Kernel kernel;
  kernel.name = name;
  kernel.rank = rank;
  kernel.resources = draft.gemm_resources;
  kernel.tile = draft.tile;
  kernel.placement = Placement::persistent;
  const std::int32_t id = draft.builder.kernel(std::move(kernel));
  const std::int32_t workgroups = std::min(all_cus(draft.machine.gpu, draft.knobs.gemm_cus),
                                           std::max(1, static_cast<std::int32_t>(tiles.size())));
  for (std::int32_t p = 0; p < workgroups; ++p) {
    draft.builder.workgroup(id);
    tell_opened(draft, rank, first && p == 0);
    for (auto i = static_cast<std::size_t>(draft.first_item(p, workgroups)); i < tiles.size();
         i += static_cast<std::size_t>(workgroups)) {
      multiply(draft, rank, tiles[i]->rect);
      draft.builder.store(draft.partial, tiles[i]->rect, rank);
    }
    // Copies follow this kernel.
    if (!first || p > 0) continue;
    for (const int peer : draft.peers_of(rank, 0)) await_opened(draft, peer);
  }
  return id;
}

// A kernel that signals that the earlier copies of its stream have arrived.
std::int32_t telling_kernel(SumDraft& draft, int rank, int peer, std::int32_t piece, std::int16_t arrived) {
  Kernel kernel;
  kernel.name = "tell-" + std::to_string(peer) + "-" + std::to_string(piece);
  kernel.rank = rank;
  kernel.resources = copy_resources();
  const std::int32_t id = draft.builder.kernel(std::move(kernel));
  draft.builder.workgroup(id);
  draft.builder.signal(arrived, piece, 1, peer, Scope::system, draft.knobs.lock);
  return id;
}

void post_pieces(SumDraft& draft, int rank, std::int32_t i, std::int16_t arrived) {
  for (const int peer : draft.peers_of(rank, 0)) {
    const Rect piece = piece_of_block(draft, peer, i);
    if (piece.rows == 0 || piece.cols == 0) continue;
    const std::int32_t stream = 1 + peer;
    draft.builder.wait_event(rank, i, stream);
    draft.builder.host_copy(rank, stream, draft.slots, draft.place_in_slot(peer, rank, piece), peer,
                            draft.partial, piece.row, piece.col, rank);
    draft.builder.launch(rank, telling_kernel(draft, rank, peer, i, arrived), stream);
  }
}

// `summed` >= 0: the sum stays in the own C, and a flag counts it; copies take it to all.
std::int32_t waiting_adder(SumDraft& draft, int rank, std::int32_t workgroups,
                           const std::vector<SumTile>& items, std::int16_t arrived,
                           std::int16_t summed = -1) {
  Kernel kernel;
  kernel.name = "add";
  kernel.rank = rank;
  kernel.resources = tile_copy_resources(draft.machine.gpu, copy_resources().threads, kMostOfReducer);
  kernel.placement = Placement::persistent;
  const std::int32_t id = draft.builder.kernel(std::move(kernel));
  std::vector<const SumTile*> own;
  for (const SumTile& item : items) {
    if (item.owner == rank) own.push_back(&item);
  }
  ScheduleBuilder& builder = draft.builder;
  for (std::int32_t q = 0; q < workgroups; ++q) {
    builder.workgroup(id);
    std::int32_t seen = 0;  // pieces already waited for
    for (auto i = static_cast<std::size_t>(q); i < own.size(); i += static_cast<std::size_t>(workgroups)) {
      const Rect& rect = own[i]->rect;
      const Along place = along(draft, rect);
      const std::int32_t last = piece_at(draft, rank, place.begin + place.size - 1);
      for (; seen <= last; ++seen)
        builder.wait(arrived, seen, draft.ranks() - 1, Scope::system, draft.knobs.lock);
      builder.load(draft.partial, rect, rank);
      for (const int peer : draft.peers_of(rank, q))
        builder.reduce(draft.slots, draft.place_in_slot(rank, peer, rect), rank);
      if (summed < 0) {
        store_sum(draft, rank, rect, q);
      } else {
        builder.store(draft.c, rect, rank);
        builder.signal(summed, 0, 1, rank, Scope::gpu, draft.knobs.lock);
      }
    }
    exchange_done(draft, rank, q);
  }
  return id;
}

// One GEMM kernel in the order of the pieces, which counts the tiles of every piece.
std::int32_t gemm_in_order(SumDraft& draft, int rank, std::vector<const SumTile*> tiles,
                           std::int32_t workgroups, std::int16_t ready) {
  const auto place = [&](const SumTile* tile) {
    return tile->owner == rank ? draft.knobs.chunks
                               : piece_at(draft, tile->owner, along(draft, tile->rect).begin);
  };
  std::stable_sort(tiles.begin(), tiles.end(),
                   [&](const SumTile* x, const SumTile* y) { return place(x) < place(y); });
  Kernel kernel;
  kernel.name = "gemm";
  kernel.rank = rank;
  kernel.resources = draft.gemm_resources;
  kernel.tile = draft.tile;
  kernel.placement = Placement::persistent;
  const std::int32_t id = draft.builder.kernel(std::move(kernel));
  for (std::int32_t p = 0; p < workgroups; ++p) {
    draft.builder.workgroup(id);
    tell_opened(draft, rank, p == 0);
    for (auto i = static_cast<std::size_t>(draft.first_item(p, workgroups)); i < tiles.size();
         i += static_cast<std::size_t>(workgroups)) {
      const SumTile& tile = *tiles[i];
      multiply(draft, rank, tile.rect);
      draft.builder.store(draft.partial, tile.rect, rank);
      if (tile.owner == rank) continue;
      draft.builder.signal(ready, number_of_piece(draft, tile.owner, place(&tile)), 1, rank, Scope::gpu,
                           draft.knobs.lock);
    }
  }
  return id;
}

struct PostFlags {
  std::int16_t ready = -1;    // per piece of all peers: tiles that are stored
  std::int16_t arrived = -1;  // per own piece: peers whose partial sums are here
  std::int16_t summed = -1;   // all-reduce: items of the own block that are added up
  std::int16_t ended = -1;    // all-reduce, per peer: its sums are here
};

// A workgroup per peer posts its pieces as they are computed.
std::int32_t post_partials(SumDraft& draft, int rank, const std::vector<std::int32_t>& tiles_in,
                           const PostFlags& flags) {
  ScheduleBuilder& builder = draft.builder;
  const std::int32_t id = posting_kernel(builder, rank, "post");
  for (const int peer : draft.peers_of(rank, 0)) {
    builder.workgroup(id);
    await_opened(draft, peer);
    for (std::int32_t i = 0; i < draft.knobs.chunks; ++i) {
      const Rect piece = piece_of_block(draft, peer, i);
      if (piece.rows == 0 || piece.cols == 0) break;
      const std::int32_t number = number_of_piece(draft, peer, i);
      builder.wait(flags.ready, number, tiles_in[static_cast<std::size_t>(number)], Scope::gpu,
                   draft.knobs.lock);
      builder.post(draft.slots, draft.place_in_slot(peer, rank, piece), peer, draft.partial, piece.row,
                   piece.col, rank);
      builder.signal(flags.arrived, i, 1, peer, Scope::system, draft.knobs.lock);
    }
  }
  return id;
}

// Where all ranks get the sum: a workgroup per peer posts the own block once it is added up, as the phases of
// ROCm/mori's gemm_ar follow each other (its README: GEMM, drain, reduce, gather).
std::int32_t post_sums(SumDraft& draft, int rank, std::int32_t items, const PostFlags& flags) {
  ScheduleBuilder& builder = draft.builder;
  const std::int32_t id = posting_kernel(builder, rank, "post_sums");
  const Rect block = block_of(draft.problem, rank);
  for (const int peer : draft.peers_of(rank, 0)) {
    builder.workgroup(id);
    builder.wait(flags.summed, 0, items, Scope::gpu, draft.knobs.lock);
    builder.post(draft.c, block, peer, draft.c, block.row, block.col, rank);
    if (flags.ended < 0) continue;
    builder.signal(flags.ended, rank, 1, peer, Scope::system, draft.knobs.lock);
    builder.wait(flags.ended, peer, 1, Scope::system, draft.knobs.lock);
  }
  return id;
}

// The adders are resident before their copies arrive, and may take all registers of their compute units.
std::int32_t workgroups_of(const SumDraft& draft, std::int32_t cus) {
  const Gpu& gpu = draft.machine.gpu;
  return draft.sends() ? cus_beside_small_kernels(gpu, cus) : all_cus(gpu, cus);
}

void host_program_of(SumDraft& draft, int rank, const std::vector<SumTile>& tiles,
                     const std::vector<SumTile>& items, std::int32_t adding, std::int16_t arrived) {
  ScheduleBuilder& builder = draft.builder;
  if (draft.knobs.host_barriers) builder.host(rank, HostOpKind::barrier);
  const std::vector<const SumTile*> walk = walk_of(draft, rank, tiles);
  std::int32_t posted = 0;  // pieces whose copies have been posted
  std::int32_t pieces = 0;
  std::vector<const SumTile*> part;
  for (std::int32_t i = 0; i < draft.knobs.chunks && draft.sends(); ++i, ++pieces) {
    part.clear();
    for (const SumTile* tile : walk) {
      if (tile->owner != rank && piece_at(draft, tile->owner, along(draft, tile->rect).begin) == i)
        part.push_back(tile);
    }
    if (part.empty()) break;
    builder.launch(rank, gemm_of(draft, rank, "gemm-" + std::to_string(i), part, i == 0));
    builder.record_event(rank, i);
    // The host posts copies while the next kernel is ready to run.
    if (i > 0) post_pieces(draft, rank, posted++, arrived);
  }
  part.clear();
  std::copy_if(walk.begin(), walk.end(), std::back_inserter(part),
               [&](const SumTile* tile) { return tile->owner == rank; });
  builder.launch(rank, gemm_of(draft, rank, "gemm", part, false));
  for (; posted < pieces; ++posted) post_pieces(draft, rank, posted, arrived);
  if (draft.sends()) builder.launch(rank, waiting_adder(draft, rank, adding, items, arrived));
  builder.host(rank, HostOpKind::device_synchronize);
  if (draft.knobs.host_barriers) builder.host(rank, HostOpKind::barrier);
}

// Items of own pieces must not cross their borders, so that a piece is complete when all of them are.
std::vector<SumTile> items_of_pieces(const SumDraft& draft) {
  std::vector<SumTile> items;
  const TileIndex size = piece_size(draft.knobs);
  for (int owner = 0; owner < draft.ranks(); ++owner) {
    for (std::int32_t i = 0; i < draft.knobs.chunks; ++i) {
      const Rect piece = piece_of_block(draft, owner, i);
      for (Rect rect : cut({0, 0, piece.rows, piece.cols}, size.row, size.col)) {
        rect.row += piece.row;
        rect.col += piece.col;
        SumTile& item = items.emplace_back();
        item.rect = rect;
        item.owner = owner;
        item.number = static_cast<std::int32_t>(items.size()) - 1;
      }
    }
  }
  return items;
}

// One GEMM kernel; a kernel posts the copies.
void add_posting(SumDraft& draft) {
  ScheduleBuilder& builder = draft.builder;
  const std::vector<SumTile> tiles = cut_tiles(draft);
  const std::vector<SumTile> items = items_of_pieces(draft);
  const std::int32_t chunks = draft.knobs.chunks;
  std::vector<std::int32_t> tiles_in(static_cast<std::size_t>(draft.ranks() * chunks), 0);
  for (const SumTile& tile : tiles) {
    const std::int32_t piece = piece_at(draft, tile.owner, along(draft, tile.rect).begin);
    ++tiles_in[static_cast<std::size_t>(number_of_piece(draft, tile.owner, piece))];
  }
  PostFlags flags;
  flags.ready = builder.flags("ready", draft.ranks() * chunks);
  flags.arrived = builder.flags("arrived", chunks);
  if (draft.everywhere) flags.summed = builder.flags("summed", 1);
  if (draft.everywhere && draft.opens()) flags.ended = builder.flags("ended", draft.ranks());
  const std::int32_t adding = workgroups_of(draft, draft.knobs.comm_cus);
  const std::int32_t multiplying = workgroups_of(draft, draft.knobs.gemm_cus);
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    const auto own =
        std::count_if(items.begin(), items.end(), [&](const SumTile& item) { return item.owner == rank; });
    const std::int32_t gemm =
        gemm_in_order(draft, rank, walk_of(draft, rank, tiles), multiplying, flags.ready);
    const std::int32_t post = post_partials(draft, rank, tiles_in, flags);
    const std::int32_t add = waiting_adder(draft, rank, adding, items, flags.arrived, flags.summed);
    if (draft.knobs.host_barriers) builder.host(rank, HostOpKind::barrier);
    builder.launch(rank, gemm);
    builder.launch(rank, post, 1);
    if (draft.everywhere) builder.record_event(rank, 0);
    builder.launch(rank, add);
    if (draft.everywhere) {
      // The sums are posted beside the adders, which need the compute units of the GEMM.
      builder.wait_event(rank, 0, 1);
      builder.launch(rank, post_sums(draft, rank, static_cast<std::int32_t>(own), flags), 1);
    }
    builder.host(rank, HostOpKind::device_synchronize);
    if (draft.knobs.host_barriers) builder.host(rank, HostOpKind::barrier);
  }
}

}  // namespace

void add_copy_engine(SumDraft& draft) {
  if (draft.sends()) require_copy_engines(draft.machine, "pattern 'copy-engine'");
  draft.add_partial();
  draft.add_slots();
  add_opened(draft);
  if (draft.sends() && draft.knobs.posts == Posts::kernel) return add_posting(draft);
  const std::vector<SumTile> tiles = cut_tiles(draft);
  const std::vector<SumTile> items =
      draft.sends() ? items_of(draft, whole_tiles(draft), kMostOfReducer) : std::vector<SumTile>{};
  const std::int32_t adding = workgroups_of(draft, draft.knobs.comm_cus);
  std::int16_t arrived = -1;
  if (draft.sends()) arrived = draft.builder.flags("arrived", draft.knobs.chunks);
  if (draft.everywhere && draft.opens()) add_done(draft, adding);
  for (int rank = 0; rank < draft.ranks(); ++rank)
    host_program_of(draft, rank, tiles, items, adding, arrived);
}

}  // namespace tritax
