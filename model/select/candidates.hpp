// Which knobs a search may try for a pattern.
//
// A `KnobSpace` lists, for one pattern on one workload and machine, the values that each group of knobs may
// take. Knobs that the pattern does not use, that the user has pinned, or that cannot matter (an XCD remap on
// one die, a peer order on one GPU) have exactly one value, so no two members of a space build the same
// schedule on purpose.
//
// The search is coarse to fine: `coarse_candidates` crosses tiles and CU splits at the default order knobs,
// because they decide the rounds of the GEMM; `neighbours` then varies one group of knobs of a good candidate
// at a time, and `with_tile_of` carries what is good for one pattern to another.
//
// Tiles follow from the problem. Sides are powers of two up to the extents; those below 64 ask for more
// operands per product and are in the space where tiles of 64×64 leave compute units idle, as in products of
// a few rows, down to where tiles twice as long do not. Depths go from half to four times the usual 128 bytes
// of K: the deeper a stage, the more operands are on their way at once out of memory.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/patterns/pattern.hpp"

namespace tritax {

// Knobs that the user holds fixed; empty ones are searched. Pipeline, lock protocol, host barriers and waves
// are never searched: they are at the defaults of the machine (`default_knobs`) unless they are pinned here,
// since the cost laws know what fewer waves save but not the latency that they fail to hide.
struct KnobPins {
  std::optional<std::int32_t> tile_m;
  std::optional<std::int32_t> tile_n;
  std::optional<std::int32_t> tile_k;
  std::optional<std::int32_t> waves;
  std::optional<Pipeline> pipeline;
  std::optional<std::int32_t> comm_tile_m;
  std::optional<std::int32_t> comm_tile_n;
  std::optional<std::int32_t> gemm_cus;
  std::optional<std::int32_t> comm_cus;
  std::optional<std::int32_t> group_m;
  std::optional<bool> xcd_remap;
  std::optional<PeerOrder> peer_order;
  std::optional<LockProtocol> lock;
  std::optional<LaunchMode> launch;
  std::optional<bool> host_barriers;
};

struct TileShape {
  std::int32_t m = 0;
  std::int32_t n = 0;
  std::int32_t k = 0;
  std::int32_t waves = 0;
  friend bool operator==(const TileShape&, const TileShape&) = default;
};

// Workgroups of the two roles; 0 where the pattern does not have the role.
struct CuSplit {
  std::int32_t gemm_cus = 0;
  std::int32_t comm_cus = 0;
  friend bool operator==(const CuSplit&, const CuSplit&) = default;
};

// The communication tile as a part of the GEMM tile: 1/rows of its height, 1/cols of its width.
struct CommPiece {
  std::int32_t rows = 1;
  std::int32_t cols = 1;
  friend bool operator==(const CommPiece&, const CommPiece&) = default;
};

struct KnobSpace {
  Knobs base;  // defaults and pins: values of everything that the lists below do not cover, and where a
               // search starts
  bool comm_tile_pinned = false;
  std::vector<TileShape> tiles;
  std::vector<TileShape> coarse_tiles;  // of every m × n the usual depth, and the best out of memory
  std::vector<CuSplit> splits;          // by communication units, ascending
  CuSplit default_split;
  std::vector<CommPiece> pieces;
  std::vector<std::int32_t> groups;  // group_m; the first of this and of the following lists is the default
  std::vector<bool> xcd_remaps;
  std::vector<PeerOrder> peer_orders;
  std::vector<LaunchMode> launches;
};

// Throws UserError when no tile fits the compute units of the machine, naming the pinned tile if there is
// one.
KnobSpace knob_space(const Pattern& pattern, const GemmAllScatter& workload, const Machine& machine,
                     const KnobPins& pins = {});

// Coarse tiles × splits, everything else at its default; the defaults themselves are the first. No
// duplicates.
std::vector<Knobs> coarse_candidates(const KnobSpace& space, const GemmAllScatter& workload);

// All members of the space that differ from `knobs` in one group: tile depth, split, communication piece,
// grid order, peer order, launch mode. Splits are those next to the present one in order of communication
// units. No duplicates, and not `knobs` itself. Depths at which a tile takes equally long and a compute unit
// holds equally many workgroups are one: the first of them is in the space.
std::vector<Knobs> neighbours(const KnobSpace& space, const GemmAllScatter& workload, const Knobs& knobs);

// `knobs` with the tile and the grid order of `other`, the knobs of another pattern for the same workload:
// what suits the GEMM of one suits that of the next. Empty if the space does not have the tile.
std::optional<Knobs> with_tile_of(const KnobSpace& space, const GemmAllScatter& workload, const Knobs& knobs,
                                  const Knobs& other);

}  // namespace tritax
