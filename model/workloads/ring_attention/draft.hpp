// Common parts of the patterns of ring attention: the tokens of each rank, buffers, and the tiles of queries.
//
// W GPUs share a sequence. It is cut into W chunks, and rank r has chunk r. With zigzag, it is cut into 2W
// chunks, and rank r has chunks r and 2W-1-r: under a causal mask a late chunk sees many keys and an early
// one few, so that all ranks have the same work (the layout of Llama 3 and of zigzag ring attention,
// arXiv:2407.21783 §3.3.2). The chunks of a rank are its *block*.
//
// Q and O hold the rows of the own block, K and V the rows of the whole sequence, in its order. A block of
// keys and values has the same place on every rank, so that arriving data never overwrite data in use.
//
// A rank attends to blocks in the order own, r-1, r-2, …, the order of arrival in a ring. A rank also
// receives blocks that a mask hides from it, because it passes them on.
//
// Several runs follow each other without a barrier: at its start a rank *opens* its K and V to the ranks that
// write there, or its block to the ranks that read it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "model/machine/machine.hpp"
#include "model/parts/kernels.hpp"
#include "model/parts/sequence_attention.hpp"
#include "model/schedule/builder.hpp"
#include "model/workload/workload.hpp"

namespace tritax {

// How blocks travel: from neighbour to neighbour; or from their owner to each rank, one after the other, or
// all at once over all links of a mesh.
enum class Route : std::uint8_t { ring, in_turn, at_once };
inline constexpr std::array<std::string_view, 3> kRouteNames{"ring", "in-turn", "at-once"};

struct RingKnobs : GemmKnobs {  // tile_m, _n, _k are not those of a GEMM here
  MatmulTile tile;              // m queries, n keys, k columns
  KernelProfile profile = KernelProfile::interpreter;
  bool zigzag = false;
  Route route = Route::ring;
  bool pull = false;
};
RingKnobs ring_knobs_of(const Values& values, const SequenceAttention& problem);

// Place of the rows of a chunk.
struct Chunk {
  Share tokens;         // of the sequence
  std::int32_t at = 0;  // first row in Q and O of its rank
};
std::vector<Chunk> chunks_of(const SequenceAttention& problem, bool zigzag, int rank);

// A lower bound of the time, from matrix and vector work of the rank with the most work.
double ring_bound_ns(const SequenceAttention& problem, const RingKnobs& knobs, const Machine& machine);

// Queries of one head: a tile of O.
struct QueryTile {
  Rect rect;               // of Q and O
  std::int64_t token = 0;  // of the first row
  std::int32_t head = 0;
};

class RingDraft {
 public:
  // Adds buffers, inputs and expected results. Throws UserError for too large problems.
  RingDraft(std::string_view pattern, const SequenceAttention& problem, const Machine& machine,
            const RingKnobs& knobs);

  int ranks() const { return problem.gpus; }
  bool sends() const { return ranks() > 1; }
  // The rank whose block `rank` attends to in a step.
  int source(int rank, int step) const { return (rank - step + ranks()) % ranks(); }
  int next(int rank) const { return (rank + 1) % ranks(); }

  // Rectangles of the own block, the same in K and V.
  std::vector<Rect> block(int rank) const;
  double widest_bytes() const;  // of keys and values of a block

  // Tiles of a rank, in order of falling numbers of visible keys.
  std::vector<QueryTile> tiles(int rank) const;
  // Whether a tile sees keys of `rank`.
  bool sees(const QueryTile& tile, int rank) const;
  // Attends to the keys of `rank` that the tile sees, in a few ranges.
  void attend(const QueryTile& tile, int rank);
  // Kernel of attending tiles, without its workgroups.
  Kernel attend_kernel(int rank, std::string_view name) const;

  // Adds one step of a pattern with a launch per step: one workgroup per tile merges its earlier partial
  // result with the keys of the step's block; results that are not final go through `partials`. The first
  // workgroup of a run opens. -1: no tile sees any key.
  std::int32_t add_step(int rank, int step);
  void add_partials();

  // Flags of opening, by opening rank. A ring opens to the sending neighbour, other routes to all ranks.
  void add_opened();
  void open(int rank);
  void await_opened(int peer);

  void begin(int rank);  // of a host program
  void end(int rank);

  SequenceAttention problem;
  const Machine& machine;
  RingKnobs knobs;
  ScheduleBuilder builder;
  std::int16_t q = -1, k = -1, v = -1, o = -1;

 private:
  void expect_results();
  Share seen_of(const QueryTile& tile, const Chunk& chunk) const;
  Rect partial(const QueryTile& tile) const;
  int last_step_of(const QueryTile& tile, int rank) const;

  std::int64_t keys_of_op_ = 1;
  std::int16_t partials_ = -1;
  std::int16_t opened_ = -1;
};

}  // namespace tritax
