// The sizes of the layers of a language model, from a published config.json.
//
// A file is TOML with the keys of Hugging Face's config.json where models agree on them:
//
//   dtype = "bf16"                  # of weights and activations
//   hidden_size = 8192
//   num_hidden_layers = 80
//   num_attention_heads = 64
//   num_key_value_heads = 8         # or latent attention: q_lora_rank, kv_lora_rank, qk_nope_head_dim,
//   head_dim = 128                  # qk_rope_head_dim, v_head_dim
//   intermediate_size = 28672       # of layers without experts
//
// With experts also num_experts, num_experts_per_tok, moe_intermediate_size, n_shared_experts (usually 0) and
// first_k_dense_replace, the number of layers before the first with experts (usually 0). `vocab_size` is
// needed for a pass through the whole model: without it there is neither embedding nor head. `source` names
// the origin of the numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/core/dtype.hpp"

namespace tritax {

// Heads that share keys and values in groups.
struct GroupedAttention {
  std::int64_t key_value_heads = 0;
  std::int64_t head_dim = 0;
};

// Queries, keys and values out of vectors of low rank (arXiv:2405.04434 §2.1).
struct LatentAttention {
  std::int64_t query_rank = 0;
  std::int64_t key_value_rank = 0;
  std::int64_t plain_dim = 0;   // part of a head's query and key without position …
  std::int64_t rotary_dim = 0;  // … and the part with position
  std::int64_t value_dim = 0;
};

struct LanguageModel {
  std::string name;    // name of the file, without its ending
  std::string source;  // origin of the numbers
  DType dtype = DType::bf16;
  std::int64_t hidden = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  GroupedAttention grouped;  // unless `latent` is set
  std::optional<LatentAttention> latent;
  std::int64_t dense_layers = 0;  // the other layers have experts
  std::int64_t intermediate = 0;  // of dense layers
  std::int64_t experts = 0;
  std::int64_t experts_per_token = 0;
  std::int64_t shared_experts = 0;
  std::int64_t expert_intermediate = 0;  // of one expert
  std::int64_t vocabulary = 0;           // 0: unknown
};

// Names of the shipped models, in order.
std::vector<std::string> shipped_models();

// A shipped model or the model of a file. Throws UserError (with the nearest name; with file:line for errors
// in a file).
LanguageModel find_model(const std::string& name_or_path);

// `origin` appears in messages.
LanguageModel parse_model(std::string_view text, const std::string& name, const std::string& origin);

}  // namespace tritax
