// The patterns of grouped products. G resident workgroups, p one of them; tiles lie in one line, group after
// group.
//
//   library           for groups: the vendor's GEMM, with the tile and the parts of K that it picks for each
//   launch-per-group  for groups: a kernel with one workgroup per tile
//   dispatched        one kernel with one workgroup per tile, dispatched to free compute units
//   tile-mapped       workgroup p: tiles p, p+G, … of the line
//   group-mapped      G/groups workgroups per group, which take its tiles in turn; with more groups than
//                     workgroups, p: all tiles of groups p, p+G, …
//   work-oriented     an even share of the iterations of K of all tiles (Stream-K); the workgroup that begins
//                     a tile adds the partial sums of the others
//   bucketing         one kernel for all groups that the same height of tile suits, the highest first
//   dynamic-queue     workgroups draw tiles from the counters of their dies
#include "model/workloads/grouped_gemm/patterns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "model/core/error.hpp"
#include "model/cost/power_bound.hpp"
#include "model/parts/group_tile.hpp"
#include "model/parts/library_gemm.hpp"

namespace tritax {

namespace {

std::int64_t grid_for(const GroupedProducts& products, const Machine& machine, const GroupedKnobs& knobs) {
  const Resources resources =
      matmul_resources(machine.gpu, machine.interpreter, products.all.dtype, matmul_tile(knobs));
  const std::int64_t most = std::int64_t{residents_at_most(machine.gpu, resources)} * machine.gpu.cu_count();
  if (knobs.grid > most) {
    throw UserError(fmt::format(
        "grid: {} workgroups of this tile are not resident at once; give at most {}, or a smaller tile",
        knobs.grid, most));
  }
  return knobs.grid > 0 ? knobs.grid : machine.gpu.cu_count();
}

// Tiles are multiplied and stored; parts of tiles, at most two per workgroup, are announced, waited for and
// added.
void check_tile_count(std::int64_t tiles, std::int64_t sharers, const std::string& which) {
  const double operations = 2 * static_cast<double>(tiles) + 12 * static_cast<double>(sharers);
  if (operations <= kMaxOperations) return;
  throw UserError(
      fmt::format("tile: {} cut these products into {}, too many to schedule (over {:.0f} tile operations); "
                  "use larger ones",
                  which, tiles, kMaxOperations));
}

void check_grouped(const GroupedProducts& products, const Machine& machine, const GroupedKnobs& knobs,
                   std::int64_t sharers = 0) {
  check(knobs, machine.gpu);
  check_tile_count(products.tiled(matmul_tile(knobs)).tiles, sharers,
                   fmt::format("{}x{} tiles", knobs.tile_m, knobs.tile_n));
}

Schedule build_plan(const GroupedProducts& products, const Machine& machine, const GroupedKnobs& knobs,
                    GemmPlan plan) {
  check_grouped(products, machine, knobs, plan.split.sharers);
  return build_shared_gemm(products, machine, knobs, plan);
}

GemmPlan whole_tiles(std::string_view name, const GroupedProducts& products, const GroupedKnobs& knobs) {
  return {name, data_parallel(products.tiled(matmul_tile(knobs)))};
}

std::vector<std::size_t> all_groups(const GroupedProducts& products) {
  std::vector<std::size_t> groups(products.groups.size());
  std::iota(groups.begin(), groups.end(), 0);
  return groups;
}

// Tiles of each workgroup in the line of tiles, group by group.
std::vector<std::vector<std::int64_t>> deal_groups(const GroupedProducts& products, const MatmulTile& tile,
                                                   std::int64_t grid) {
  const auto groups = static_cast<std::int64_t>(products.groups.size());
  std::vector<std::vector<std::int64_t>> dealt(static_cast<std::size_t>(grid));
  std::int64_t first = 0;
  for (std::int64_t group = 0; group < groups; ++group) {
    const std::int64_t tiles = products.tiles_of(static_cast<std::size_t>(group), tile);
    const bool alone = groups > grid;
    const Share team = alone ? Share{group % grid, group % grid + 1}
                             : share_of(grid, static_cast<int>(group), static_cast<int>(groups));
    for (std::int64_t i = 0; i < tiles; ++i)
      dealt[static_cast<std::size_t>(team.begin + i % team.size())].push_back(first + i);
    first += tiles;
  }
  const auto idle = [](const auto& tiles) { return tiles.empty(); };
  dealt.erase(std::remove_if(dealt.begin(), dealt.end(), idle), dealt.end());
  return dealt;
}

}  // namespace

GroupedKnobs grouped_knobs_of(const Values& values) {
  GroupedKnobs knobs{gemm_knobs_of(values)};
  knobs.grid = static_cast<std::int32_t>(values["grid"]);
  knobs.fixup = static_cast<Fixup>(values["fixup"]);
  return knobs;
}

Schedule build_grouped_library(const GroupedProducts& products, const Machine& machine,
                               const GroupedKnobs& knobs) {
  const GemmShape& all = products.all;
  const auto n = static_cast<std::int32_t>(all.n), k = static_cast<std::int32_t>(all.k);
  const GemmShape mean{all.m / static_cast<std::int64_t>(products.groups.size()) + 1, all.n, all.k,
                       all.dtype};
  std::map<std::int32_t, LibraryTile> tiles;
  std::int32_t rows_of_parts = 0;
  for (const ProductGroup& group : products.groups) {
    const auto found = tiles.find(group.rows);
    if (found != tiles.end()) continue;
    const LibraryTile picked = library_tile({group.rows, all.n, all.k, all.dtype}, machine);
    tiles[group.rows] = picked;
    if (picked.parts > 1) rows_of_parts = std::max(rows_of_parts, group.rows * picked.parts);
  }
  const MatmulTile tile = library_tile(mean, machine).tile;
  ScheduleBuilder builder("library", 1);
  const ProductBuffers buffers =
      add_matrices(builder, products, tile, all.dtype == DType::fp8 ? DType::bf16 : all.dtype);
  const std::int16_t parts = rows_of_parts == 0
                                 ? std::int16_t{-1}
                                 : builder.buffer({"parts", DType::fp32, rows_of_parts, n, tile.m, tile.n});
  Graph kernels;
  for (const ProductGroup& group : products.groups) {
    LibraryGemmPlan plan{0,     buffers.a, buffers.b,           k, buffers.c, {group.row, 0, group.rows, n},
                         parts, all.dtype, tiles.at(group.rows)};
    plan.a_row = group.row;
    plan.b_column = group.column;
    for (const std::int32_t kernel : add_library_gemm(builder, machine, plan)) kernels.push_back({kernel, 0});
  }
  GemmKnobs launched;
  launched.host_barriers = knobs.host_barriers;
  host_program(builder, 0, launched, kernels);
  return builder.finish();
}

Schedule build_launch_per_group(const GroupedProducts& products, const Machine& machine,
                                const GroupedKnobs& knobs) {
  check_grouped(products, machine, knobs);
  ScheduleBuilder builder("launch-per-group", 1);
  const ProductBuffers buffers = add_matrices(builder, products, matmul_tile(knobs), products.all.dtype);
  Graph kernels;
  for (const std::size_t group : all_groups(products))
    kernels.push_back({add_tiles_kernel(builder, machine, products, buffers, {group}, knobs, "group"), 0});
  host_program(builder, 0, knobs, kernels);
  return builder.finish();
}

Schedule build_grouped_dispatched(const GroupedProducts& products, const Machine& machine,
                                  const GroupedKnobs& knobs) {
  return build_plan(products, machine, knobs, whole_tiles("dispatched", products, knobs));
}

Schedule build_tile_mapped(const GroupedProducts& products, const Machine& machine,
                           const GroupedKnobs& knobs) {
  GemmPlan plan = whole_tiles("tile-mapped", products, knobs);
  plan.form = GridForm::persistent;
  plan.workgroups = grid_for(products, machine, knobs);
  return build_plan(products, machine, knobs, std::move(plan));
}

Schedule build_group_mapped(const GroupedProducts& products, const Machine& machine,
                            const GroupedKnobs& knobs) {
  GemmPlan plan = whole_tiles("group-mapped", products, knobs);
  plan.form = GridForm::persistent;
  plan.dealt = deal_groups(products, matmul_tile(knobs), grid_for(products, machine, knobs));
  return build_plan(products, machine, knobs, std::move(plan));
}

Schedule build_work_oriented(const GroupedProducts& products, const Machine& machine,
                             const GroupedKnobs& knobs) {
  const std::int64_t grid = grid_for(products, machine, knobs);
  const GemmPlan plan{"work-oriented", stream_k(products.tiled(matmul_tile(knobs)), grid),
                      GridForm::persistent, grid, knobs.fixup};
  return build_plan(products, machine, knobs, plan);
}

Schedule build_group_buckets(const GroupedProducts& products, const Machine& machine,
                             const GroupedKnobs& knobs) {
  const DType dtype = products.all.dtype;
  std::int64_t tiles = 0;
  std::map<std::int32_t, std::pair<GemmKnobs, std::vector<std::size_t>>, std::greater<>> buckets;
  for (const std::size_t group : all_groups(products)) {
    const GemmKnobs suited = with_tile_for(knobs, dtype, machine, products.groups[group].rows, knobs.tile_n);
    auto& [tile, groups] = buckets[suited.tile_m];
    if (groups.empty()) check(suited, machine.gpu);
    tile = suited;
    groups.push_back(group);
    tiles += products.tiles_of(group, matmul_tile(suited));
  }
  check_tile_count(tiles, 0, fmt::format("tiles of {}x{} and lower", knobs.tile_m, knobs.tile_n));
  ScheduleBuilder builder("bucketing", 1);
  const ProductBuffers buffers = add_matrices(builder, products, matmul_tile(knobs), dtype);
  Graph kernels;
  for (const auto& [rows, bucket] : buckets) {
    const std::string name = fmt::format("groups_{}", rows);
    kernels.push_back(
        {add_tiles_kernel(builder, machine, products, buffers, bucket.second, bucket.first, name), 0});
  }
  host_program(builder, 0, knobs, kernels);
  return builder.finish();
}

Schedule build_tile_queue(const GroupedProducts& products, const Machine& machine,
                          const GroupedKnobs& knobs) {
  GemmPlan plan = whole_tiles("dynamic-queue", products, knobs);
  plan.form = GridForm::stealing;
  plan.workgroups = grid_for(products, machine, knobs);
  return build_plan(products, machine, knobs, std::move(plan));
}

}  // namespace tritax
