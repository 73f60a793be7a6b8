// Shares of a product inside a kernel that does more with its tiles: which workgroup multiplies which
// iterations of K of which tiles (decomposition.hpp), and how partial sums become a tile. What is done with a
// tile once it is whole, storing it, sending it, or telling somebody, is the pattern's.
//
//   workgroup, for its parts (tile t, iterations [b, e)):  multiply
//     all of t:            finish t
//     b > 0, a peer:       store partial(own slot);  shared[own slot] = 1
//     b = 0, the owner:    for peers: wait shared[slot]; reduce partial(slot);  finish t
//
// All workgroups of the kernel are resident. A share begins with what another workgroup owns and ends with
// what it owns itself, and of a tile in equal parts the owner has the last turn: whoever waits for a peer has
// given before, and peers wait for nobody. So `finish` may wait for other GPUs where it may without shares:
// tiles are finished by each workgroup in the order of their numbers.
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
  std::int32_t split = 2;  // of fixed_split: parts of a tile
};

// Rows for the tables of workloads: sharing, k_split.
const Spec& sharing_knob(std::string_view name);

// The columns that `values` has, the defaults above for the others, into `knobs`.
void read_sharing(const Values& values, SharingKnobs& knobs);
SharingKnobs sharing_knobs_of(const Values& values);

// For lower bounds: whether workgroups take whole tiles.
WorkSharing work_sharing_of(const Values& values);

// The product of a rank: so many tiles over a depth of K.
struct RankProduct {
  std::int64_t tiles = 0;
  std::int32_t depth = 0;
};

// Of a kernel of `workgroups` on every rank; without shares where every tile is one workgroup's.
struct ProductShares {
  MatmulTile tile;
  LockProtocol lock = LockProtocol::load_store;
  std::int64_t workgroups = 0;
  std::vector<RankProduct> products;             // of every rank
  std::vector<Decomposition> split;              // likewise
  std::vector<std::vector<std::int32_t>> slots;  // likewise, of every sharer; -1: it is nobody's peer
  std::int16_t partials = -1;                    // a tile a slot, one below the other
  std::int16_t shared = -1;                      // flags, one a slot
};

// Adds buffer and flags of the partial sums. Throws UserError where they do not fit the memory of a GPU.
ProductShares share_products(ScheduleBuilder& builder, const Gpu& gpu, const SharingKnobs& knobs,
                             const MatmulTile& tile, std::int64_t workgroups,
                             std::vector<RankProduct> products);

// What workgroup `number` has, in its turn.
std::vector<TilePart> parts_of(const ProductShares& shares, int rank, std::int64_t number);

// Iterations that the owner of every tile of a rank has behind it when that tile is whole: who sends tiles
// takes them in this order.
std::vector<std::int64_t> iterations_until_whole(const ProductShares& shares, int rank);

// What a kernel does with a tile.
struct TileVisitor {
  std::function<void(std::int64_t tile, std::int32_t k_begin, std::int32_t k_end)> multiply;
  std::function<Rect(std::int64_t tile)> rect;  // only its size counts
  std::function<void(std::int64_t tile)> finish;
};

// Adds what workgroup `number` does.
void add_shares(ScheduleBuilder& builder, const ProductShares& shares, int rank, std::int64_t number,
                const TileVisitor& visitor);

}  // namespace tritax
