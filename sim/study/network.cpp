#include "sim/study/network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/core/error.hpp"
#include "model/parts/fields.hpp"
#include "model/scenario/toml_reader.hpp"
#include "sim/study/language_model.hpp"
#include "sim/study/shipped_files.hpp"

namespace tritax {

namespace embedded {
// File stem and text of scenarios/networks/*.toml; see cmake/TritaxModule.cmake.
EmbeddedFiles network_files();
}  // namespace embedded

namespace {

constexpr std::int64_t kMostPositions = 1 << 30;
constexpr std::int64_t kMostAlike = 10'000;
constexpr std::int64_t kLargestKernel = 1024;

NetworkLayer layer_of(TomlReader reader) {
  NetworkLayer layer;
  layer.name = reader.text("name");
  layer.inputs = reader.integer("inputs", 1, kMaxSize);
  layer.outputs = reader.integer("outputs", 1, kMaxSize);
  layer.kernel = reader.integer_or("kernel", 1, kLargestKernel, 1);
  layer.groups = reader.integer_or("groups", 1, kMaxSize, 1);
  layer.positions = reader.integer("positions", 1, kMostPositions);
  layer.from = reader.integer_or("from", 1, kMostPositions, layer.positions);
  layer.count = reader.integer_or("count", 1, kMostAlike, 1);
  layer.dense = reader.boolean_or("dense", false);
  reader.finish();
  if (layer.inputs % layer.groups == 0 && layer.outputs % layer.groups == 0) return layer;
  throw UserError(fmt::format("{}: groups = {} does not divide inputs = {} and outputs = {}",
                              reader.where("groups"), layer.groups, layer.inputs, layer.outputs));
}

NetworkLayer linear(std::string name, std::int64_t inputs, std::int64_t outputs, std::int64_t count) {
  NetworkLayer layer;
  layer.name = std::move(name);
  layer.inputs = inputs;
  layer.outputs = outputs;
  layer.from = layer.positions = 1;
  layer.count = count;
  return layer;
}

Network network_of(const LanguageModel& model) {
  if (model.latent || model.experts > 0) {
    throw UserError(
        fmt::format("model \"{}\" has {}; give one whose layers are all alike, or a TOML file of "
                    "its layers",
                    model.name, model.latent ? "latent attention" : "experts"));
  }
  const std::int64_t values = model.heads * model.grouped.head_dim;
  const std::int64_t keys = model.grouped.key_value_heads * model.grouped.head_dim;
  Network network;
  network.name = model.name;
  network.source = model.source;
  network.layers = {linear("qkv", model.hidden, values + 2 * keys, model.layers),
                    linear("attention-out", values, model.hidden, model.layers),
                    linear("up", model.hidden, 2 * model.intermediate, model.layers),
                    linear("down", model.intermediate, model.hidden, model.layers)};
  return network;
}

}  // namespace

Network parse_network(std::string_view text, const std::string& name, const std::string& origin) {
  const toml::table table = parse_toml(text, origin);
  TomlReader reader({&table}, origin, "network");
  Network network;
  network.name = name;
  network.source = reader.text_or("source", "");
  const toml::node* layers = reader.find("layer");
  reader.finish();
  const toml::array* list = layers == nullptr ? nullptr : layers->as_array();
  if (list == nullptr || list->empty()) {
    throw UserError(fmt::format("{}: no [[layer]]; a network has one or more", origin));
  }
  for (const toml::node& node : *list) {
    const toml::table* layer = node.as_table();
    if (layer == nullptr) {
      throw UserError(fmt::format("{}: a layer is a table, [[layer]]", reader.where(node)));
    }
    network.layers.push_back(layer_of(TomlReader({layer}, origin, "layer")));
  }
  return network;
}

std::vector<std::string> shipped_networks() { return names_of(embedded::network_files()); }

Network find_network(const std::string& name_or_path) {
  const std::vector<std::string> models = shipped_models();
  if (std::find(models.begin(), models.end(), name_or_path) != models.end())
    return network_of(find_model(name_or_path));
  const FoundFile file = find_file(embedded::network_files(), name_or_path, "network", models);
  return parse_network(file.text, file.name, file.origin);
}

}  // namespace tritax
