// Common parts of the patterns of all-gather + GEMM: buffers, the pieces in which A travels, and the loop of
// a C tile over these pieces.
//
// Every rank has a buffer for all of A (M × K). At the start only its own slice is filled; the patterns fill
// the rest. A travels in *blocks*: the rows of one row of C tiles by a few K steps of one rank's slice. Every
// block has a flag.
//
//   for t in tiles:  for blocks of its rows, own first: wait (not for own blocks); matmul;  store C(t)
#pragma once

#include <cstdint>
#include <vector>

#include "model/parts/gemm_knobs.hpp"
#include "model/parts/grid_order.hpp"
#include "model/parts/product_shares.hpp"
#include "model/schedule/builder.hpp"
#include "model/workloads/all_gather_gemm/workload.hpp"

namespace tritax {

// Knobs of GEMM kernels, and knobs of this workload alone.
struct GatherKnobs : SharingKnobs {
  bool multimem = false;      // bulk-synchronous: the switch copies slices to all
  bool one_stream = false;    // push: the GEMM follows the kernel that sends
  bool registers = false;     // pull: products read the peers' A themselves
  bool push = false;          // staged fetchers: they send the own part instead of fetching the peers'
  std::int32_t k_steps = 16;  // of tile_k per block, announced by one flag
  std::int32_t chunks = 2;    // copy engine: pieces per slice of a peer
  std::int32_t stages = 4;    // staged fetchers: parts into which the rows of C tiles are cut
  std::int32_t first_fetchers =
      0;  // staged fetchers: workgroups that fetch for the first stage; 0: as for the other stages
};
GatherKnobs gather_knobs_of(const Values& values);

// A rectangle of A that one rank has from the start.
struct Piece {
  Rect rect;
  int owner = 0;
};

// Block announced by one flag: the rows of a row of C tiles over a range of K.
struct Block {
  std::int32_t k_begin = 0;
  std::int32_t k_end = 0;
  std::int32_t flag = 0;      // number of its flag
  std::vector<Piece> pieces;  // one per rank that has some of its rows
};

struct GatherDraft {
  GatherDraft(std::string_view pattern, const AllGatherGemm& problem, const Machine& machine,
              const GatherKnobs& knobs);

  AllGatherGemm problem;
  const Machine& machine;
  GatherKnobs knobs;
  MatmulTile tile;
  Resources gemm_resources;
  ScheduleBuilder builder;
  std::int16_t a = -1;  // all of A; the own slice is input
  std::int16_t b = -1;
  std::int16_t c = -1;

  int ranks() const { return problem.gpus; }
  TileGrid grid() const;
  // Rectangle of C that tile t (in walk order) covers. Where A is sharded by rows and the order of peers is
  // not fixed, the walk of a rank begins at its own rows.
  Rect gemm_tile(int rank, std::int32_t t) const;
  Rect tile_at(std::int32_t row, std::int32_t col) const;
  std::int32_t first_item(std::int32_t p, std::int32_t workgroups) const {
    return tritax::first_item(knobs, machine.gpu, p, workgroups);
  }
  // Blocks of one row of C tiles, in ascending ranges of K.
  const std::vector<Block>& blocks_of(std::int32_t tile_row) const {
    return blocks[static_cast<std::size_t>(tile_row)];
  }

  std::vector<std::vector<Block>> blocks;  // by row of C tiles
  std::int32_t flags = 0;
};

// Adds inputs and reference. The buffer `shard` holds a rank's slice of A as input: at its place in A
// (`in_place`), or from the corner on.
void expect_product(GatherDraft& draft, std::int16_t shard, bool in_place);

// Whether the whole block is there from the start.
bool is_own(const Block& block, int rank);

// The blocks of a row of C tiles in the order in which a workgroup multiplies them: own blocks first, then
// blocks of the other ranks in the order of the knob; fixed: by K.
std::vector<const Block*> blocks_in_order(const GatherDraft& draft, int rank, std::int32_t tile_row,
                                          std::int32_t workgroup);

// Adds the operations that compute and store the tile in this row and column of the grid. Before every block
// that a peer provides they wait for `ready` (one flag per block; -1: without waiting), with one arrival per
// rank that provides a part of the block.
void compute_rect(GatherDraft& draft, int rank, std::int32_t row, std::int32_t col, std::int32_t workgroup,
                  std::int16_t ready, Scope scope);

// Elements of A in a block of full size.
std::int64_t elements_of_block(const GatherKnobs& knobs);

// Row of C tiles at place `w` of a rank's walk.
std::int32_t tile_row(const GatherDraft& draft, int rank, std::int32_t w);

// Blocks of rows [first, first + count) of the walk that a rank lacks, in the order in which its tiles need
// them.
std::vector<const Block*> blocks_to_fetch(const GatherDraft& draft, int rank, std::int32_t first,
                                          std::int32_t count);

// Adds the copies of the missing parts of a block, each from its owner to the same place.
void fetch_block(GatherDraft& draft, int rank, const Block& block);

// Number of other ranks that provide a part of a block.
std::int32_t providers(const Block& block, int rank);

// The shares of a kernel with `workgroups` workgroups on every rank. Call it before adding the first
// workgroup.
ProductShares shares_of(GatherDraft& draft, std::int32_t workgroups);

// Adds a persistent GEMM kernel with these shares; its workgroups wait as in compute_rect().
std::int32_t waiting_gemm_kernel(GatherDraft& draft, const ProductShares& shares, int rank,
                                 std::int16_t ready, Scope scope);

}  // namespace tritax
