#include "model/scenario/toml_reader.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <utility>

#include "model/core/error.hpp"
#include "model/core/read_file.hpp"

namespace tritax {

namespace {

std::string place(const std::string& origin, const toml::node& node) {
  const auto line = node.source().begin.line;
  return line == 0 ? origin : fmt::format("{}:{}", origin, line);
}

std::string type_name(const toml::node& node) {
  std::ostringstream text;
  text << node.type();
  return text.str();
}

}  // namespace

std::string read_text_file(const std::string& path) {
  constexpr std::size_t kLargestFileBytes = std::size_t{64} << 20;  // some 100 000 scenarios
  return read_file(path, "the path of a TOML file", kLargestFileBytes);
}

TomlReader::TomlReader(std::vector<const toml::table*> chain, std::string origin, std::string what)
    : origin_(std::move(origin)), what_(std::move(what)) {
  for (const toml::table* table : chain) {
    if (table != nullptr) chain_.push_back(table);
  }
  TRITAX_ASSERT(!chain_.empty(), "a reader needs a table");
}

std::string TomlReader::where(const toml::node& node) const { return place(origin_, node); }

std::string TomlReader::where(std::string_view key) const {
  for (const toml::table* table : chain_) {
    if (const toml::node* node = table->get(key)) return place(origin_, *node);
  }
  return where();
}

std::string TomlReader::where() const { return place(origin_, *chain_.front()); }

const toml::node* TomlReader::find(std::string_view key) {
  if (std::find(asked_.begin(), asked_.end(), key) == asked_.end()) asked_.emplace_back(key);
  for (const toml::table* table : chain_) {
    if (const toml::node* node = table->get(key)) return node;
  }
  return nullptr;
}

bool TomlReader::has(std::string_view key) { return find(key) != nullptr; }

// A key of the tables that is probably a misspelt `key`. Short keys ("m", "n") always differ by one letter,
// so only a wrong case counts.
std::string TomlReader::misspelt(std::string_view key) const {
  std::vector<std::string> names;
  for (const toml::table* table : chain_) {
    for (auto&& [name, node] : *table) names.emplace_back(std::string_view{name});
  }
  std::string nearest = nearest_name(std::string(key), names);
  const int farthest = static_cast<int>(key.size()) / 3;
  return !nearest.empty() && edit_distance(std::string(key), nearest) <= farthest ? nearest : "";
}

const toml::node& TomlReader::require(std::string_view key) {
  const toml::node* node = find(key);
  if (node == nullptr) {
    const std::string other = misspelt(key);
    throw UserError(fmt::format("{}: this {} has no '{}'{}", where(), what_, key,
                                other.empty() ? "" : fmt::format(" (is '{}' it?)", other)));
  }
  return *node;
}

void TomlReader::wrong_type(const toml::node& node, std::string_view key, std::string_view expected) const {
  throw UserError(
      fmt::format("{}: {} must be {}, not a TOML {}", where(node), key, expected, type_name(node)));
}

std::string TomlReader::text(std::string_view key) {
  const toml::node& node = require(key);
  const auto* value = node.as_string();
  if (value == nullptr) wrong_type(node, key, "text in quotes");
  return value->get();
}

std::string TomlReader::text_or(std::string_view key, std::string fallback) {
  return has(key) ? text(key) : std::move(fallback);
}

std::int64_t TomlReader::integer(std::string_view key, std::int64_t low, std::int64_t high,
                                 std::string_view allowed) {
  const toml::node& node = require(key);
  const auto* value = node.as_integer();
  if (value == nullptr) wrong_type(node, key, "a whole number");
  if (value->get() < low || value->get() > high) {
    const std::string range = fmt::format("between {} and {}", low, high);
    throw UserError(fmt::format("{}: {} = {} is not allowed; it must be {}", where(node), key, value->get(),
                                allowed.empty() ? range : allowed));
  }
  return value->get();
}

std::int64_t TomlReader::integer_or(std::string_view key, std::int64_t low, std::int64_t high,
                                    std::int64_t fallback, std::string_view allowed) {
  return has(key) ? integer(key, low, high, allowed) : fallback;
}

std::optional<double> TomlReader::number(std::string_view key) {
  const toml::node* node = find(key);
  if (node == nullptr) return std::nullopt;
  double value = 0;
  if (const auto* whole = node->as_integer()) {
    value = static_cast<double>(whole->get());
  } else if (const auto* real = node->as_floating_point()) {
    value = real->get();
  } else {
    wrong_type(*node, key, "a number");
  }
  if (!std::isfinite(value))
    throw UserError(fmt::format("{}: {} must be a finite number", where(*node), key));
  return value;
}

bool TomlReader::boolean_or(std::string_view key, bool fallback) {
  const toml::node* node = find(key);
  if (node == nullptr) return fallback;
  const auto* value = node->as_boolean();
  if (value == nullptr) wrong_type(*node, key, "true or false");
  return value->get();
}

std::vector<std::int64_t> TomlReader::integers(std::string_view key, std::size_t count, std::int64_t low,
                                               std::int64_t high, std::string_view allowed) {
  const toml::node& node = require(key);
  const std::string expected =
      allowed.empty() ? fmt::format("an array of {} whole numbers between {} and {}", count, low, high)
                      : std::string(allowed);
  const toml::array* array = node.as_array();
  if (array == nullptr) wrong_type(node, key, expected);
  std::vector<std::int64_t> values;
  for (const toml::node& element : *array) {
    const auto* value = element.as_integer();
    if (value == nullptr || value->get() < low || value->get() > high) {
      throw UserError(fmt::format("{}: {} must be {}", where(node), key, expected));
    }
    values.push_back(value->get());
  }
  if (values.size() != count) {
    throw UserError(
        fmt::format("{}: {} has {} numbers; it must be {}", where(node), key, values.size(), expected));
  }
  return values;
}

std::vector<std::string> TomlReader::texts(std::string_view key) {
  const toml::node& node = require(key);
  if (node.as_string() != nullptr) return {text(key)};
  const toml::array* array = node.as_array();
  if (array == nullptr || array->empty()) wrong_type(node, key, "text in quotes or an array of texts");
  std::vector<std::string> values;
  for (const toml::node& element : *array) {
    const auto* value = element.as_string();
    if (value == nullptr) wrong_type(element, key, "an array of texts");
    values.push_back(value->get());
  }
  return values;
}

std::int64_t TomlReader::bytes(std::string_view key, std::int64_t low, std::int64_t high) {
  const toml::node& node = require(key);
  const auto* value = node.as_string();
  if (value == nullptr) return integer(key, low, high);
  static constexpr std::pair<std::string_view, std::int64_t> kUnits[] = {{"B", 1},
                                                                         {"KiB", std::int64_t{1} << 10},
                                                                         {"MiB", std::int64_t{1} << 20},
                                                                         {"GiB", std::int64_t{1} << 30}};
  const std::string& text = value->get();
  std::size_t digits = 0;
  std::int64_t amount = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9' && digits < 15) {
    amount = amount * 10 + (text[digits] - '0');
    ++digits;
  }
  std::string_view unit = std::string_view(text).substr(digits);
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  for (const auto& [name, scale] : kUnits) {
    if (digits == 0 || unit != name) continue;
    if (amount < (low + scale - 1) / scale || amount > high / scale) {
      throw UserError(fmt::format("{}: {} = \"{}\" is not allowed; it must be between {} and {} bytes",
                                  where(node), key, text, low, high));
    }
    return amount * scale;
  }
  throw UserError(
      fmt::format("{}: {} = \"{}\" is not a size; write a number of bytes, or text such as \"64 MiB\" "
                  "(units: B, KiB, MiB, GiB)",
                  where(node), key, text));
}

int TomlReader::choice_of(std::string_view key, const std::vector<std::string>& names, int fallback) {
  if (fallback >= 0 && !has(key)) return fallback;
  const std::string value = text(key);
  const auto found = std::find(names.begin(), names.end(), value);
  if (found != names.end()) return static_cast<int>(found - names.begin());
  const std::string nearest = nearest_name(value, names);
  throw UserError(fmt::format("{}: {} = \"{}\" is unknown{}; allowed: {}", where(key), key, value,
                              nearest.empty() ? "" : fmt::format(" (did you mean \"{}\"?)", nearest),
                              fmt::join(names, ", ")));
}

std::vector<const toml::table*> TomlReader::tables(std::string_view key) {
  find(key);
  std::vector<const toml::table*> found;
  for (const toml::table* table : chain_) {
    const toml::node* node = table->get(key);
    if (node == nullptr) continue;
    if (node->as_table() == nullptr) wrong_type(*node, key, "a table");
    found.push_back(node->as_table());
  }
  return found;
}

void TomlReader::finish() const {
  for (const toml::table* table : chain_) {
    for (auto&& [key, node] : *table) {
      const std::string name{std::string_view{key}};
      if (std::find(asked_.begin(), asked_.end(), name) != asked_.end()) continue;
      const std::string nearest = nearest_name(name, asked_);
      throw UserError(fmt::format("{}: unknown key '{}' in this {}{}; allowed: {}", where(node), name, what_,
                                  nearest.empty() ? "" : fmt::format(" (did you mean '{}'?)", nearest),
                                  fmt::join(asked_, ", ")));
    }
  }
}

}  // namespace tritax
