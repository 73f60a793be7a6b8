// What workloads with attention share: the fields of their heads, and the resources of a workgroup that
// attends.
#pragma once

#include <string_view>

#include "model/core/dtype.hpp"
#include "model/workload/workload.hpp"

namespace tritax {

Spec q_heads_field(std::int64_t usual);
Spec kv_heads_field();
Spec head_dim_field();
Spec causal_field();

// Gives kv_heads where nobody has. Throws UserError if the query heads cannot share them evenly.
void complete_kv_heads(Problem& problem, const FieldPlace& place);

// Of as many queries as keys, of all heads (and batches) together; a key that a mask hides is no work.
double attention_flops(std::int64_t heads, std::int64_t depth, std::int64_t context, bool causal);

// Of a workgroup with a tile of m queries that takes n keys at a time, of heads of k columns: results, scores
// and weights in registers, and queries too unless they are in LDS; one block of keys and values in LDS, two
// where they overlap. Throws UserError that names `knob`, the one to make smaller, where that does not fit.
Resources attend_resources(const Gpu& gpu, DType dtype, const MatmulTile& tile, bool queries_in_lds,
                           std::string_view knob);

}  // namespace tritax
