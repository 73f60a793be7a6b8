#include "sim/study/language_model.hpp"

#include <fmt/format.h>

#include "model/core/error.hpp"
#include "model/parts/fields.hpp"
#include "model/scenario/toml_reader.hpp"
#include "sim/study/shipped_files.hpp"

namespace tritax {

namespace embedded {
// File stem and text of scenarios/models/*.toml; see cmake/TritaxModule.cmake.
EmbeddedFiles model_files();
}  // namespace embedded

namespace {

constexpr std::int64_t kMostLayers = 10'000;
constexpr std::int64_t kMostHeads = 1 << 16;
constexpr std::int64_t kMostTokensKnown = std::int64_t{1} << 24;

void read_attention(TomlReader& reader, LanguageModel& model) {
  model.heads = reader.integer("num_attention_heads", 1, kMostHeads);
  if (reader.has("kv_lora_rank")) {
    model.latent = {reader.integer("q_lora_rank", 1, kMaxSize), reader.integer("kv_lora_rank", 1, kMaxSize),
                    reader.integer("qk_nope_head_dim", 1, kMaxSize),
                    reader.integer("qk_rope_head_dim", 1, kMaxSize),
                    reader.integer("v_head_dim", 1, kMaxSize)};
    return;
  }
  model.grouped.key_value_heads = reader.integer("num_key_value_heads", 1, model.heads);
  model.grouped.head_dim = reader.integer("head_dim", 1, kMaxSize);
  if (model.heads % model.grouped.key_value_heads == 0) return;
  throw UserError(fmt::format("{}: num_key_value_heads = {} does not divide num_attention_heads = {}",
                              reader.where("num_key_value_heads"), model.grouped.key_value_heads,
                              model.heads));
}

void read_feed_forward(TomlReader& reader, LanguageModel& model) {
  model.dense_layers = model.layers;
  if (reader.has("num_experts")) {
    model.experts = reader.integer("num_experts", 1, kMaxSize);
    model.experts_per_token = reader.integer("num_experts_per_tok", 1, model.experts);
    model.expert_intermediate = reader.integer("moe_intermediate_size", 1, kMaxSize);
    model.shared_experts = reader.integer_or("n_shared_experts", 0, kMaxSize / model.expert_intermediate, 0);
    model.dense_layers = reader.integer_or("first_k_dense_replace", 0, model.layers, 0);
  }
  if (model.dense_layers > 0) model.intermediate = reader.integer("intermediate_size", 1, kMaxSize);
}

}  // namespace

LanguageModel parse_model(std::string_view text, const std::string& name, const std::string& origin) {
  const toml::table table = parse_toml(text, origin);
  TomlReader reader({&table}, origin, "model");
  LanguageModel model;
  model.name = name;
  model.source = reader.text_or("source", "");
  model.dtype = static_cast<DType>(reader.choice("dtype", kCommonDTypeNames, static_cast<int>(DType::bf16)));
  model.hidden = reader.integer("hidden_size", 1, kMaxSize);
  model.layers = reader.integer("num_hidden_layers", 1, kMostLayers);
  model.vocabulary = reader.integer_or("vocab_size", 1, kMostTokensKnown, 0);
  read_attention(reader, model);
  read_feed_forward(reader, model);
  reader.finish();
  return model;
}

std::vector<std::string> shipped_models() { return names_of(embedded::model_files()); }

LanguageModel find_model(const std::string& name_or_path) {
  const FoundFile file = find_file(embedded::model_files(), name_or_path, "model");
  return parse_model(file.text, file.name, file.origin);
}

}  // namespace tritax
