// The kernels of a plan of a shared GEMM.
//
//   workgroup, for its parts (tile t, iterations [b, e)):  matmul
//     all of t:                store C(t)
//     b > 0, a peer:           store partial(own slot);  ready[own slot] = 1
//     b = 0, the owner:        for peers: wait ready[slot]; reduce partial(slot)
//                              store C(t)
//   with atomics:  an earlier kernel clears the tiles that several workgroups share; every part of such a
//                  tile is added onto C(t). No GPU adds fp8, so its sums are fp32, and a last kernel rounds.
//
// A share begins with a part that another workgroup owns, and ends with parts that it owns itself: a
// workgroup that waits has stored its own partial sums before. All sharers are resident. Dispatched parts of
// one tile go to the hardware with the owner last.
#include "model/parts/shared_gemm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "model/core/error.hpp"
#include "model/parts/grid_order.hpp"
#include "model/parts/partial_sums.hpp"

namespace tritax {

namespace {

// Place of a tile in C and in A, and its columns of B.
struct PlacedTile {
  Rect rect;
  std::int32_t column = 0;

  // Operands of the matmul: rows of A and columns of B.
  Rect operands() const { return {rect.row, column, rect.rows, rect.cols}; }
};

PlacedTile placed_tile(const GroupedProducts& products, std::size_t group, std::int64_t number,
                       const MatmulTile& tile, std::int32_t group_m) {
  const ProductGroup& own = products.groups[group];
  const auto n = static_cast<std::int32_t>(products.all.n);
  const TileIndex at = grouped_tile(static_cast<std::int32_t>(number),
                                    {ceil_div(own.rows, tile.m), ceil_div(n, tile.n)}, group_m);
  const std::int32_t row = at.row * tile.m, col = at.col * tile.n;
  return {{own.row + row, col, std::min(tile.m, own.rows - row), std::min(tile.n, n - col)},
          own.column + col};
}

struct SharedGemm {
  const Machine& machine;
  const GemmKnobs& knobs;
  const GemmPlan& plan;
  const GroupedProducts& products;
  GemmShape gemm;
  MatmulTile tile;
  Resources resources;
  ScheduleBuilder builder;
  std::int16_t a = -1;
  std::int16_t b = -1;
  std::int16_t c = -1;
  std::int16_t sum = -1;       // parts are added here; C itself unless C is fp8
  std::int16_t partials = -1;  // one tile per slot, one below the other
  std::int16_t ready = -1;
  std::vector<std::int32_t> slots{};        // by sharer; -1: the sharer is no peer
  std::vector<std::int64_t> first_tiles{};  // by group

  const Decomposition& split() const { return plan.split; }
  PlacedTile placed(std::int64_t place) const {
    const std::int64_t number = tile_at(split(), place);
    const auto group =
        std::upper_bound(first_tiles.begin(), first_tiles.end(), number) - first_tiles.begin() - 1;
    const auto index = static_cast<std::size_t>(group);
    return placed_tile(products, index, number - first_tiles[index], tile, knobs.group_m);
  }
  Rect rect_of(std::int64_t number) const { return placed(number).rect; }
  Rect slot_rect(std::int64_t sharer, const Rect& rect) const {
    return {slots[static_cast<std::size_t>(sharer)] * tile.m, 0, rect.rows, rect.cols};
  }
  std::int32_t depth(std::int64_t iterations) const {
    return static_cast<std::int32_t>(std::min<std::int64_t>(gemm.k, iterations * tile.k));
  }
};

void add_workspace(SharedGemm& shared) {
  std::int32_t count = 0;
  for (std::int64_t sharer = 0; sharer < shared.split().sharers; ++sharer) {
    const bool peer = range_of(shared.split(), sharer).begin % shared.split().gemm.iterations != 0;
    shared.slots.push_back(peer ? count++ : -1);
  }
  if (count == 0) return;
  if (std::int64_t{count} * shared.tile.m > std::numeric_limits<std::int32_t>::max()) {
    throw UserError(fmt::format("tile: {} partial sums of {}x{} are too many; split less, or use atomics",
                                count, shared.tile.m, shared.tile.n));
  }
  shared.partials =
      shared.builder.buffer({"partials", accumulator_of(shared.gemm.dtype), count * shared.tile.m,
                             shared.tile.n, shared.tile.m, shared.tile.n});
  shared.ready = shared.builder.flags("ready", count);
}

bool is_shared(const Decomposition& split, std::int64_t tile) {
  return tile < split.split_tiles && sharers_of(split, tile).peers() > 0;
}

void add_onto_tile(SharedGemm& shared, const TilePart& part, const Rect& rect) {
  ScheduleBuilder& builder = shared.builder;
  const LockProtocol lock = shared.knobs.lock;
  const TileSharers sharers = sharers_of(shared.split(), part.tile);
  if (shared.plan.fixup == Fixup::atomics) {
    builder.atomic_add(shared.sum, rect, 0);
    return;
  }
  if (part.begin > 0) {
    const std::int64_t own =
        sharer_at(shared.split(), part.tile * shared.split().gemm.iterations + part.begin);
    builder.store(shared.partials, shared.slot_rect(own, rect), 0);
    builder.signal(shared.ready, shared.slots[static_cast<std::size_t>(own)], 1, 0, Scope::gpu, lock);
    return;
  }
  for (std::int64_t peer = sharers.first + 1; peer < sharers.end; ++peer) {
    builder.wait(shared.ready, shared.slots[static_cast<std::size_t>(peer)], 1, Scope::gpu, lock);
    builder.reduce(shared.partials, shared.slot_rect(peer, rect), 0);
  }
  builder.store(shared.c, rect, 0);
}

void add_part(SharedGemm& shared, const TilePart& part) {
  const PlacedTile placed = shared.placed(part.tile);
  const Rect& rect = placed.rect;
  shared.builder.matmul(shared.a, shared.b, placed.operands(), shared.depth(part.begin),
                        shared.depth(part.end));
  if (part.end - part.begin < shared.split().gemm.iterations) {
    add_onto_tile(shared, part, rect);
  } else {
    shared.builder.store(shared.c, rect, 0);
  }
}

// Shares come before whole tiles, each kind by die; of the sharers of one tile the owner comes last.
std::int64_t dispatched_number(const SharedGemm& shared, std::int64_t p) {
  const Decomposition& split = shared.split();
  const auto of_dies = [&](std::int64_t place, std::int64_t count) -> std::int64_t {
    return first_item(shared.knobs, shared.machine.gpu, static_cast<std::int32_t>(place),
                      static_cast<std::int32_t>(count));
  };
  if (p >= split.sharers) return split.sharers + of_dies(p - split.sharers, split.whole_tiles());
  const std::int64_t number = of_dies(p, split.sharers);
  if (split.regions() != split.split_tiles) return number;
  const std::int64_t of_tile = split.sharers / split.split_tiles;
  return number / of_tile * of_tile + (of_tile - 1 - number % of_tile);
}

void add_workgroups(SharedGemm& shared, std::int32_t kernel) {
  for (const std::vector<std::int64_t>& tiles : shared.plan.dealt) {
    shared.builder.workgroup(kernel);
    for (const std::int64_t tile : tiles) add_part(shared, {tile, 0, shared.split().gemm.iterations});
  }
  if (!shared.plan.dealt.empty()) return;
  const bool dispatched = shared.plan.form == GridForm::dispatched;
  const std::int64_t all = shared.split().sharers + shared.split().whole_tiles();
  const std::int64_t workgroups = dispatched ? all : std::min(all, shared.plan.workgroups);
  for (std::int64_t p = 0; p < workgroups; ++p) {
    const std::int64_t number =
        dispatched ? dispatched_number(shared, p)
                   : first_item(shared.knobs, shared.machine.gpu, static_cast<std::int32_t>(p),
                                static_cast<std::int32_t>(workgroups));
    shared.builder.workgroup(kernel);
    for (const TilePart& part : parts_of(shared.split(), number, workgroups)) add_part(shared, part);
  }
}

// Counters that the workgroups of some dies share, as in ROCm/tritonBLAS; a workgroup that finds its counter
// empty continues with the next.
void add_stealing(SharedGemm& shared, std::int32_t kernel) {
  const std::int64_t tiles = shared.split().gemm.tiles;
  const auto counters = static_cast<std::int32_t>(
      std::min({triton_steal_counters(tiles), std::int64_t{shared.machine.gpu.xcds}, tiles}));
  const std::int16_t queue = shared.builder.flags("queue", counters);
  for (std::int64_t tile = 0; tile < tiles; ++tile) {
    shared.builder.item(kernel);
    add_part(shared, {tile, 0, shared.split().gemm.iterations});
  }
  const std::int64_t workgroups = std::min(tiles, shared.plan.workgroups);
  for (std::int64_t p = 0; p < workgroups; ++p) {
    shared.builder.workgroup(kernel);
    for (std::int32_t i = 0; i < counters; ++i) {
      const auto counter = static_cast<std::int32_t>((p + i) % counters);
      const Share items = share_of(tiles, counter, counters);
      shared.builder.claim_items(queue, counter, static_cast<std::int32_t>(items.begin),
                                 static_cast<std::int32_t>(items.size()));
    }
  }
}

std::int32_t add_gemm_kernel(SharedGemm& shared) {
  Kernel kernel;
  kernel.name = "gemm";
  kernel.resources = shared.resources;
  kernel.tile = shared.tile;
  kernel.placement = shared.plan.form == GridForm::dispatched ? Placement::dispatch : Placement::persistent;
  const std::int32_t id = shared.builder.kernel(std::move(kernel));
  if (shared.plan.form == GridForm::stealing) {
    add_stealing(shared, id);
  } else {
    add_workgroups(shared, id);
  }
  return id;
}

// A kernel without matrix instructions over pieces of the shared tiles; a piece has as many elements as one
// workgroup holds.
template <typename Visit>
std::int32_t add_kernel_of_pieces(SharedGemm& shared, const char* name, const Visit& visit) {
  Kernel kernel;
  kernel.name = name;
  kernel.resources = tile_copy_resources(shared.machine.gpu, copy_resources().threads, kMostOfReducer);
  const std::int32_t id = shared.builder.kernel(std::move(kernel));
  const auto rows = static_cast<std::int32_t>(kMostOfReducer / shared.tile.n);
  for (std::int64_t tile = 0; tile < shared.split().split_tiles; ++tile) {
    if (!is_shared(shared.split(), tile)) continue;
    const Rect rect = shared.rect_of(tile);
    for (std::int32_t row = 0; row < rect.rows; row += rows) {
      shared.builder.workgroup(id);
      visit(Rect{rect.row + row, rect.col, std::min(rows, rect.rows - row), rect.cols});
    }
  }
  return id;
}

std::int32_t add_clearing_kernel(SharedGemm& shared) {
  ScheduleBuilder& builder = shared.builder;
  const DType dtype = sum_dtype(shared.gemm.dtype);
  const MatmulTile& tile = shared.tile;
  const std::int16_t zeros = builder.buffer({"zeros", dtype, tile.m, tile.n, tile.m, tile.n});
  builder.input(builder.whole(zeros), InputValues::zero);
  return add_kernel_of_pieces(shared, "clear",
                              [&](const Rect& piece) { builder.copy(shared.sum, piece, 0, zeros, 0, 0, 0); });
}

std::int32_t add_rounding_kernel(SharedGemm& shared) {
  return add_kernel_of_pieces(shared, "round", [&](const Rect& piece) {
    shared.builder.load(shared.sum, piece, 0);
    shared.builder.store(shared.c, piece, 0);
  });
}

}  // namespace

std::int64_t GroupedProducts::tiles_of(std::size_t group, const MatmulTile& tile) const {
  return std::int64_t{ceil_div(groups[group].rows, tile.m)} *
         ceil_div(static_cast<std::int32_t>(all.n), tile.n);
}

TiledGemm GroupedProducts::tiled(const MatmulTile& tile) const {
  TiledGemm line = tiled_gemm(all.m, all.n, all.k, tile.m, tile.n, tile.k);
  line.tiles = 0;
  for (std::size_t group = 0; group < groups.size(); ++group) line.tiles += tiles_of(group, tile);
  return line;
}

ProductBuffers add_matrices(ScheduleBuilder& builder, const GroupedProducts& products, const MatmulTile& tile,
                            DType c_dtype) {
  const auto m = static_cast<std::int32_t>(products.all.m);
  const auto n = static_cast<std::int32_t>(products.all.n);
  const auto k = static_cast<std::int32_t>(products.all.k);
  ProductBuffers buffers;
  buffers.a = builder.buffer({"A", products.all.dtype, m, k, tile.m, tile.k});
  buffers.b = builder.buffer(
      {"B", products.all.dtype, k, static_cast<std::int32_t>(products.columns), tile.k, tile.n});
  buffers.c = builder.buffer({"C", c_dtype, m, n, tile.m, tile.n});
  builder.result(buffers.c);
  if (products.groups.size() == 1 && products.columns == n) {
    builder.expect_column_blocks(buffers.a, buffers.b, buffers.c);
    return buffers;
  }
  builder.input(builder.whole(buffers.a));
  builder.input(builder.whole(buffers.b));
  for (const ProductGroup& group : products.groups) {
    builder.expect_product({buffers.c, 0, {group.row, 0, group.rows, n}},
                           {buffers.a, 0, {group.row, 0, group.rows, k}},
                           {buffers.b, 0, {0, group.column, k, n}});
  }
  return buffers;
}

std::int32_t add_tiles_kernel(ScheduleBuilder& builder, const Machine& machine,
                              const GroupedProducts& products, const ProductBuffers& buffers,
                              const std::vector<std::size_t>& groups, const GemmKnobs& knobs,
                              std::string_view name) {
  Kernel kernel;
  kernel.name = std::string(name);
  kernel.tile = matmul_tile(knobs);
  kernel.resources = matmul_resources(machine.gpu, machine.interpreter, products.all.dtype, kernel.tile);
  const MatmulTile tile = kernel.tile;
  std::vector<PlacedTile> tiles;
  for (const std::size_t group : groups) {
    for (std::int64_t number = 0; number < products.tiles_of(group, tile); ++number)
      tiles.push_back(placed_tile(products, group, number, tile, knobs.group_m));
  }
  const std::int32_t id = builder.kernel(std::move(kernel));
  const auto count = static_cast<std::int32_t>(tiles.size());
  for (std::int32_t p = 0; p < count; ++p) {
    const PlacedTile& placed = tiles[static_cast<std::size_t>(first_item(knobs, machine.gpu, p, count))];
    builder.workgroup(id);
    builder.matmul(buffers.a, buffers.b, placed.operands(), 0, static_cast<std::int32_t>(products.all.k));
    builder.store(buffers.c, placed.rect, 0);
  }
  return id;
}

Schedule build_shared_gemm(const GemmShape& gemm, const Machine& machine, const GemmKnobs& knobs,
                           const GemmPlan& plan) {
  const GroupedProducts products{gemm, {{0, static_cast<std::int32_t>(gemm.m), 0}}, gemm.n};
  return build_shared_gemm(products, machine, knobs, plan);
}

Schedule build_shared_gemm(const GroupedProducts& products, const Machine& machine, const GemmKnobs& knobs,
                           const GemmPlan& plan) {
  const GemmShape& gemm = products.all;
  const MatmulTile tile = matmul_tile(knobs);
  SharedGemm shared{machine,
                    knobs,
                    plan,
                    products,
                    gemm,
                    tile,
                    matmul_resources(machine.gpu, machine.interpreter, gemm.dtype, tile),
                    ScheduleBuilder(std::string(plan.name), 1)};
  const ProductBuffers buffers = add_matrices(shared.builder, products, tile, gemm.dtype);
  shared.a = buffers.a;
  shared.b = buffers.b;
  shared.sum = shared.c = buffers.c;
  std::int64_t first = 0;
  for (std::size_t group = 0; group < products.groups.size(); ++group) {
    shared.first_tiles.push_back(first);
    first += products.tiles_of(group, tile);
  }
  const bool atomics = plan.fixup == Fixup::atomics && seams_of(plan.split) > 0;
  if (!atomics) add_workspace(shared);
  const bool rounds = atomics && sum_dtype(gemm.dtype) != gemm.dtype;
  if (rounds) {
    shared.sum = shared.builder.buffer({"sum", sum_dtype(gemm.dtype), static_cast<std::int32_t>(gemm.m),
                                        static_cast<std::int32_t>(gemm.n), tile.m, tile.n});
  }
  Graph kernels;
  if (atomics) kernels.push_back({add_clearing_kernel(shared), 0});
  kernels.push_back({add_gemm_kernel(shared), 0});
  if (rounds) kernels.push_back({add_rounding_kernel(shared), 0});
  host_program(shared.builder, 0, knobs, kernels);
  return shared.builder.finish();
}

}  // namespace tritax
