// Attention of one sequence that GPUs share, or of several sequences of one length: the computation,
// independent of how GPUs share it.
//
//   O[t, h] = softmax(Q[t, h]·K[h div G]ᵀ / √d)·V[h div G]     t token, h query head, G query heads to one of
//                                                              keys; causal: keys up to t
//
// A row of Q, K, V and O is a token of all sequences, head by head (sequence first, as in Megatron), so that
// further sequences count as further heads.
//
// Fields: context, q_heads, kv_heads, head_dim, causal, dtype, gpus; where a workload has it, batch.
#pragma once

#include <cstdint>
#include <string>

#include "model/core/dtype.hpp"
#include "model/parts/kernels.hpp"
#include "model/workload/workload.hpp"

namespace tritax {

struct SequenceAttention {
  std::int64_t context = 1;   // tokens of all ranks
  std::int64_t heads = 1;     // of all sequences
  std::int64_t kv_heads = 1;  // of all sequences
  std::int64_t depth = 128;
  bool causal = false;
  DType dtype = DType::fp16;
  int gpus = 1;

  std::int64_t group() const { return heads / kv_heads; }
  // Tokens, or heads of keys, of a rank; both are contiguous.
  Share tokens(int rank) const { return share_of(context, rank, gpus); }
  Share key_heads(int rank) const { return share_of(kv_heads, rank, gpus); }
};
SequenceAttention sequence_attention_of(const Problem& problem);

// Rows for tables of fields: context, and number of sequences.
Spec sequence_field();
Spec sequences_field();

// Sets kv_heads where the problem gives none. Throws UserError for fewer tokens than GPUs, and for matrices
// wider than buffers can be.
void complete_sequence(Problem& problem, const FieldPlace& place);

Work sequence_work(const Problem& problem);
std::string sequence_text(const Problem& problem);

}  // namespace tritax
