// Blocks of a language model's layer that are no product of a projection (Workload::projection): which
// workload computes each, as which problem, and which of its patterns stands for what serving engines run
// today.
//
//   prompt_attention   all tokens of so many prompts, causal; usual: block-first, as FlashAttention
//   cached_attention   one new token a sequence over its keys; usual: the rules that ship with vLLM
//   routed_experts     tokens to their experts and back; usual: the library's all-to-all
//   summed_rows        every GPU ends with the sum of a matrix; usual: the library's all-reduce
//   gathered_rows      every GPU ends with the rows of all; usual: the library's all-gather
//
// Sizes are those of one GPU. Each throws UserError that begins with `where` for a size out of range.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "model/core/dtype.hpp"
#include "model/workload/workload.hpp"

namespace tritax {

struct AttentionSizes {
  std::int64_t sequences = 1;
  std::int64_t context = 1;  // tokens of each, or keys with that of the new token
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
  std::int64_t intermediate = 1;  // of an expert on its GPU
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
// `rows` of one GPU.
LayerBlock gathered_rows(std::int64_t rows, std::int64_t columns, DType dtype, int gpus,
                         const std::string& where);

// Experts whose weights the GPU reads that has the most of them to read: those that some token chose.
std::int64_t experts_in_use(const LayerBlock& routed);

}  // namespace tritax
