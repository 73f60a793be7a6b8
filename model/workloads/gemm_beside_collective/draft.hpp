// Common parts of the hand-written patterns of this workload. X is gathered in place: a rank's own block is
// at its place from the start, and only blocks of peers arrive.
#pragma once

#include <string_view>
#include <vector>

#include "model/schedule/builder.hpp"
#include "model/workloads/gemm_beside_collective/patterns.hpp"

namespace tritax {

// A schedule under construction: A and B are inputs of every rank, C is its product, and X (blocks of all
// ranks, one below the other) holds the own block at first.
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
  std::int16_t x = -1;

  int ranks() const { return problem.gpus; }
  Rect block_of(int rank) const;  // in X
};

// Tiles of C in the order of the grid, and the pieces of at most comm_tile of the own block.
std::vector<Rect> tiles_of_c(const BesideDraft& draft);
std::vector<Rect> pieces_of_block(const BesideDraft& draft, int rank);

void multiply(BesideDraft& draft, const Rect& tile, int rank);
// Copies a piece to all peers. With the staggered order, pieces with consecutive `index` begin with different
// peers.
void send(BesideDraft& draft, const Rect& piece, std::int32_t index, int rank);

// Adds a persistent kernel of `workgroups` that computes all tiles of C.
std::int32_t gemm_kernel(BesideDraft& draft, int rank, std::int32_t workgroups);

}  // namespace tritax
