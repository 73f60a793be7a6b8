// One pass through a language model on the GPUs of a node: the prefill of prompts, or one step of decode, as
// the list of its blocks in order. All sizes are sizes of one GPU.
//
// Deployment. T GPUs share every product and all heads (tensor parallelism, sim/study/layer.hpp); E GPUs
// share the experts. If E is 1, the T GPUs hold a T-th of every expert and sum the results. Otherwise E is a
// multiple of T: each of the E GPUs holds whole experts, tokens travel to them and back, and E / T replicas
// of attention and dense products each have a part of the sequences. G = max(T, E) GPUs in all.
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
// A *stream* is bound by memory or compute: each of its kernels takes one latency of HBM, and all together
// take their bytes at HBM's rate, or their flops at the rate of the matrix cores, whichever is longer. For
// example the activation of Llama 3 70B on 8 GPUs, 8192 tokens: 3 · 8192 · 3584 · 2 B = 176 MB, 44 us at 4
// TB/s.
//
// Latent attention (DeepSeek) keeps one vector of kv rank + rotary columns per token in the cache, on every
// GPU of T. Prefill computes keys and values of all heads from it (kv-b) and attends to them: heads whose
// depth is the mean of the depths of keys (plain + rotary) and of values have the same bytes and flops.
// Decode attends to the vectors themselves, with kv-b multiplied into queries and results (arXiv:2405.04434
// §2.1.2): a stream of four kernels (two batched products, attention, merge), with the bytes of the cache and
// of kv-b, and 2 · heads · (2 · kv rank + rotary) flops per token and key. A kernel that splits keys badly,
// or reads them twice, is slower: a tuned kernel comes near to the closed form.
//
// Prompts are prefilled in passes of equal size, with at most `most_tokens` tokens per replica: several whole
// prompts, or one of several equal chunks of a prompt. Attention of a chunk is its share of the attention of
// the whole prompt.
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
  std::int64_t times = 0;          // per pass
  std::optional<Problem> problem;  // a workload's problem; nothing: a stream
  std::string_view usual;          // the pattern that stands for the libraries
  double share = 1;                // share of the problem in the pass
  int kernels = 1;                 // of a stream
  double stream_bytes = 0;
  double stream_flops = 0;
  double least_bytes = 0;  // weights and cache of the GPU with most to read: from HBM once …
  double least_flops = 0;  // … and flops that are necessary
};

struct PassSection {
  std::int64_t repeats = 1;
  std::vector<std::size_t> blocks;  // indices into ModelPass::blocks, in order
};

struct ModelPass {
  int gpus = 1;  // GPUs that run the pass together
  std::vector<PassBlock> blocks;
  std::vector<PassSection> sections;
  std::int64_t sequences = 1;  // per replica
  std::int64_t tokens = 1;     // per replica
  std::int64_t passes = 1;     // until all prompts are done; 1 in decode
  double engine_ns = 0;        // host time between two passes, while the GPUs wait
};

// Both throw UserError for sizes that the GPUs cannot share, and for sizes out of range; `place` says how the
// user knows batch, context, pass_tokens, tp and ep: as options or arguments.
//
// `batch` sequences in all, each with `context` tokens in the cache, of which one is new.
ModelPass decode_pass(const LanguageModel& model, const ModelDeployment& deployment, std::int64_t batch,
                      std::int64_t context, DType dtype, const FieldPlace& place = own_name);
// … each with a prompt of `context` tokens.
ModelPass prefill_pass(const LanguageModel& model, const ModelDeployment& deployment, std::int64_t batch,
                       std::int64_t context, std::int64_t most_tokens, DType dtype,
                       const FieldPlace& place = own_name);

// Parts of a model that no pass has. `engine`: passes contain host time between them.
std::vector<std::string> left_out_of(const LanguageModel& model, bool engine, const FieldPlace& place);

// Type of attention, results, norms and the cache: 8-bit models keep 16-bit results.
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
                      std::int64_t context, DType dtype, const Gpu& gpu, const FieldPlace& place = own_name);

}  // namespace tritax
