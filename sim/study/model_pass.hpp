// One pass through a language model on the GPUs of a node: the prefill of prompts, or one step of decode, as
// the list of what runs one after the other. All sizes are those of one GPU.
//
// Deployment. T GPUs share every product and all heads (tensor parallelism, sim/study/layer.hpp); E GPUs
// share the experts. E is 1, and then the T GPUs hold a T-th of every expert and add up what comes of it; or
// E is a multiple of T, and then each of the E GPUs holds whole experts, tokens travel to them and back, and
// E / T replicas of attention and dense products have a part of the sequences each. G = max(T, E) GPUs in
// all.
//
//   embedding                                                 rows of a table: a stream
//   L ×  attention-norm    add, norm                          a stream
//        qkv               (or q-kv-a, q-b, kv-b)             a product
//        rotary            rotation, new keys to the cache    a stream
//        attention         over the cache or the prompt
//        attention-out     product and sum over T
//        ffn-norm                                             a stream
//        gate-up, activation, down        a layer without experts, or the shared ones
//        router, top-k, experts, then     E = 1: expert-sum over T; E > T > 1: expert-gather over T
//   final-norm, head, sampling                                of one token a sequence
//
// A *stream* is bound by memory: kernels of which each takes one latency of HBM, and all together their bytes
// at HBM's rate, or their flops at the rate of the matrix cores, whichever is longer. For example the
// activation of Llama 3 70B on 8 GPUs, 8192 tokens: 3 · 8192 · 3584 · 2 B = 176 MB, 44 us at 4 TB/s.
//
// Latent attention (DeepSeek) keeps one vector of kv rank + rotary columns a token in the cache, on every GPU
// of T alike. Prefill makes keys and values of all heads out of it (kv-b) and attends to those: heads whose
// depth is the mean of that of keys (plain + rotary) and of values have the same bytes and flops. Decode
// attends to the vectors themselves, with kv-b multiplied into queries and results (arXiv:2405.04434 §2.1.2):
// a stream of four kernels (two batched products, attention, merge), whose bytes are those of the cache and
// of kv-b and whose flops 2 · heads · (2 · kv rank + rotary) a token and key. A kernel that splits keys
// badly, or reads them twice, is slower: the closed form is what a tuned one comes near to.
//
// Prompts are prefilled in passes of equal size, of no more than `most_tokens` tokens of a replica: several
// whole prompts, or one of several equal chunks of a prompt. Attention of a chunk is its share of that of the
// whole prompt.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/machine/machine.hpp"
#include "model/workload/workload.hpp"
#include "sim/study/language_model.hpp"

namespace tritax {

struct ModelDeployment {
  int tp = 1;
  int ep = 1;

  int gpus() const { return std::max(tp, ep); }
  int replicas() const { return gpus() / tp; }
};

struct PassBlock {
  std::string name;
  std::int64_t times = 0;          // in the pass
  std::optional<Problem> problem;  // of a workload; nothing: a stream
  std::string_view usual;          // the pattern that stands for the libraries
  double share = 1;                // of the problem that belongs to the pass
  int kernels = 1;                 // of a stream
  double stream_bytes = 0;
  double stream_flops = 0;
  double least_bytes = 0;  // weights and cache, of the GPU that has most to read: from HBM once …
  double least_flops = 0;  // … and what has to be multiplied
};

struct PassSection {
  std::int64_t repeats = 1;
  std::vector<std::size_t> blocks;  // places in ModelPass::blocks, in order
};

struct ModelPass {
  int gpus = 1;  // that run it at once
  std::vector<PassBlock> blocks;
  std::vector<PassSection> sections;
  std::int64_t sequences = 1;  // of a replica
  std::int64_t tokens = 1;     // of a replica
  std::int64_t passes = 1;     // until all prompts are done; 1 in decode
  double engine_ns = 0;        // that hosts take between two passes, while the GPUs wait
};

// Both throw UserError, which begins with an option, for what the GPUs cannot share, and for sizes out of
// range.
//
// `batch` sequences in all, each with `context` tokens in the cache, of which one is new.
ModelPass decode_pass(const LanguageModel& model, const ModelDeployment& deployment, std::int64_t batch,
                      std::int64_t context, DType dtype);
// … each with a prompt of `context` tokens.
ModelPass prefill_pass(const LanguageModel& model, const ModelDeployment& deployment, std::int64_t batch,
                       std::int64_t context, std::int64_t most_tokens, DType dtype);

// What of a model no pass has. `engine`: passes say what hosts do between them.
std::vector<std::string> left_out_of(const LanguageModel& model, bool engine);

// Of attention, results, norms and the cache: 8-bit models keep 16-bit results.
inline DType dtype_between(DType dtype) { return dtype == DType::fp8 ? DType::bf16 : dtype; }

// Memory of one GPU.
struct ModelMemory {
  double weight_bytes = 0;
  double cache_bytes = 0;  // keys and values of all sequences, at their longest
  double capacity_bytes = 0;

  double bytes() const { return weight_bytes + cache_bytes; }
  bool fits() const { return bytes() <= capacity_bytes; }
};
ModelMemory memory_of(const LanguageModel& model, const ModelDeployment& deployment, std::int64_t batch,
                      std::int64_t context, DType dtype, const Gpu& gpu);

}  // namespace tritax
