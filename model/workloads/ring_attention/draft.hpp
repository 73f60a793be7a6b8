// What the patterns of ring attention share: who has which tokens, buffers, and the tiles of queries.
//
// W GPUs share a sequence. It is cut into W chunks, and rank r has chunk r; or, zigzag, into 2W, and rank r
// has chunks r and 2W-1-r: under a causal mask a late chunk sees much and an early one little, so that all
// ranks have the same work (the layout of Llama 3 and of zigzag ring attention, arXiv:2407.21783 §3.3.2). The
// chunks of a rank are its *block*.
//
// Q and O hold the rows of the own block, K and V those of the whole sequence, in its order: a block of keys
// and values has the same place on every rank, so nothing that comes is written over something in use.
//
// A rank attends to blocks in the order own, r-1, r-2, …, in which a ring brings them. Blocks that a mask
// hides from it come all the same: who sends them further does not ask.
//
// Several runs follow each other without a barrier: who begins *opens* its K and V to those who write there,
// or its block to those who read it.
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

// How blocks travel: from neighbour to neighbour; or from their owner to each, one after the other, or all at
// once, over all links of a mesh.
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

// Where the rows of a chunk are.
struct Chunk {
  Share tokens;         // of the sequence
  std::int32_t at = 0;  // first row in Q and O of its rank
};
std::vector<Chunk> chunks_of(const SequenceAttention& problem, bool zigzag, int rank);

// A lower bound of its time, of matrix and vector work of the rank that has most.
double ring_bound_ns(const SequenceAttention& problem, const RingKnobs& knobs, const Machine& machine);

// Queries of one head: a tile of O.
struct QueryTile {
  Rect rect;               // of Q and O
  std::int64_t token = 0;  // of its first row
  std::int32_t head = 0;
};

class RingDraft {
 public:
  // Adds buffers, inputs and what must come out. Throws UserError for what is too large.
  RingDraft(std::string_view pattern, const SequenceAttention& problem, const Machine& machine,
            const RingKnobs& knobs);

  int ranks() const { return problem.gpus; }
  bool sends() const { return ranks() > 1; }
  // Whose block a rank attends to in a step.
  int source(int rank, int step) const { return (rank - step + ranks()) % ranks(); }
  int next(int rank) const { return (rank + 1) % ranks(); }

  // Rectangles of K and V, the same of both, that a rank has at the start.
  std::vector<Rect> block(int rank) const;
  double widest_bytes() const;  // of keys and values of a block

  // Tiles of a rank, those that see most keys first.
  std::vector<QueryTile> tiles(int rank) const;
  // Whether a tile sees keys of that rank.
  bool sees(const QueryTile& tile, int rank) const;
  // Attends to what the tile sees of the block of a rank, in a few ranges.
  void attend(const QueryTile& tile, int rank);
  // Kernel of tiles without its workgroups.
  Kernel attend_kernel(int rank, std::string_view name) const;

  // Of a step of patterns with a launch for each: a workgroup per tile merges what it has so far with the
  // keys of the step's block; what is not final goes through `partials`. The first workgroup of a run opens.
  // -1: no tile sees anything.
  std::int32_t add_step(int rank, int step);
  void add_partials();

  // Flags of opening, by who opens. A ring is opened to the neighbour that sends, other routes to all.
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
