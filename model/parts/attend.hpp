// Fields of the heads, and the resources of a workgroup, for workloads with attention.
#pragma once

#include <string_view>

#include "model/core/dtype.hpp"
#include "model/workload/workload.hpp"

namespace tritax {

Spec q_heads_field(std::int64_t usual);
Spec kv_heads_field();
Spec head_dim_field();
Spec causal_field();

// Sets kv_heads to q_heads where the problem gives none. Throws UserError where q_heads is no multiple of
// kv_heads.
void complete_kv_heads(Problem& problem, const FieldPlace& place);

// Flops of all heads (and batches) together, with as many queries as keys; a masked key counts as no work.
double attention_flops(std::int64_t heads, std::int64_t depth, std::int64_t context, bool causal);

// Resources of a workgroup with a tile of m queries that takes n keys at a time, of heads of k columns.
// Results, scores and weights lie in registers, and so do queries unless `queries_in_lds`. One block of keys
// and values lies in LDS, or two where the pipeline overlaps. Where the tile does not fit, throws UserError
// that names `knob`, the knob to make smaller.
Resources attend_resources(const Gpu& gpu, DType dtype, const MatmulTile& tile, bool queries_in_lds,
                           std::string_view knob);

}  // namespace tritax
