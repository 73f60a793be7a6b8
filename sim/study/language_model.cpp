#include "sim/study/language_model.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <span>
#include <utility>

#include "model/core/error.hpp"
#include "model/core/read_file.hpp"
#include "model/parts/fields.hpp"
#include "model/scenario/toml_reader.hpp"

namespace tritax {

namespace embedded {
// File stem and text of scenarios/models/*.toml; see cmake/TritaxModule.cmake.
std::span<const std::pair<std::string_view, std::string_view>> model_files();
}  // namespace embedded

namespace {

constexpr std::int64_t kMostLayers = 10'000;
constexpr std::int64_t kMostHeads = 1 << 16;
constexpr std::size_t kLargestFileBytes = 1 << 20;

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
  model.dtype = static_cast<DType>(reader.choice("dtype", kDTypeNames, static_cast<int>(DType::bf16)));
  model.hidden = reader.integer("hidden_size", 1, kMaxSize);
  model.layers = reader.integer("num_hidden_layers", 1, kMostLayers);
  read_attention(reader, model);
  read_feed_forward(reader, model);
  reader.finish();
  return model;
}

std::vector<std::string> shipped_models() {
  std::vector<std::string> names;
  for (const auto& [name, text] : embedded::model_files()) names.emplace_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

LanguageModel find_model(const std::string& name_or_path) {
  for (const auto& [name, text] : embedded::model_files()) {
    if (name == name_or_path)
      return parse_model(text, std::string(name), fmt::format("{}.toml (shipped)", name));
  }
  const std::filesystem::path path(name_or_path);
  std::error_code ignored;
  if (path.has_parent_path() || path.extension() == ".toml" ||
      std::filesystem::is_regular_file(path, ignored)) {
    return parse_model(read_file(name_or_path, "the path of a model file (TOML)", kLargestFileBytes),
                       path.stem().string(), name_or_path);
  }
  const std::vector<std::string> known = shipped_models();
  const std::string nearest = nearest_name(name_or_path, known);
  throw UserError(fmt::format(
      "unknown model \"{}\"{}; shipped: {}; or give the path of a TOML file", name_or_path,
      nearest.empty() ? "" : fmt::format(", did you mean \"{}\"?", nearest), fmt::join(known, " ")));
}

}  // namespace tritax
