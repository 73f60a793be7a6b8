// Blocks of a language model's layer that are no projection (Workload::projection): for each block the
// workload and problem that compute it, and the pattern that stands for today's serving engines.
//
//   prompt_attention   all tokens of several prompts, causal; usual: block-first, as FlashAttention
//   cached_attention   one new token per sequence over its keys; usual: the rules that ship with vLLM
//   routed_experts     tokens to their experts and back; usual: the library's all-to-all
//   summed_rows        every GPU ends with the sum of all matrices; usual: the library's all-reduce
//   gathered_rows      every GPU ends with the rows of all GPUs; usual: the library's all-gather
//
// Sizes are per GPU. Each function throws UserError that begins with `where` for a size out of range.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "model/core/dtype.hpp"
#include "model/workload/workload.hpp"

namespace tritax {

struct AttentionSizes {
  std::int64_t sequences = 1;
  std::int64_t context = 1;  // tokens per prompt, or keys per sequence with the new token
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t head_dim = 1;
  DType dtype = DType::bf16;
};

struct ExpertSizes {
  std::int64_t tokens = 1;
  std::int64_t experts = 1;  // of all GPUs together
  std::int64_t experts_per_token = 1;
  std::int64_t hidden = 1;
  std::int64_t intermediate = 1;  // per expert, on its GPU
  DType dtype = DType::bf16;
  int gpus = 1;  // that share the experts
};

struct LayerBlock {
  Problem problem;  // complete
  std::string_view usual;
};

LayerBlock prompt_attention(const AttentionSizes& sizes, const std::string& where);
LayerBlock cached_attention(const AttentionSizes& sizes, const std::string& where);
LayerBlock routed_experts(const ExpertSizes& sizes, const std::string& where);
LayerBlock summed_rows(std::int64_t rows, std::int64_t columns, DType dtype, int gpus,
                       const std::string& where);
// `rows`: per GPU.
LayerBlock gathered_rows(std::int64_t rows, std::int64_t columns, DType dtype, int gpus,
                         const std::string& where);

// Number of experts with tokens, on the GPU with the most such experts: it reads their weights.
std::int64_t experts_in_use(const LayerBlock& routed);

}  // namespace tritax
