// Common parts of the patterns of this workload: shares, buffers, tiles, and the movement of heads.
//
// W GPUs share a sequence by tokens. Rank r has rows of Q, K and V for its tokens and all heads. An
// all-to-all gives rank r all tokens of its heads; the rank attends; and another all-to-all brings results
// back to the owners of the tokens:
//
//   q, k, v  (own tokens × all heads)  ->  qh, kh, vh  (all tokens × own heads)  ->  oh  ->  o  (as q)
//
// A rank has whole heads of keys with all query heads that they serve. Tiles of queries never cross the
// border between the tokens of two ranks, so that the results of a tile have one owner.
//
// Runs follow each other without a barrier and without flags in between. No rank ends before its results have
// arrived, so all ranks have attended by then; and no rank sends results before the owner has sent its
// queries. Only a rank that pulls queries must know that they are there.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "model/machine/machine.hpp"
#include "model/parts/kernels.hpp"
#include "model/parts/sequence_attention.hpp"
#include "model/schedule/builder.hpp"
#include "model/workload/workload.hpp"

namespace tritax {

struct UlyssesKnobs : GemmKnobs {  // tile_m, _n, _k are not those of a GEMM here
  MatmulTile tile;                 // m queries, n keys, k columns
  KernelProfile profile = KernelProfile::interpreter;
  bool pull = false;
};
UlyssesKnobs ulysses_knobs_of(const Values& values, const SequenceAttention& problem);

// A lower bound of the time, from matrix and vector work of the rank with the most heads.
double ulysses_bound_ns(const SequenceAttention& problem, const UlyssesKnobs& knobs, const Machine& machine);

// Q, K, V or O: by tokens, and by heads.
struct HeadTensor {
  std::int16_t own = -1;
  std::int16_t by_heads = -1;
  std::int64_t heads_of_key = 1;  // heads of the tensor per head of keys
};

struct HeadTile {
  Rect rect;               // in qh and oh
  std::int64_t token = 0;  // of the first row, in the sequence
  std::int32_t head = 0;   // number among the rank's heads
  int owner = 0;           // of its tokens
};

class HeadsDraft {
 public:
  // Adds buffers, inputs and expected results. `stages_results`: results go through oh. Throws UserError for
  // too large problems.
  HeadsDraft(std::string_view pattern, const SequenceAttention& problem, const Machine& machine,
             const UlyssesKnobs& knobs, bool stages_results);

  int ranks() const { return problem.gpus; }
  bool sends() const { return ranks() > 1; }
  std::int32_t own_rows() const;  // of the rank with the most rows
  // Columns of a rank's heads in a tensor by tokens.
  Share columns(const HeadTensor& tensor, int rank) const;
  // The block of the tokens of `tokens_of` and the heads of `heads_of`: its place by tokens, and by heads.
  Rect by_tokens(const HeadTensor& tensor, int tokens_of, int heads_of) const;
  Rect by_heads(const HeadTensor& tensor, int tokens_of, int heads_of) const;

  std::vector<HeadTile> tiles(int rank) const;
  bool sees(const HeadTile& tile, int tokens_of) const;
  // Attends to all keys that the tile sees, or only to those of one rank's tokens.
  void attend(const HeadTile& tile);
  void attend(const HeadTile& tile, int tokens_of);
  // Stores the result to oh, or to o of its owner.
  void store(const HeadTile& tile, int rank, bool to_owner);
  Kernel attend_kernel(int rank, std::string_view name) const;

  SequenceAttention problem;
  const Machine& machine;
  UlyssesKnobs knobs;
  ScheduleBuilder builder;
  std::array<HeadTensor, 3> inputs;  // Q, K, V
  HeadTensor results;

 private:
  void expect_results();
  void attend_range(const HeadTile& tile, Share keys);

  std::int64_t keys_of_op_ = 1;
};

}  // namespace tritax
