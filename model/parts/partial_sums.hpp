// Partial sums of a product along a split K, for patterns that multiply and add them up: rank s has its share
// of K as columns of A and rows of B, and so a partial sum A_s·B_s of all of C (M × N).
//
// C is cut into *blocks*, one per rank, by rows or by columns; the owner of a block adds it up. A
// reduce-scatter leaves the sum at the owner; in an all-reduce the owner stores the sum to all ranks.
//
//   GEMM tiles    cut at the borders of blocks (each has one owner), or whole, where they go through memory
//   items         pieces of blocks that are sent and added as one, each with the tiles that it needs
//   walk          a rank's order of tiles or items: peers' blocks in the order of the knob, the own block
//                 last, so that data that others wait for leave first
//
// Partial sums keep the dtype of C on their way; partial sums of fp8 are fp32, because no GPU adds fp8
// atomically. Knobs may set both dtypes: a sum is rounded when it is stored, and widened on arrival into the
// accumulator, which is always fp32. fp8 on the wire has half the bytes of bf16, once for partial sums and,
// where sums go to all ranks, once for the result.
//
// Without a product (k = 0) every rank has a matrix as its summand: a collective alone. Patterns load tiles
// of this matrix instead of multiplying, and summands keep their dtype on their way.
//
// Between two runs, no rank writes where a peer may still read: at its start a rank opens its slots to its
// peers, and peers wait for that before their first store (SumDraft::opens). With host barriers this is not
// needed.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "model/parts/gemm_knobs.hpp"
#include "model/parts/grid_order.hpp"
#include "model/parts/kernels.hpp"
#include "model/parts/product_shares.hpp"
#include "model/schedule/builder.hpp"

namespace tritax {

// Who moves partial sums: their rank stores them into slots of the owner (push), or the owner loads them
// (pull); or the switch adds them up while the owner loads them, and copies what it stores to all (multimem).
enum class Transport : std::uint8_t { push, pull, multimem };
inline constexpr std::array<std::string_view, 3> kSumTransportNames{"push", "pull", "multimem"};
// For data that nobody adds up.
inline constexpr std::array<std::string_view, 2> kTransportNames{"push", "pull"};

// Who posts copies to copy engines: the host, behind a GEMM kernel per piece, or a kernel, when its flags say
// that a piece is there.
enum class Posts : std::uint8_t { host, kernel };
inline constexpr std::array<std::string_view, 2> kPostsNames{"host", "kernel"};

enum class Blocks : std::uint8_t { rows, columns };
inline constexpr std::array<std::string_view, 2> kBlocksNames{"rows", "columns"};

struct SumKnobs : SharingKnobs {
  Transport transport = Transport::push;
  std::int32_t chunks = 2;      // copy engine: pieces of a peer's block
  std::int32_t rings = 1;       // of partial sums on their way
  std::optional<DType> wire;    // of partial sums on their way
  std::optional<DType> result;  // of C
  Codec codec = Codec::same;    // of summands and sums that cross links, in a collective alone
  // Engine whose all-reduce replaces the library's (is_custom()), or none.
  LibraryRoutine custom = LibraryRoutine::none;
  ServesPeers serves = ServesPeers::in_turn;
  Posts posts = Posts::host;
};
SumKnobs sum_knobs_of(const Values& values);

// Rows for the tables of workloads: transport, chunks, rings, wire_dtype, result_dtype, wire, peers.
const Spec& sum_knob(std::string_view name);

// Throws UserError for values that no machine allows.
void check_sum_knobs(const SumKnobs& knobs);
// Throws UserError for a transport that the machine does not have, for partial sums of this type.
void check_transport(Transport transport, const Machine& machine, int gpus, DType dtype);

struct PartialSums {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;         // of all ranks together; 0: no product
  DType dtype = DType::fp16;  // of A, B and C; accumulation is fp32
  Blocks blocks = Blocks::rows;
  int gpus = 1;
};

// The part of C that a rank owns, as even as possible; the block of rank 0 is the widest.
Rect block_of(const PartialSums& sums, int rank);
std::vector<Rect> blocks_of(const PartialSums& sums);  // by rank

// Columns of A and rows of B of a rank.
std::int32_t depth_of(const PartialSums& sums, int rank);

// Dtype of partial sums on their way, unless a knob says another.
constexpr DType sum_dtype(DType dtype) { return dtype == DType::fp8 ? DType::fp32 : dtype; }
inline DType wire_dtype(const PartialSums& sums, const SumKnobs& knobs) {
  return knobs.wire.value_or(sum_dtype(sums.dtype));
}

// A GEMM tile of C, or an item of communication.
struct SumTile {
  Rect rect;                        // in C
  int owner = 0;                    // owner of its first element
  std::int32_t number = 0;          // number of its flag, the same on all ranks
  std::vector<std::int32_t> tiles;  // items: numbers of the GEMM tiles that they need
};

// Numbers of flag arrays; -1: none.
struct SumFlags {
  std::int16_t lock = -1;  // one per GEMM tile: stored on this rank
  std::int16_t arrived =
      -1;  // push: one per item, pull: one per GEMM tile; number of ranks that have it ready
};

// Rows and columns of a piece where there is no product and the knobs do not say (ROCm/iris
// iris/ccl/config.py).
inline constexpr std::int32_t kPieceAlone = 128;

// A schedule under construction. Inputs are A and B, or the summands; the result is C: the own block, from
// its corner on, or all of C on every rank.
struct SumDraft {
  // `everywhere`: every rank ends with all of C. Checks that the GEMM tile fits a compute unit; adds inputs,
  // reference and buffers. `c_dtype`: of the result; by default the dtype of the knobs or of the operands.
  SumDraft(std::string_view pattern, const PartialSums& problem, const Machine& machine,
           const SumKnobs& knobs, bool everywhere);
  SumDraft(std::string_view pattern, const PartialSums& problem, const Machine& machine,
           const SumKnobs& knobs, bool everywhere, DType c_dtype);

  PartialSums problem;
  const Machine& machine;
  SumKnobs knobs;
  bool everywhere = false;
  MatmulTile tile;
  Resources gemm_resources;
  ScheduleBuilder builder;
  std::int16_t a = -1;
  std::int16_t b = -1;
  std::int16_t c = -1;
  std::int16_t partial =
      -1;  // all of C, over the own share of K; C itself with one rank; the summand without a product
  std::int16_t own = -1;     // staged sums: the input, of which `partial` is a copy
  std::int16_t out = -1;     // staged sums: the copy of C
  std::int16_t slots = -1;   // of the own block: one slot per rank, one below the other
  std::int16_t opened = -1;  // one flag per rank: its slots, and the sums that it pulled, may be overwritten
  std::int16_t done = -1;    // (workgroup, rank), where a run ends with an exchange

  int ranks() const { return problem.gpus; }
  bool sends() const { return ranks() > 1; }
  bool alone() const { return problem.k == 0; }
  bool coded() const { return sends() && knobs.codec != Codec::same; }
  // Dtype of partial sums on their way.
  DType wire_dtype() const { return alone() ? problem.dtype : tritax::wire_dtype(problem, knobs); }
  MatmulTile kernel_tile() const { return alone() ? MatmulTile{} : tile; }
  std::vector<int> peers_of(int rank, std::int32_t workgroup) const {
    return tritax::peers_of(knobs.peer_order, ranks(), rank, workgroup);
  }
  std::int32_t first_item(std::int32_t p, std::int32_t workgroups) const {
    return tritax::first_item(knobs, machine.gpu, p, workgroups);
  }
  // Place of a rectangle of C in the buffer of the result, and in the slots of its owner.
  Rect place_in_c(int owner, Rect rect) const;
  Rect place_in_slot(int owner, int source, Rect rect) const;

  // Adds the buffer of partial sums; adds slots, where sums are pushed.
  void add_partial();
  void add_slots();
  // Whether flags, not the host, separate runs.
  bool opens() const { return sends() && !knobs.host_barriers; }
};

// GEMM tiles, cut at the borders of blocks or not.
std::vector<SumTile> cut_tiles(const SumDraft& draft);
std::vector<SumTile> whole_tiles(const SumDraft& draft);

// Whole tiles for walk_of(). Where no border cuts a tile, groups of rows begin anew with each block, so that
// all ranks walk the tiles of all owners in the same order.
std::vector<SumTile> tiles_to_walk(const SumDraft& draft);

// Pieces of blocks, with the tiles of `whole` that they need. `most`: elements of a piece where the knobs
// give no size; 0: as many as the GEMM tile has.
std::vector<SumTile> items_of(const SumDraft& draft, const std::vector<SumTile>& whole, std::int64_t most);

// Elements that the accumulator of the 256 threads of a workgroup without matrix instructions holds (the
// backend's limit: 8 groups of 8 elements per thread).
inline constexpr std::int64_t kMostOfReducer = 16384;

// All tiles: tiles of the peers in the order of the knob (staggered: peers in turn), then the own tiles.
std::vector<const SumTile*> walk_of(const SumDraft& draft, int rank, const std::vector<SumTile>& tiles);

// The same for items, in the order in which a kernel with these shares, walking over the tiles, completes
// them.
std::vector<const SumTile*> walk_of_items(const ProductShares& shares,
                                          const std::vector<const SumTile*>& walk,
                                          const std::vector<SumTile>& items, int rank);

// Adds the product of a tile to the accumulator; without a product, loads the own summand.
void multiply(SumDraft& draft, int rank, const Rect& rect);

// Whether the switch can add up partial sums of this type on `gpus` GPUs of the machine.
bool has_multimem(const Machine& machine, int gpus, DType dtype);

// Adds operations on one rectangle of all ranks, as `add` does: as one operation of the switch, or as a group
// unless the kernel serves its peers in turn.
template <typename Add>
void add_of_all(SumDraft& draft, Add&& add) {
  if (draft.knobs.transport == Transport::multimem && draft.sends()) return draft.builder.multimem(add);
  add_by_peer(draft.builder, draft.knobs.serves, add);
}

// Adds the stores of a finished sum of the own block: to the own C, or to C of all ranks.
void store_sum(SumDraft& draft, int rank, const Rect& rect, std::int32_t workgroup);

// Opening (see above): the first workgroup of a run tells all peers; others wait for a peer.
void add_opened(SumDraft& draft);
void tell_opened(SumDraft& draft, int rank, bool first_workgroup);
void await_opened(SumDraft& draft, int peer);
// The same before the first access alone; `opened`: by rank, whether the workgroup has waited.
void await_opened_once(SumDraft& draft, std::vector<bool>& opened, int peer);

// The end of workgroup `index` of `workgroups`, the same on all ranks. Needed where peers store data here and
// the host does not say when these are complete.
void add_done(SumDraft& draft, std::int32_t workgroups);
void exchange_done(SumDraft& draft, int rank, std::int32_t index);

// A place in the slots of every peer, and the flag that tells a peer that it is filled.
struct SlotOfAll {
  std::int16_t slots = -1;
  Rect rect;
  std::int16_t arrived = -1;
  std::int32_t index = 0;
};
// Stores the accumulator to a slot of every peer and tells the peers; `awaits`: once each has opened its
// slots.
void send_to_slots(SumDraft& draft, const SlotOfAll& slot, const std::vector<int>& peers, bool awaits);

// The shares of a kernel with `workgroups` workgroups on every rank, over `tiles` tiles. Call it before
// adding the first workgroup.
ProductShares shares_of(SumDraft& draft, std::int32_t workgroups, std::size_t tiles);

// Adds the products of workgroup `number` over a walk, and calls `finish` for every place of the walk whose
// tile is then complete in the accumulator.
void multiply_shares(SumDraft& draft, const ProductShares& shares, int rank, std::int32_t number,
                     const std::function<const Rect&(std::size_t place)>& rect_of,
                     const std::function<void(std::size_t place)>& finish);

// Adds a persistent kernel with these shares, which stores GEMM tiles to `partial` and announces them.
std::int32_t partial_gemm_kernel(SumDraft& draft, const ProductShares& shares, int rank,
                                 const std::vector<SumTile>& tiles, const SumFlags& flags);
// The loop of such a workgroup.
void compute_partials(SumDraft& draft, const ProductShares& shares, int rank, std::int32_t number,
                      const std::vector<const SumTile*>& walk, const SumFlags& flags);

// The loop of a communicating workgroup: with push, it sends its part of the peers' blocks; then it adds up
// its part of the own block.
void send_and_add(SumDraft& draft, int rank, std::int32_t first, std::int32_t stride,
                  const std::vector<const SumTile*>& items, const SumFlags& flags);

// Adds a persistent kernel of such workgroups.
std::int32_t adding_kernel(SumDraft& draft, int rank, std::int32_t workgroups,
                           const std::vector<const SumTile*>& items, const SumFlags& flags);

// Adds the flags `lock` and `arrived` of a pattern with overlapping GEMM and communication.
SumFlags add_flags(SumDraft& draft, std::size_t tiles, std::size_t items);

}  // namespace tritax
