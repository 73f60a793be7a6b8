// Attention of whole sequences on one GPU, forward or backward: the fields of its problem, and rows of
// measured calls of a library.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "model/core/csv.hpp"
#include "model/core/dtype.hpp"
#include "model/workload/library_call.hpp"
#include "model/workload/workload.hpp"

namespace tritax {

struct AttentionProblem {
  std::int64_t batch = 1;
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t context = 1;  // number of queries, and of keys
  std::int64_t depth = 1;    // columns per head
  bool causal = false;
  DType dtype = DType::fp16;

  std::int64_t group() const { return heads / kv_heads; }  // heads of queries to one of keys
};
AttentionProblem attention_problem_of(const Problem& problem);

// context, batch, q_heads, kv_heads, head_dim, causal, dtype.
std::span<const Spec> attention_fields();

// Completes kv_heads. Throws UserError for more than `most_heads` heads of all batches, each of which has
// references of its own, or for too many rows.
void complete_attention(Problem& problem, const FieldPlace& place, std::int64_t most_heads);

// "16x64/8 heads of 128 bf16, 4096 tokens, causal".
std::string attention_text(const Problem& problem);

// The call in a row of backend_hip/baselines/attention.py with replayed graphs: the pattern "library".
std::optional<LibraryCall> library_call_of_attention(const CsvRow& line, const Workload& workload);

// Rows [row, row + rows) of a head, which has `cols` columns; batches are row blocks, heads column blocks.
Rect head_rect(const AttentionProblem& problem, std::int64_t batch, std::int64_t head, std::int64_t row,
               std::int64_t rows, std::int64_t cols);

}  // namespace tritax
