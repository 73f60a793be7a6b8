// Common parts of the patterns of this workload: buffers, tiles and their owners, and the end of a run.
//
// A tile never crosses the border between the columns of two owners, so that it has one owner and can be
// stored straight to it. A rank walks the tiles of its peers first, in the order of the knob (staggered: one
// tile of each peer in turn, so that all links are busy from the first tile on). Its own tiles, whose stores
// cross no link, come last.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "model/schedule/builder.hpp"
#include "model/workloads/gemm_all_to_all/patterns.hpp"

namespace tritax {

// A tile of a rank's product, or a piece of a tile that is sent as one.
struct OwnedTile {
  Rect rect;  // rows of the rank's A, columns of B
  int owner = 0;
};

// A schedule under construction. A (widest share of rows × K) and B (K × N, the same on all ranks) are
// inputs, C (M × widest share of columns) is the result.
struct ExchangeDraft {
  // Checks that the GEMM tile fits a compute unit; adds buffers, inputs and reference.
  ExchangeDraft(std::string_view pattern, const GemmAllToAll& problem, const Machine& machine,
                const ExchangeKnobs& knobs);
  // `c_dtype`: dtype of C.
  ExchangeDraft(std::string_view pattern, const GemmAllToAll& problem, const Machine& machine,
                const ExchangeKnobs& knobs, DType c_dtype);

  GemmAllToAll problem;
  const Machine& machine;
  ExchangeKnobs knobs;
  MatmulTile tile;
  Resources gemm_resources;
  ScheduleBuilder builder;
  std::int16_t a = -1;
  std::int16_t b = -1;
  std::int16_t c = -1;
  std::int16_t staged = -1;   // the peers' part of the product, where it goes through memory
  std::int16_t arrived = -1;  // flags (workgroup, rank) for the end of a run

  int ranks() const { return problem.gpus; }
  bool sends() const { return ranks() > 1; }
  std::vector<int> peers_of(int rank, std::int32_t workgroup) const {
    return tritax::peers_of(knobs.peer_order, ranks(), rank, workgroup);
  }
  // Place of a piece of a rank's product in C of its owner.
  Rect place_in_c(int rank, const OwnedTile& tile) const;

  void add_staged();
  // Adds flags for the end of a run, where no host barrier says that all blocks have arrived.
  void add_arrived(std::int32_t workgroups);
};

// Pieces of at most height × width of rows [begin, end) of a rank, in walk order.
std::vector<OwnedTile> pieces_of(const ExchangeDraft& draft, int rank, Share rows, std::int32_t height,
                                 std::int32_t width);

// Rows of chunk `i` of a rank: whole tiles except in the last chunk; empty beyond it.
Share chunk_of(const ExchangeDraft& draft, int rank, std::int32_t i);

// Adds a persistent GEMM kernel for these rows. Tiles of the own columns go to C. Other tiles go to their
// owner, or to `staged` where that buffer exists. `ends`: workgroups exchange arrivals at the end.
std::int32_t exchange_gemm(ExchangeDraft& draft, int rank, std::string_view name, Share rows,
                           std::int32_t workgroups, bool ends);

// The same for given tiles. `finish` is called behind every tile that is stored to `staged`, and with null at
// the end of every workgroup.
std::int32_t exchange_gemm_of(ExchangeDraft& draft, int rank, std::string_view name,
                              const std::vector<OwnedTile>& tiles, std::int32_t workgroups,
                              const std::function<void(const OwnedTile*, std::int32_t)>& finish);

// The end of workgroup `index`, the same on all ranks: it tells its counterparts that its data are there, and
// waits for their data.
void exchange_end(ExchangeDraft& draft, int rank, std::int32_t index);

}  // namespace tritax
