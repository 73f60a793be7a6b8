#include "model/parts/product_shares.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "model/core/error.hpp"
#include "model/parts/kernels.hpp"

namespace tritax {

namespace {

constexpr std::int64_t kMostPartsOfTile = 256;

constexpr std::array<Spec, 2> kSharingKnobs{{
    {.name = "sharing",
     .help = "how workgroups share the product: whole tiles, every tile in equal parts of K, all iterations "
             "evenly (iterations), or only those of the last round and one full round (last-waves)",
     .kind = ValueKind::name,
     .names = kProductSharingNames,
     .shown = "shared by {}",
     .not_shown = static_cast<std::int64_t>(ProductSharing::tiles)},
    {.name = "k_split",
     .help = "parts of K per tile, one workgroup each, for sharing = parts",
     .high = kMostPartsOfTile,
     .usual = {2},
     .varies_by_doubling = true,
     .shown = "split in {}",
     .not_shown = 2},
}};

Decomposition decomposition_of(const SharingKnobs& knobs, const TiledGemm& gemm, std::int64_t workgroups) {
  if (gemm.tiles == 0) return {};
  switch (knobs.sharing) {
    case ProductSharing::tiles:
      return data_parallel(gemm);
    case ProductSharing::fixed_split:
      return fixed_split(gemm, knobs.split);
    case ProductSharing::stream_k:
      return stream_k(gemm, std::min(workgroups, gemm.total()));
    case ProductSharing::two_tile_stream_k:
      return two_tile_stream_k(gemm, workgroups);
  }
  return {};
}

// Slot of every sharer; -1 for a sharer that is no peer of any tile.
std::vector<std::int32_t> slots_of(const Decomposition& split) {
  std::vector<std::int32_t> slots;
  std::int32_t count = 0;
  for (std::int64_t sharer = 0; sharer < split.sharers; ++sharer) {
    const bool peer = range_of(split, sharer).begin % split.gemm.iterations != 0;
    slots.push_back(peer ? count++ : -1);
  }
  return slots;
}

void add_workspace_of(ProductShares& shares, ScheduleBuilder& builder, const Gpu& gpu) {
  std::int64_t most = 0;
  for (const std::vector<std::int32_t>& slots : shares.slots) {
    const auto peers = std::count_if(slots.begin(), slots.end(), [](std::int32_t slot) { return slot >= 0; });
    most = std::max<std::int64_t>(most, peers);
  }
  if (most == 0) return;
  check_memory(fmt::format("sharing: the partial sums of {} parts of tiles", most),
               static_cast<double>(most) * shares.tile.m * shares.tile.n * bytes_of(DType::fp32), gpu);
  if (most * shares.tile.m > std::numeric_limits<std::int32_t>::max()) {
    throw UserError(
        fmt::format("k_split: {} partial sums of {}x{} are too many; split less, or use other tiles", most,
                    shares.tile.m, shares.tile.n));
  }
  const auto count = static_cast<std::int32_t>(most);
  shares.partials = builder.buffer(
      {"shares", DType::fp32, count * shares.tile.m, shares.tile.n, shares.tile.m, shares.tile.n});
  shares.shared = builder.flags("shared", count);
}

// Equal parts of all tiles may outnumber the workgroups, which then take parts in turn.
bool takes_turns(const ProductShares& shares, const Decomposition& split) {
  return split.sharers > shares.workgroups;
}

// Of the parts of a tile, the owner's part comes last.
TilePart part_in_turn(const Decomposition& split, std::int64_t turn) {
  const std::int64_t of_tile = split.sharers / split.split_tiles;
  const std::int64_t sharer = turn / of_tile * of_tile + (of_tile - 1 - turn % of_tile);
  const IterationRange range = range_of(split, sharer);
  const std::int64_t tile = range.begin / split.gemm.iterations;
  const std::int64_t first = tile * split.gemm.iterations;
  return {tile, range.begin - first, range.end - first};
}

}  // namespace

const Spec& sharing_knob(std::string_view name) {
  const Spec* found = find_spec(kSharingKnobs, name);
  TRITAX_ASSERT(found != nullptr, "no such knob of shares");
  return *found;
}

void read_sharing(const Values& values, SharingKnobs& knobs) {
  knobs.sharing =
      static_cast<ProductSharing>(values.get_or("sharing", static_cast<std::int64_t>(knobs.sharing)));
  knobs.split = static_cast<std::int32_t>(values.get_or("k_split", knobs.split));
}

SharingKnobs sharing_knobs_of(const Values& values) {
  SharingKnobs knobs;
  static_cast<GemmKnobs&>(knobs) = gemm_knobs_of(values);
  read_sharing(values, knobs);
  return knobs;
}

WorkSharing work_sharing_of(const Values& values) {
  return sharing_knobs_of(values).sharing == ProductSharing::tiles ? WorkSharing::whole_tiles
                                                                   : WorkSharing::iterations;
}

ProductShares share_products(ScheduleBuilder& builder, const Gpu& gpu, const SharingKnobs& knobs,
                             const MatmulTile& tile, std::int64_t workgroups,
                             std::vector<RankProduct> products) {
  ProductShares shares;
  shares.tile = tile;
  shares.lock = knobs.lock;
  shares.workgroups = workgroups;
  shares.products = std::move(products);
  for (const RankProduct& product : shares.products) {
    const TiledGemm gemm{product.tiles, ceil_div(product.depth, tile.k)};
    shares.split.push_back(decomposition_of(knobs, gemm, workgroups));
    if (static_cast<double>(shares.split.back().sharers) * 6 > kMaxOperations) {
      throw UserError(fmt::format("k_split: {} parts of tiles are too many to schedule; split less",
                                  shares.split.back().sharers));
    }
    shares.slots.push_back(slots_of(shares.split.back()));
  }
  add_workspace_of(shares, builder, gpu);
  return shares;
}

std::vector<TilePart> parts_of(const ProductShares& shares, int rank, std::int64_t number) {
  const Decomposition& split = shares.split[static_cast<std::size_t>(rank)];
  if (split.gemm.tiles == 0) return {};
  const bool in_parts = split.sharers > 0 && split.regions() == split.split_tiles && split.whole_tiles() == 0;
  if (!in_parts && !takes_turns(shares, split)) return parts_of(split, number, shares.workgroups);
  std::vector<TilePart> parts;
  for (std::int64_t turn = number; turn < split.sharers; turn += shares.workgroups)
    parts.push_back(part_in_turn(split, turn));
  return parts;
}

std::vector<std::int64_t> iterations_until_whole(const ProductShares& shares, int rank) {
  const Decomposition& split = shares.split[static_cast<std::size_t>(rank)];
  std::vector<std::int64_t> until(static_cast<std::size_t>(split.gemm.tiles), 0);
  for (std::int64_t number = 0; number < shares.workgroups; ++number) {
    std::int64_t behind = 0;
    for (const TilePart& part : parts_of(shares, rank, number)) {
      behind += part.end - part.begin;
      if (part.begin == 0) until[static_cast<std::size_t>(part.tile)] = behind;
    }
  }
  return until;
}

void add_shares(ScheduleBuilder& builder, const ProductShares& shares, int rank, std::int64_t number,
                const TileVisitor& visitor) {
  const Decomposition& split = shares.split[static_cast<std::size_t>(rank)];
  const std::vector<std::int32_t>& slots = shares.slots[static_cast<std::size_t>(rank)];
  const std::int64_t depth = shares.products[static_cast<std::size_t>(rank)].depth;
  const auto slot_of = [&](std::int64_t sharer) { return slots[static_cast<std::size_t>(sharer)]; };
  for (const TilePart& part : parts_of(shares, rank, number)) {
    const auto at = [&](std::int64_t iteration) {
      return static_cast<std::int32_t>(std::min(depth, iteration * shares.tile.k));
    };
    visitor.multiply(part.tile, at(part.begin), at(part.end));
    if (part.end - part.begin == split.gemm.iterations) {
      visitor.finish(part.tile);
      continue;
    }
    Rect place = visitor.rect(part.tile);
    place.col = 0;
    if (part.begin > 0) {
      const std::int32_t own = slot_of(sharer_at(split, part.tile * split.gemm.iterations + part.begin));
      place.row = own * shares.tile.m;
      builder.store(shares.partials, place, rank);
      builder.signal(shares.shared, own, 1, rank, Scope::gpu, shares.lock);
      continue;
    }
    const TileSharers sharers = sharers_of(split, part.tile);
    for (std::int64_t peer = sharers.first + 1; peer < sharers.end; ++peer) {
      builder.wait(shares.shared, slot_of(peer), 1, Scope::gpu, shares.lock);
      place.row = slot_of(peer) * shares.tile.m;
      builder.reduce(shares.partials, place, rank);
    }
    visitor.finish(part.tile);
  }
}

}  // namespace tritax
