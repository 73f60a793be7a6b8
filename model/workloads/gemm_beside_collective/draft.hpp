// Common parts of the hand-written patterns of this workload. A collective consists of *pieces*, which
// workgroups move one by one:
//
//   all-gather      pieces of the own block:  for peers: copy -> X of the peer
//   reduce-scatter  pieces of the own part of the sum:  load; for peers: reduce their summand; store X
//   all-reduce      the same;  store X of all ranks (two-shot)
//   all-to-all      pieces of all blocks of the own matrix:  copy -> X of the rank that the block is for
//
// An all-gather is in place: a rank's own block is in X from the start, and only blocks of peers arrive. The
// other collectives begin when the memory of all ranks may be read and written; the host says so, or ranks
// tell each other.
#pragma once

#include <string_view>
#include <vector>

#include "model/schedule/builder.hpp"
#include "model/workloads/gemm_beside_collective/patterns.hpp"

namespace tritax {

// A schedule under construction: A and B are inputs of every rank, C is its product. `own` is a rank's matrix
// of the collective, and X is what the collective leaves; in an all-gather X is both.
struct BesideDraft {
  // Checks that the GEMM tile fits a compute unit.
  BesideDraft(std::string_view pattern, const GemmBeside& problem, const Machine& machine,
              const GemmKnobs& knobs);

  GemmBeside problem;
  const Machine& machine;
  GemmKnobs knobs;
  MatmulTile tile;
  Resources gemm_resources;
  ScheduleBuilder builder;
  std::int16_t a = -1;
  std::int16_t b = -1;
  std::int16_t c = -1;
  std::int16_t own = -1;
  std::int16_t x = -1;

  int ranks() const { return problem.gpus; }
  bool sends() const { return ranks() > 1; }
  // Whether flags, not the host, say when memory of peers may be used.
  bool opens() const { return sends() && !knobs.host_barriers && !problem.gathers(); }
  bool tells() const { return sends() && !knobs.host_barriers; }
  // All-gather: the block of a rank in X. Else: its part of a matrix.
  Rect block_of(int rank) const;
  // Place in X, at the rank that ends with it, of a rectangle of the block for `to` in the matrix of `from`.
  Rect place_of(int from, int to, Rect rect) const;
  std::vector<int> peers_of(int rank, std::int32_t index) const {
    return tritax::peers_of(knobs.peer_order, ranks(), rank, index);
  }
};

struct BesidePiece {
  Rect rect;   // in `own`
  int to = 0;  // all-to-all: the rank that it is for
};

// Rows and columns of a piece: comm_tile, or the GEMM tile, in sums halved until a workgroup without matrix
// instructions can hold it.
TileIndex piece_of(const BesideDraft& draft);

// Tiles of C in the order of the grid, and the pieces that a rank moves.
std::vector<Rect> tiles_of_c(const BesideDraft& draft);
std::vector<BesidePiece> pieces_of(const BesideDraft& draft, int rank);

void multiply(BesideDraft& draft, const Rect& tile, int rank);
// Adds the operations of a piece. With the staggered order, pieces with consecutive `index` begin with
// different peers.
void move(BesideDraft& draft, const BesidePiece& piece, std::int32_t index, int rank);

// Adds a persistent kernel of `workgroups` that computes all tiles of C.
std::int32_t gemm_kernel(BesideDraft& draft, int rank, std::int32_t workgroups);

}  // namespace tritax
