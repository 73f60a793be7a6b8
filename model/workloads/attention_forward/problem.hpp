// Attention: the computation, and the cut of its grid into tiles.
//
//   O[z, h] = softmax(Q[z, h]·K[z, h div G]ᵀ / √d)·V[z, h div G]    z batch, h query head,
//                                                     G query heads to one of keys
//
// Batches are row blocks of the buffers, heads are column blocks. A workgroup has a tile of queries of one
// head and goes through the keys that the tile may see, in a few operations of equal ranges. The number of
// ranges is large enough that cache contents can change in between, and small enough that 131,072 tiles are
// simulated in about a second.
#pragma once

#include "model/core/dtype.hpp"
#include "model/schedule/builder.hpp"
#include "model/workload/workload.hpp"
#include "model/workloads/attention_forward/mapping.hpp"

namespace tritax {

struct AttentionProblem {
  std::int64_t batch = 1;
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t context = 1;  // number of queries, and of keys
  std::int64_t depth = 1;    // columns per head
  bool causal = false;
  DType dtype = DType::fp16;
};
AttentionProblem attention_problem_of(const Problem& problem);

struct AttentionKnobs {
  MatmulTile tile;  // m queries, n keys, k columns
  KernelProfile profile = KernelProfile::interpreter;
  bool persistent = false;
  HeadFirstForm form = HeadFirstForm::clean;
};
AttentionKnobs attention_knobs_of(const AttentionProblem& problem, const Values& values);

AttentionGrid grid_of(const AttentionProblem& problem, std::int64_t tile_rows, const Gpu& gpu);

// Throws UserError for impossible shapes, tiles or mappings.
Schedule attention_schedule(std::string_view name, Mapping mapping, const AttentionProblem& problem,
                            const AttentionKnobs& knobs, const Machine& machine);

// A lower bound of the time, from matrix and vector work alone.
double attention_bound_ns(const AttentionProblem& problem, const AttentionKnobs& knobs,
                          const Machine& machine);

}  // namespace tritax
