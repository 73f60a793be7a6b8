#include "cli/fields.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>

namespace tritax::cli {

using nlohmann::ordered_json;

FieldValue printed(const FieldInfo& field, FieldValue value) {
  const double divisor = forms_of(field.unit).divisor;
  if (auto* number = std::get_if<double>(&value.value); number != nullptr && divisor != 1) *number /= divisor;
  return value;
}

Cell cell_of(const FieldValue& value) {
  return std::visit(
      [](const auto& one) -> Cell {
        using Type = std::decay_t<decltype(one)>;
        if constexpr (std::is_same_v<Type, bool>) {
          return std::string(one ? "true" : "false");
        } else if constexpr (std::is_same_v<Type, std::vector<std::string>>) {
          std::string text;
          for (const std::string& part : one) text += (text.empty() ? "" : ", ") + part;
          return text;
        } else {
          return one;
        }
      },
      value.value);
}

Column column_of(const FieldInfo& field) {
  return {field.key(), field.heading(), std::string(forms_of(field.unit).name), field.decimals};
}

bool is_any(const std::vector<Cell>& cells) {
  return std::any_of(cells.begin(), cells.end(), [](const Cell& cell) {
    const auto* number = std::get_if<double>(&cell);
    return number != nullptr && *number > 0;
  });
}

void put(ordered_json& json, const FieldInfo& field, const FieldValue& value) {
  if (field.optional && !value.known()) return;
  ordered_json& place = field.object.empty() ? json : json[std::string(field.object)];
  place[field.key()] = std::visit(
      [](const auto& one) {
        if constexpr (std::is_same_v<std::decay_t<decltype(one)>, std::monostate>) {
          return ordered_json();
        } else {
          return ordered_json(one);
        }
      },
      value.value);
}

}  // namespace tritax::cli
