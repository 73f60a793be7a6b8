// Attention: what is computed, and how a grid of tiles is cut.
//
//   O[z, h] = softmax(Q[z, h]·K[z, h div G]ᵀ / √d)·V[z, h div G]    z batch, h query head,
//                                                     G query heads to one of keys
//
// Batches are row blocks of the buffers, heads column blocks. A workgroup has a tile of queries of one head
// and goes through the keys that it may see, in a few operations of equal ranges: so many that what the
// caches have can change under way, and so few that 131,072 tiles are simulated in about a second.
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
  std::int64_t context = 1;  // queries, and keys
  std::int64_t depth = 1;    // columns of a head
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

// Throws UserError for shapes, tiles or mappings that cannot be.
Schedule attention_schedule(std::string_view name, Mapping mapping, const AttentionProblem& problem,
                            const AttentionKnobs& knobs, const Machine& machine);

// A lower bound of its time, of matrix and vector work alone.
double attention_bound_ns(const AttentionProblem& problem, const AttentionKnobs& knobs,
                          const Machine& machine);

}  // namespace tritax
