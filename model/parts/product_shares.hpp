// Shares of a product inside a kernel that does more with its tiles: the iterations of K and the tiles that
// each workgroup multiplies (decomposition.hpp), and how partial sums become a tile. The pattern decides what
// to do with a complete tile: store it, send it, or signal it.
//
//   workgroup, for its parts (tile t, iterations [b, e)):  multiply
//     all of t:            finish t
//     b > 0, a peer:       store partial(own slot);  shared[own slot] = 1
//     b = 0, the owner:    for peers: wait shared[slot]; reduce partial(slot);  finish t
//
// All workgroups of the kernel are resident. A share begins with parts that another workgroup owns and ends
// with parts that it owns itself; with equal parts of a tile the owner has the last turn. So a workgroup that
// waits for a peer has stored its own partial sums before, and peers wait for no workgroup. Therefore
// `finish` may wait for other GPUs wherever it may without shares: each workgroup finishes tiles in the order
// of their numbers.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "model/parts/decomposition.hpp"
#include "model/parts/gemm_bound.hpp"
#include "model/parts/gemm_knobs.hpp"
#include "model/schedule/builder.hpp"
#include "model/workload/values.hpp"

namespace tritax {

enum class ProductSharing : std::uint8_t { tiles, fixed_split, stream_k, two_tile_stream_k };
inline constexpr std::array<std::string_view, 4> kProductSharingNames{"tiles", "parts", "iterations",
                                                                      "last-waves"};

struct SharingKnobs : GemmKnobs {
  ProductSharing sharing = ProductSharing::tiles;
  std::int32_t split = 2;  // fixed_split: parts per tile
};

// Rows for the tables of workloads: sharing, k_split.
const Spec& sharing_knob(std::string_view name);

// Reads the columns that `values` has into `knobs`, which keep their defaults otherwise.
void read_sharing(const Values& values, SharingKnobs& knobs);
SharingKnobs sharing_knobs_of(const Values& values);

// For lower bounds: whether workgroups take whole tiles.
WorkSharing work_sharing_of(const Values& values);

// The product of a rank: tiles, over a depth of K.
struct RankProduct {
  std::int64_t tiles = 0;
  std::int32_t depth = 0;
};

// Shares of a kernel of `workgroups` workgroups on every rank; unsplit where every tile belongs to one
// workgroup.
struct ProductShares {
  MatmulTile tile;
  LockProtocol lock = LockProtocol::load_store;
  std::int64_t workgroups = 0;
  std::vector<RankProduct> products;             // by rank
  std::vector<Decomposition> split;              // by rank
  std::vector<std::vector<std::int32_t>> slots;  // by rank and sharer; -1: the sharer is no peer
  std::int16_t partials = -1;                    // one tile per slot, one below the other
  std::int16_t shared = -1;                      // flags, one per slot
};

// Adds the buffer and the flags of the partial sums. Throws UserError where they do not fit the memory of a
// GPU.
ProductShares share_products(ScheduleBuilder& builder, const Gpu& gpu, const SharingKnobs& knobs,
                             const MatmulTile& tile, std::int64_t workgroups,
                             std::vector<RankProduct> products);

// Parts of workgroup `number`, in order.
std::vector<TilePart> parts_of(const ProductShares& shares, int rank, std::int64_t number);

// For every tile of a rank: iterations that its owner has done when the tile is complete. Sending workgroups
// take tiles in this order.
std::vector<std::int64_t> iterations_until_whole(const ProductShares& shares, int rank);

// Actions of a kernel on a tile.
struct TileVisitor {
  std::function<void(std::int64_t tile, std::int32_t k_begin, std::int32_t k_end)> multiply;
  std::function<Rect(std::int64_t tile)> rect;  // only its size counts
  std::function<void(std::int64_t tile)> finish;
};

// Adds the operations of workgroup `number`.
void add_shares(ScheduleBuilder& builder, const ProductShares& shares, int rank, std::int64_t number,
                const TileVisitor& visitor);

}  // namespace tritax
