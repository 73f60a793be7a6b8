#include "model/machine/read_doubts.hpp"

#include <algorithm>
#include <string_view>

namespace tritax {

namespace {

// The tables of [[key]]; none if there is no such key.
std::vector<const toml::table*> tables_of(const toml::table& root, std::string_view key,
                                          const Refuse& refuse) {
  std::vector<const toml::table*> tables;
  const toml::node* node = root.get(key);
  if (node == nullptr) return tables;
  const toml::array* array = node->as_array();
  if (array == nullptr) refuse(*node, std::string(key), "must be written as [[" + std::string(key) + "]]");
  for (const toml::node& one : *array) {
    if (!one.is_table()) refuse(one, std::string(key), "must be written as [[" + std::string(key) + "]]");
    tables.push_back(one.as_table());
  }
  return tables;
}

std::string text_of(const toml::table& table, const std::string& key, const Refuse& refuse) {
  const toml::node* node = table.get(key);
  if (node == nullptr) refuse(table, key, "is missing");
  const auto* text = node->as_string();
  if (text == nullptr || text->get().empty()) refuse(*node, key, "must be a text that is not empty");
  return text->get();
}

FieldRange range_of(const std::string& field, const toml::node& node, const Refuse& refuse) {
  FieldRange range;
  range.field = field;
  const toml::array* array = node.as_array();
  const bool names = array != nullptr && !array->empty() && array->is_homogeneous<std::string>();
  const bool numbers = array != nullptr && array->size() == 2 && array->is_homogeneous<std::int64_t>();
  if (names) {
    for (const toml::node& one : *array) range.names.push_back(one.as_string()->get());
    return range;
  }
  if (!numbers) refuse(node, field, "must be a list of names, or the lowest and the highest number");
  range.low = array->get(0)->as_integer()->get();
  range.high = array->get(1)->as_integer()->get();
  if (range.low > range.high) refuse(node, field, "the lowest number comes first");
  return range;
}

// Every key that is not in `others` is a field.
std::vector<FieldRange> ranges_of(const toml::table& table, const std::vector<std::string_view>& others,
                                  const Refuse& refuse) {
  std::vector<FieldRange> ranges;
  for (const auto& [key, node] : table) {
    if (std::find(others.begin(), others.end(), key.str()) != others.end()) continue;
    ranges.push_back(range_of(std::string(key.str()), node, refuse));
  }
  return ranges;
}

}  // namespace

std::vector<Doubt> read_doubts(const toml::table& root, const Refuse& refuse) {
  std::vector<Doubt> doubts;
  for (const toml::table* table : tables_of(root, "doubt", refuse)) {
    Doubt& doubt = doubts.emplace_back();
    doubt.workload = text_of(*table, "workload", refuse);
    doubt.pattern = text_of(*table, "pattern", refuse);
    doubt.note = text_of(*table, "note", refuse);
    doubt.ranges = ranges_of(*table, {"workload", "pattern", "note"}, refuse);
  }
  return doubts;
}

}  // namespace tritax
