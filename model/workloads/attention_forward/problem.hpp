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

#include "model/parts/attention_mapping.hpp"
#include "model/parts/attention_problem.hpp"
#include "model/schedule/builder.hpp"

namespace tritax {

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
