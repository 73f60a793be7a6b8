#include "model/workloads/gemm_all_scatter/draft.hpp"

#include <algorithm>
#include <utility>

#include "model/core/error.hpp"

namespace tritax {

namespace {

// Rows and columns that a workgroup sends at a time.
TileIndex comm_tile(const PatternDraft& draft) {
  const GemmKnobs& knobs = draft.knobs;
  return {knobs.comm_tile_m > 0 ? knobs.comm_tile_m : draft.tile.m,
          knobs.comm_tile_n > 0 ? knobs.comm_tile_n : draft.tile.n};
}

// C = [A_0; A_1; …]·B on every rank.
void expect_row_blocks(PatternDraft& draft) {
  ScheduleBuilder& builder = draft.builder;
  const auto k = static_cast<std::int32_t>(draft.workload.k);
  builder.input(builder.whole(draft.b), InputValues::same);
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    const Rect block = owned_block(draft.workload, rank);
    const Region a{draft.a, rank, {0, 0, block.rows, k}};
    builder.input(a);
    builder.expect_product({draft.c, kEveryRank, block}, a, builder.whole(draft.b, rank));
  }
}

}  // namespace

std::int64_t elements_of_comm_tile(const PatternDraft& draft) {
  const TileIndex tile = comm_tile(draft);
  return std::int64_t{tile.row} * tile.col;
}

PatternDraft::PatternDraft(std::string_view pattern, const GemmAllScatter& workload_, const Machine& machine_,
                           const SumKnobs& knobs_)
    : workload(workload_),
      machine(machine_),
      knobs(knobs_),
      tile(matmul_tile(knobs_)),
      gemm_resources(matmul_resources(machine_.gpu, machine_.interpreter, workload_.dtype, tile)),
      builder(std::string(pattern), workload_.gpus) {
  const auto m = static_cast<std::int32_t>(workload.m);
  const auto n = static_cast<std::int32_t>(workload.n);
  const auto k = static_cast<std::int32_t>(workload.k);
  const Rect largest = owned_block(workload, 0);
  a = builder.buffer({"A", workload.dtype, largest.rows, k, tile.m, tile.k});
  b = builder.buffer({"B", workload.dtype, k, largest.cols, tile.k, tile.n});
  c = builder.buffer({"C", c_dtype(), m, n, tile.m, tile.n});
  builder.result(c);
  if (workload.blocks == Blocks::rows) {
    expect_row_blocks(*this);
  } else {
    builder.expect_column_blocks(a, b, c);
  }
  // A tile is computed, stored, announced, waited for and sent to every peer, in pieces.
  const std::int64_t piece_m = knobs.comm_tile_m > 0 ? std::min(knobs.comm_tile_m, tile.m) : tile.m;
  const std::int64_t piece_n = knobs.comm_tile_n > 0 ? std::min(knobs.comm_tile_n, tile.n) : tile.n;
  const std::int64_t pieces = std::int64_t{tile.m} * tile.n / (piece_m * piece_n);
  builder.reserve(static_cast<std::size_t>(ranks() * max_tiles() * (4 + pieces * ranks())));
}

TileGrid PatternDraft::gemm_grid(int rank) const {
  const Rect block = owned_block(workload, rank);
  return {ceil_div(block.rows, tile.m), ceil_div(block.cols, tile.n)};
}

Rect PatternDraft::gemm_tile(int rank, std::int32_t t) const {
  return tritax::gemm_tile(*this, owned_block(workload, rank), t);
}

Rect gemm_tile(const PatternDraft& draft, const Rect& block, std::int32_t t) {
  const MatmulTile& tile = draft.tile;
  const TileGrid grid{ceil_div(block.rows, tile.m), ceil_div(block.cols, tile.n)};
  const TileIndex index = grouped_tile(t, grid, draft.knobs.group_m);
  const std::int32_t row = index.row * tile.m;
  const std::int32_t col = index.col * tile.n;
  return {block.row + row, block.col + col, std::min(tile.m, block.rows - row),
          std::min(tile.n, block.cols - col)};
}

void PatternDraft::add_arrived(std::int32_t workgroups) {
  if (workload.blocks == Blocks::rows && ranks() > 1 && !knobs.host_barriers)
    arrived = builder.flags("arrived", workgroups * ranks());
}

void end_of_sender(PatternDraft& draft, int rank, std::int32_t q, const std::vector<int>& peers) {
  if (draft.arrived < 0) return;
  exchange_arrivals(draft.builder, peers, draft.ranks(), rank, q, draft.arrived, draft.knobs.lock,
                    draft.knobs.serves);
}

std::int32_t PatternDraft::max_tiles() const { return gemm_grid(0).count(); }

std::vector<CommItem> comm_items(const PatternDraft& draft, const ProductShares& shares, int rank) {
  const TileGrid grid = draft.gemm_grid(rank);
  const MatmulTile& tile = draft.tile;
  std::vector<std::int32_t> tile_at(static_cast<std::size_t>(grid.count()));
  for (std::int32_t t = 0; t < grid.count(); ++t) {
    const TileIndex index = grouped_tile(t, grid, draft.knobs.group_m);
    tile_at[static_cast<std::size_t>(index.row * grid.cols + index.col)] = t;
  }

  const Rect block = owned_block(draft.workload, rank);
  const auto [height, width] = comm_tile(draft);
  std::vector<CommItem> items;
  for (std::int32_t row = 0; row < block.rows; row += height) {
    for (std::int32_t col = 0; col < block.cols; col += width) {
      CommItem item;
      item.rect = {block.row + row, block.col + col, std::min(height, block.rows - row),
                   std::min(width, block.cols - col)};
      for (std::int32_t i = row / tile.m; i <= (row + item.rect.rows - 1) / tile.m; ++i) {
        for (std::int32_t j = col / tile.n; j <= (col + item.rect.cols - 1) / tile.n; ++j) {
          item.tiles.push_back(tile_at[static_cast<std::size_t>(i * grid.cols + j)]);
        }
      }
      std::sort(item.tiles.begin(), item.tiles.end());
      items.push_back(std::move(item));
    }
  }
  std::stable_sort(items.begin(), items.end(),
                   [](const CommItem& x, const CommItem& y) { return x.tiles.back() < y.tiles.back(); });
  if (draft.knobs.sharing == ProductSharing::tiles) return items;
  const std::vector<std::int64_t> until = iterations_until_whole(shares, rank);
  const auto ready = [&](const CommItem& item) {
    std::int64_t last = 0;
    for (const std::int32_t t : item.tiles) last = std::max(last, until[static_cast<std::size_t>(t)]);
    return last;
  };
  std::stable_sort(items.begin(), items.end(),
                   [&](const CommItem& x, const CommItem& y) { return ready(x) < ready(y); });
  return items;
}

ProductShares shares_of(PatternDraft& draft, std::int32_t workgroups) {
  std::vector<RankProduct> products;
  for (int rank = 0; rank < draft.ranks(); ++rank)
    products.push_back({draft.gemm_grid(rank).count(), static_cast<std::int32_t>(draft.workload.k)});
  return share_products(draft.builder, draft.machine.gpu, draft.knobs, draft.tile, workgroups,
                        std::move(products));
}

void multiply(PatternDraft& draft, int rank, Rect tile, std::int32_t k_begin, std::int32_t k_end) {
  const Rect block = owned_block(draft.workload, rank);
  tile.row -= block.row;
  tile.col -= block.col;
  draft.builder.matmul(draft.a, draft.b, tile, k_begin, k_end);
}

void compute_tiles(PatternDraft& draft, const ProductShares& shares, int rank, std::int32_t number,
                   const std::function<void(std::int32_t)>& finish) {
  const auto rect_of = [&](std::int64_t t) { return draft.gemm_tile(rank, static_cast<std::int32_t>(t)); };
  const auto multiply_part = [&](std::int64_t t, std::int32_t k_begin, std::int32_t k_end) {
    multiply(draft, rank, rect_of(t), k_begin, k_end);
  };
  add_shares(draft.builder, shares, rank, number,
             {multiply_part, rect_of, [&](std::int64_t t) { finish(static_cast<std::int32_t>(t)); }});
}

void send_item(PatternDraft& draft, int rank, const CommItem& item, const std::vector<int>& peers,
               std::int16_t lock) {
  if (lock >= 0) {
    for (const std::int32_t t : item.tiles) draft.builder.wait(lock, t, 1, Scope::gpu, draft.knobs.lock);
  }
  add_by_peer(draft.builder, draft.knobs.serves, [&] {
    for (const int peer : peers)
      draft.builder.copy(draft.c, item.rect, peer, draft.c, item.rect.row, item.rect.col, rank);
  });
}

void compute_and_store_tiles(PatternDraft& draft, const ProductShares& shares, int rank, std::int32_t number,
                             std::int16_t lock) {
  compute_tiles(draft, shares, rank, number, [&](std::int32_t t) {
    draft.builder.store(draft.c, draft.gemm_tile(rank, t), rank);
    if (lock >= 0) draft.builder.signal(lock, t, 1, rank, Scope::gpu, draft.knobs.lock);
  });
}

std::int32_t gemm_kernel(PatternDraft& draft, const ProductShares& shares, int rank, std::int16_t lock) {
  Kernel kernel;
  kernel.name = "gemm";
  kernel.rank = rank;
  kernel.resources = draft.gemm_resources;
  kernel.tile = draft.tile;
  kernel.placement = Placement::persistent;
  const std::int32_t id = draft.builder.kernel(std::move(kernel));
  const auto workgroups = static_cast<std::int32_t>(shares.workgroups);
  for (std::int32_t p = 0; p < workgroups; ++p) {
    draft.builder.workgroup(id);
    compute_and_store_tiles(draft, shares, rank, draft.first_item(p, workgroups), lock);
  }
  return id;
}

std::int32_t copying_kernel(PatternDraft& draft, std::string_view name, int rank) {
  Kernel kernel;
  kernel.name = name;
  kernel.rank = rank;
  kernel.resources =
      tile_copy_resources(draft.machine.gpu, copy_resources().threads, elements_of_comm_tile(draft));
  kernel.placement = Placement::persistent;
  return draft.builder.kernel(std::move(kernel));
}

std::int32_t scatter_kernel(PatternDraft& draft, const ProductShares& shares, int rank,
                            std::int32_t workgroups, std::int16_t lock) {
  const std::int32_t id = copying_kernel(draft, "scatter", rank);
  const std::vector<CommItem> items = comm_items(draft, shares, rank);
  for (std::int32_t q = 0; q < workgroups; ++q) {
    const std::vector<int> peers = draft.peers_of(rank, q);
    draft.builder.workgroup(id);
    for (auto i = static_cast<std::size_t>(draft.first_item(q, workgroups)); i < items.size();
         i += workgroups) {
      send_item(draft, rank, items[i], peers, lock);
    }
    end_of_sender(draft, rank, q, peers);
  }
  return id;
}

}  // namespace tritax
