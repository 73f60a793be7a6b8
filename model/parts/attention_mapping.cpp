#include "model/parts/attention_mapping.hpp"

#include <fmt/format.h>

namespace tritax {

namespace {

AttentionTile naive_block_first(const AttentionGrid& grid, std::int64_t w) {
  return {w / (grid.heads * grid.blocks), w % grid.heads, w / grid.heads % grid.blocks};
}

AttentionTile clean(const AttentionGrid& grid, std::int64_t w) {
  const std::int64_t of_die = grid.heads / grid.dies * grid.blocks;
  const std::int64_t place = w / grid.dies, rest = place % of_die;
  return {place / of_die, w % grid.dies * (grid.heads / grid.dies) + rest / grid.blocks, rest % grid.blocks};
}

AttentionTile of_paper(const AttentionGrid& grid, std::int64_t w) {
  const std::int64_t u = w / grid.batch, s = grid.dies * grid.blocks;
  return {w / (grid.blocks * grid.heads) % grid.batch, u % grid.dies * (grid.heads / grid.dies) + u / s,
          u % s / grid.dies};
}

AttentionTile of_aiter(const AttentionGrid& grid, std::int64_t w) {
  const std::int64_t x = w % grid.dies, place = w / grid.dies;
  const std::int64_t kv_heads = grid.kv_heads, group = grid.heads / kv_heads;
  AttentionTile tile;
  if (group == 1) {
    const std::int64_t of_head = grid.blocks * grid.batch, rest = place % of_head;
    tile = {rest / grid.blocks, grid.dies * (place / of_head) + x, rest % grid.blocks};
    return tile.head < grid.heads ? tile : naive_block_first(grid, w);
  }
  const std::int64_t of_head = group * grid.blocks * grid.batch;
  std::int64_t kv = x + grid.dies * (place / of_head), q = place % of_head;
  if (kv_heads < grid.dies) {
    const std::int64_t share = of_head / (grid.dies / kv_heads);
    kv = x % kv_heads;
    q = (share > 0 ? place % share : 0) + x / kv_heads * share;
  }
  if (kv >= kv_heads) return naive_block_first(grid, w);
  const std::int64_t rest = q % (group * grid.batch);
  return {rest / group, kv * group + rest % group, q / (group * grid.batch) % grid.blocks};
}

std::string fault_of_aiter(const AttentionGrid& grid) {
  const std::int64_t dies = grid.dies, kv_heads = grid.kv_heads, group = grid.heads / kv_heads;
  if (kv_heads % dies == 0) return {};
  if (group == 1) {
    return fmt::format(
        "swizzle = aiter loses tiles of {} heads on {} dies; it needs a multiple of {} heads: take another "
        "swizzle "
        "or a block-first order",
        grid.heads, dies, dies);
  }
  const bool shares = dies % kv_heads == 0;
  if (shares && group * grid.blocks * grid.batch % (dies / kv_heads) == 0) return {};
  return fmt::format(
      "swizzle = aiter loses tiles of {} heads of keys, {} heads of queries to each, {} query blocks and {} "
      "batches on {} dies; it needs a multiple of {} heads of keys, or a divisor of it whose tiles the dies "
      "share evenly: take another swizzle or a block-first order",
      kv_heads, group, grid.blocks, grid.batch, dies, dies);
}

}  // namespace

std::int64_t remapped(std::int64_t p, std::int64_t n, std::int64_t dies) {
  const std::int64_t most = (n + dies - 1) / dies;
  const std::int64_t full = n % dies == 0 ? dies : n % dies;  // dies with the larger share
  const std::int64_t x = p % dies, l = p / dies;
  return x < full ? x * most + l : full * most + (x - full) * (most - 1) + l;
}

std::string fault_of_mapping(Mapping mapping, HeadFirstForm form, const AttentionGrid& grid) {
  if (mapping != Mapping::swizzled_head_first) return {};
  if (form == HeadFirstForm::aiter) return fault_of_aiter(grid);
  if (grid.heads % grid.dies != 0) {
    return fmt::format(
        "q_heads = {} cannot be shared by {} dies in whole heads; a swizzled head-first order of this "
        "swizzle "
        "needs a multiple of {}: take a block-first order",
        grid.heads, grid.dies, grid.dies);
  }
  if (form == HeadFirstForm::paper && grid.batch > 1) {
    return fmt::format(
        "swizzle = paper gives tiles of {} batches several times and others never; it is for one batch: take "
        "swizzle = clean, which is the same there",
        grid.batch);
  }
  return {};
}

AttentionTile tile_of_workgroup(Mapping mapping, HeadFirstForm form, const AttentionGrid& grid,
                                std::int64_t w) {
  AttentionTile tile = naive_block_first(grid, w);
  switch (mapping) {
    case Mapping::naive_block_first:
      break;
    case Mapping::swizzled_block_first:
      tile.head = remapped(tile.head, grid.heads, grid.dies);
      break;
    case Mapping::naive_head_first:
      return {tile.batch, w / grid.blocks % grid.heads, w % grid.blocks};
    case Mapping::swizzled_head_first:
      if (form == HeadFirstForm::aiter) return of_aiter(grid, w);
      return form == HeadFirstForm::paper ? of_paper(grid, w) : clean(grid, w);
  }
  return tile;
}

}  // namespace tritax
