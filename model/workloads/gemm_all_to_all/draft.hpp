// What the patterns of this workload share: buffers, tiles and what they belong to, and the end of a run.
//
// A tile never crosses the border of two owners' columns, so that it has one owner and can be stored straight
// to it. A rank walks the tiles of its peers first, in the order of the knob (staggered: of each in turn, so
// that all links carry from the first tile on), and its own last, whose stores cross no link.
#pragma once

#include <string_view>
#include <vector>

#include "model/schedule/builder.hpp"
#include "model/workloads/gemm_all_to_all/patterns.hpp"

namespace tritax {

// A tile of a rank's product, or a piece of it that is sent as one.
struct OwnedTile {
  Rect rect;  // rows of the rank's A, columns of B
  int owner = 0;
};

// A schedule in the making. A (widest share of rows × K) and B (K × N, the same everywhere) are inputs, C
// (M × widest share of columns) is the result.
struct ExchangeDraft {
  // Checks that the GEMM tile fits a compute unit; adds buffers, inputs and reference.
  ExchangeDraft(std::string_view pattern, const GemmAllToAll& problem, const Machine& machine,
                const ExchangeKnobs& knobs);
  // `c_dtype`: of the result.
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
  std::int16_t staged = -1;   // what the peers own of the product, where it goes through memory
  std::int16_t arrived = -1;  // flags (workgroup, rank) with which a run ends

  int ranks() const { return problem.gpus; }
  bool sends() const { return ranks() > 1; }
  std::vector<int> peers_of(int rank, std::int32_t workgroup) const {
    return tritax::peers_of(knobs.peer_order, ranks(), rank, workgroup);
  }
  // Where a piece of a rank's product lies in C of its owner.
  Rect place_in_c(int rank, const OwnedTile& tile) const;

  void add_staged();
  // Flags for the end of a run, where no host barrier says that all blocks are there.
  void add_arrived(std::int32_t workgroups);
};

// Pieces of at most height × width of rows [begin, end) of a rank, in the order of the walk.
std::vector<OwnedTile> pieces_of(const ExchangeDraft& draft, int rank, Share rows, std::int32_t height,
                                 std::int32_t width);

// Rows of piece `i` of the chunks of a rank: whole tiles but for the last; empty behind that.
Share chunk_of(const ExchangeDraft& draft, int rank, std::int32_t i);

// Adds a persistent GEMM kernel of those rows: tiles of the own columns go into C, the others to their owner,
// or, where there is a buffer for them, into `staged`. `ends`: its workgroups exchange arrivals at last.
std::int32_t exchange_gemm(ExchangeDraft& draft, int rank, std::string_view name, Share rows,
                           std::int32_t workgroups, bool ends);

// The end of workgroup `index`, the same on all ranks: it tells its counterparts that its data are there, and
// waits for theirs.
void exchange_end(ExchangeDraft& draft, int rank, std::int32_t index);

}  // namespace tritax
