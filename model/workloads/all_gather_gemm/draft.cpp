#include "model/workloads/all_gather_gemm/draft.hpp"

#include <algorithm>
#include <string>

namespace tritax {

namespace {

Rect common(const Rect& a, const Rect& b) {
  const std::int32_t row = std::max(a.row, b.row);
  const std::int32_t col = std::max(a.col, b.col);
  return {row, col, std::max(0, std::min(a.row + a.rows, b.row + b.rows) - row),
          std::max(0, std::min(a.col + a.cols, b.col + b.cols) - col)};
}

std::vector<Piece> pieces_of(const AllGatherGemm& problem, const Rect& rect) {
  std::vector<Piece> pieces;
  for (int owner = 0; owner < problem.gpus; ++owner) {
    const Rect part = common(rect, slice_of(problem, owner));
    if (part.rows > 0 && part.cols > 0) pieces.push_back({part, owner});
  }
  return pieces;
}

// Cuts K into blocks; where A is sharded along K, no block belongs to two ranks.
std::vector<Rect> ranges_of_k(const GatherDraft& draft) {
  const std::int32_t depth = draft.knobs.k_steps * draft.tile.k;
  std::vector<Rect> ranges;
  const bool by_k = draft.problem.sharding == Sharding::k;
  for (int owner = 0; owner < (by_k ? draft.ranks() : 1); ++owner) {
    const Rect slice = slice_of(draft.problem, owner);
    for (std::int32_t k = 0; k < slice.cols; k += depth) {
      ranges.push_back({0, slice.col + k, 0, std::min(depth, slice.cols - k)});
    }
  }
  return ranges;
}

// Reorders blocks, given in the order of their owners, so that owners take turns.
void take_turns(const GatherDraft& draft, std::int32_t row, std::vector<std::size_t>& places) {
  std::vector<std::vector<std::size_t>> by_owner(static_cast<std::size_t>(draft.ranks()));
  std::vector<int> owners;
  for (const std::size_t place : places) {
    const int owner = draft.blocks_of(row)[place].pieces.front().owner;
    auto& list = by_owner[static_cast<std::size_t>(owner)];
    if (list.empty()) owners.push_back(owner);
    list.push_back(place);
  }
  const std::size_t count = places.size();
  places.clear();
  for (std::size_t turn = 0; places.size() < count; ++turn) {
    for (const int owner : owners) {
      const auto& list = by_owner[static_cast<std::size_t>(owner)];
      if (turn < list.size()) places.push_back(list[turn]);
    }
  }
}

}  // namespace

GatherKnobs gather_knobs_of(const Values& values) {
  GatherKnobs knobs;
  static_cast<SharingKnobs&>(knobs) = sharing_knobs_of(values);
  knobs.multimem = values.get_or("through", 0) != 0;
  knobs.push = values["transport"] != 0;
  knobs.one_stream = values["streams"] != 0;
  knobs.registers = values["fetch"] != 0;
  knobs.k_steps = static_cast<std::int32_t>(values["k_steps"]);
  knobs.chunks = static_cast<std::int32_t>(values["chunks"]);
  knobs.stages = static_cast<std::int32_t>(values["stages"]);
  knobs.first_fetchers = static_cast<std::int32_t>(values["first_fetchers"]);
  return knobs;
}

GatherDraft::GatherDraft(std::string_view pattern, const AllGatherGemm& problem_, const Machine& machine_,
                         const GatherKnobs& knobs_)
    : problem(problem_),
      machine(machine_),
      knobs(knobs_),
      tile(matmul_tile(knobs_)),
      gemm_resources(matmul_resources(machine_.gpu, machine_.interpreter, problem_.dtype, tile)),
      builder(std::string(pattern), problem_.gpus) {
  const auto m = static_cast<std::int32_t>(problem.m);
  const auto n = static_cast<std::int32_t>(problem.n);
  const auto k = static_cast<std::int32_t>(problem.k);
  a = builder.buffer({"A", problem.dtype, m, k, tile.m, tile.k});
  b = builder.buffer({"B", problem.dtype, k, n, tile.k, tile.n});
  c = builder.buffer({"C", problem.dtype, m, n, tile.m, tile.n});
  builder.result(c);
  const std::vector<Rect> ranges = ranges_of_k(*this);
  for (std::int32_t row = 0; row < grid().rows; ++row) {
    std::vector<Block>& list = blocks.emplace_back();
    for (const Rect& range : ranges) {
      const Rect rect{row * tile.m, range.col, std::min(tile.m, m - row * tile.m), range.cols};
      list.push_back({range.col, range.col + range.cols, flags++, pieces_of(problem, rect)});
    }
  }
}

TileGrid GatherDraft::grid() const {
  return {ceil_div(static_cast<std::int32_t>(problem.m), tile.m),
          ceil_div(static_cast<std::int32_t>(problem.n), tile.n)};
}

Rect GatherDraft::tile_at(std::int32_t row, std::int32_t col) const {
  const std::int32_t first_row = row * tile.m;
  const std::int32_t first_col = col * tile.n;
  return {first_row, first_col, std::min(tile.m, static_cast<std::int32_t>(problem.m) - first_row),
          std::min(tile.n, static_cast<std::int32_t>(problem.n) - first_col)};
}

Rect GatherDraft::gemm_tile(int rank, std::int32_t t) const {
  const TileIndex index = grouped_tile(t, grid(), knobs.group_m);
  return tile_at(tile_row(*this, rank, index.row), index.col);
}

std::int64_t elements_of_block(const GatherKnobs& knobs) {
  return std::int64_t{knobs.tile_m} * knobs.k_steps * knobs.tile_k;
}

void expect_product(GatherDraft& draft, std::int16_t shard, bool in_place) {
  ScheduleBuilder& builder = draft.builder;
  const auto region = [&](int rank) {
    Rect rect = slice_of(draft.problem, rank);
    if (!in_place) rect.row = rect.col = 0;
    return Region{shard, rank, rect};
  };
  for (int rank = 0; rank < draft.ranks(); ++rank) builder.input(region(rank));
  builder.input(builder.whole(draft.b));
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    for (int owner = 0; owner < draft.ranks(); ++owner) {
      const Rect slice = slice_of(draft.problem, owner);
      Region c = builder.whole(draft.c, rank);
      Region b = builder.whole(draft.b, rank);
      if (draft.problem.sharding == Sharding::rows) {
        c.rect.row = slice.row;
        c.rect.rows = slice.rows;
      } else {
        b.rect.row = slice.col;
        b.rect.rows = slice.cols;
      }
      builder.expect_product(c, region(owner), b, draft.problem.sharding == Sharding::k && owner > 0);
    }
  }
}

std::int32_t providers(const Block& block, int rank) {
  return static_cast<std::int32_t>(std::count_if(block.pieces.begin(), block.pieces.end(),
                                                 [&](const Piece& piece) { return piece.owner != rank; }));
}

bool is_own(const Block& block, int rank) { return providers(block, rank) == 0; }

std::vector<const Block*> blocks_in_order(const GatherDraft& draft, int rank, std::int32_t tile_row,
                                          std::int32_t workgroup) {
  std::vector<const Block*> order;
  const std::vector<Block>& all = draft.blocks_of(tile_row);
  if (draft.knobs.peer_order == PeerOrder::fixed || draft.problem.sharding == Sharding::rows) {
    for (const Block& block : all) order.push_back(&block);
    return order;
  }
  std::vector<int> owners{rank};
  for (const int peer : peers_of(draft.knobs.peer_order, draft.ranks(), rank, workgroup))
    owners.push_back(peer);
  for (const int owner : owners) {
    for (const Block& block : all) {
      if (block.pieces.front().owner == owner) order.push_back(&block);
    }
  }
  return order;
}

std::int32_t tile_row(const GatherDraft& draft, int rank, std::int32_t w) {
  if (draft.problem.sharding != Sharding::rows || draft.knobs.peer_order == PeerOrder::fixed) return w;
  return (w + slice_of(draft.problem, rank).row / draft.tile.m) % draft.grid().rows;
}

// One group of rows after the other, as tiles are walked, and block by block along K. Staggered: owners take
// turns, because workgroups begin at different owners.
std::vector<const Block*> blocks_to_fetch(const GatherDraft& draft, int rank, std::int32_t first,
                                          std::int32_t count) {
  std::vector<const Block*> found;
  const std::int32_t height = std::max(1, draft.knobs.group_m);
  for (std::int32_t group = first; group < first + count; group += height) {
    const std::int32_t end = std::min(first + count, group + height);
    const auto order = blocks_in_order(draft, rank, tile_row(draft, rank, group), 0);
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < order.size(); ++i) {
      places.push_back(
          static_cast<std::size_t>(order[i] - draft.blocks_of(tile_row(draft, rank, group)).data()));
    }
    if (draft.knobs.peer_order == PeerOrder::staggered)
      take_turns(draft, tile_row(draft, rank, group), places);
    for (const std::size_t place : places) {
      for (std::int32_t w = group; w < end; ++w) {
        const Block& block = draft.blocks_of(tile_row(draft, rank, w))[place];
        if (!is_own(block, rank)) found.push_back(&block);
      }
    }
  }
  return found;
}

void fetch_block(GatherDraft& draft, int rank, const Block& block) {
  for (const Piece& piece : block.pieces) {
    if (piece.owner == rank) continue;
    draft.builder.copy(draft.a, piece.rect, rank, draft.a, piece.rect.row, piece.rect.col, piece.owner);
  }
}

namespace {

// Iterations of K from k_begin to k_end of a tile of C, in one block.
struct TileRange {
  Rect rect;
  std::int32_t k_begin = 0;
  std::int32_t k_end = 0;
};

void multiply_blocks(GatherDraft& draft, int rank, const TileRange& range, std::int32_t workgroup,
                     std::int16_t ready, Scope scope) {
  struct Part {
    const Block* block = nullptr;
    std::int32_t begin = 0;
    std::int32_t end = 0;
  };
  std::vector<Part> parts;
  for (const Block* block : blocks_in_order(draft, rank, range.rect.row / draft.tile.m, workgroup)) {
    const std::int32_t begin = std::max(block->k_begin, range.k_begin);
    const std::int32_t end = std::min(block->k_end, range.k_end);
    if (begin < end) parts.push_back({block, begin, end});
  }
  for (std::size_t i = 0; i < parts.size();) {
    const std::int32_t begin = parts[i].begin;
    std::int32_t end = parts[i].end;
    const std::int32_t arrivals = ready >= 0 ? providers(*parts[i].block, rank) : 0;
    if (arrivals > 0) draft.builder.wait(ready, parts[i].block->flag, arrivals, scope, draft.knobs.lock);
    // Blocks without waiting are one product.
    for (++i; i < parts.size() && parts[i].begin == end; ++i) {
      if (ready >= 0 && providers(*parts[i].block, rank) > 0) break;
      end = parts[i].end;
    }
    draft.builder.matmul(draft.a, draft.b, range.rect, begin, end);
  }
}

}  // namespace

void compute_rect(GatherDraft& draft, int rank, std::int32_t row, std::int32_t col, std::int32_t workgroup,
                  std::int16_t ready, Scope scope) {
  const Rect rect = draft.tile_at(row, col);
  multiply_blocks(draft, rank, {rect, 0, static_cast<std::int32_t>(draft.problem.k)}, workgroup, ready,
                  scope);
  draft.builder.store(draft.c, rect, rank);
}

ProductShares shares_of(GatherDraft& draft, std::int32_t workgroups) {
  const RankProduct product{draft.grid().count(), static_cast<std::int32_t>(draft.problem.k)};
  return share_products(draft.builder, draft.machine.gpu, draft.knobs, draft.tile, workgroups,
                        std::vector<RankProduct>(static_cast<std::size_t>(draft.ranks()), product));
}

std::int32_t waiting_gemm_kernel(GatherDraft& draft, const ProductShares& shares, int rank,
                                 std::int16_t ready, Scope scope) {
  Kernel kernel;
  kernel.name = "gemm";
  kernel.rank = rank;
  kernel.resources = draft.gemm_resources;
  kernel.tile = draft.tile;
  kernel.placement = Placement::persistent;
  const std::int32_t id = draft.builder.kernel(std::move(kernel));
  const auto workgroups = static_cast<std::int32_t>(shares.workgroups);
  const auto rect_of = [&](std::int64_t t) { return draft.gemm_tile(rank, static_cast<std::int32_t>(t)); };
  for (std::int32_t p = 0; p < workgroups; ++p) {
    draft.builder.workgroup(id);
    const auto multiply = [&](std::int64_t t, std::int32_t k_begin, std::int32_t k_end) {
      multiply_blocks(draft, rank, {rect_of(t), k_begin, k_end}, p, ready, scope);
    };
    add_shares(draft.builder, shares, rank, draft.first_item(p, workgroups),
               {multiply, rect_of, [&](std::int64_t t) { draft.builder.store(draft.c, rect_of(t), rank); }});
  }
  return id;
}

}  // namespace tritax
