#include "sim/study/sweep/sweep_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "model/core/error.hpp"
#include "model/scenario/toml_reader.hpp"

namespace tritax {

namespace {

constexpr std::int64_t kMostValues = 1'000'000;                // of one axis
constexpr std::int64_t kLargestWhole = std::int64_t{1} << 53;  // doubles represent all whole numbers up to it

// { from, to, … } of one key.
struct SweepRange {
  double from = 0;
  double to = 0;
  bool whole = false;
  bool logarithmic = false;
  std::int64_t multiple_of = 1;
  std::string unit;
  std::optional<double> step;
  std::optional<double> factor;
  std::optional<std::int64_t> count;
};

bool is_range(const toml::node& node) {
  const toml::table* table = node.as_table();
  return table != nullptr && (table->contains("from") || table->contains("to"));
}

SweepRange range_of(const SweepKey& key, bool sampled) {
  const toml::table& table = *key.node->as_table();
  TomlReader reader({&table}, key.place.substr(0, key.place.find(": ")), "range of " + key.name);
  const auto number = [&](std::string_view name) {
    const std::optional<double> value = reader.number(name);
    if (!value)
      throw UserError(fmt::format("{}a range has 'from' and 'to'; '{}' is missing", key.place, name));
    if (std::abs(*value) > static_cast<double>(kLargestWhole)) {
      throw UserError(fmt::format("{}{} = {} is out of range", key.place, name, *value));
    }
    return *value;
  };
  SweepRange range;
  range.from = number("from");
  range.to = number("to");
  range.whole = table.get("from")->is_integer() && table.get("to")->is_integer();
  range.logarithmic = reader.boolean_or("log", false);
  range.unit = reader.text_or("unit", "");
  if (range.whole) range.multiple_of = reader.integer_or("multiple_of", 1, kLargestWhole, 1);
  if (!sampled) {
    range.step = reader.number("step");
    range.factor = reader.number("factor");
    if (reader.has("count")) range.count = reader.integer("count", 1, kMostValues);
  }
  reader.finish();
  if (range.to < range.from) {
    throw UserError(fmt::format("{}from = {} is above to = {}", key.place, range.from, range.to));
  }
  if ((range.logarithmic || range.factor) && range.from <= 0) {
    throw UserError(fmt::format("{}from = {}: a range by factors begins above 0", key.place, range.from));
  }
  if (range.whole && std::ceil(range.from / static_cast<double>(range.multiple_of)) >
                         std::floor(range.to / static_cast<double>(range.multiple_of))) {
    throw UserError(fmt::format("{}no multiple of {} lies between {} and {}", key.place, range.multiple_of,
                                range.from, range.to));
  }
  return range;
}

// The value as the point has it: whole if the range is whole, inside the range, with its unit.
nlohmann::json value_in(const SweepRange& range, double value) {
  if (!range.whole) {
    value = std::clamp(value, range.from, range.to);
    if (range.unit.empty()) return value;
    return fmt::format("{}{}", value, range.unit);
  }
  const auto multiple = static_cast<double>(range.multiple_of);
  const double parts = std::clamp(std::round(value / multiple), std::ceil(range.from / multiple),
                                  std::floor(range.to / multiple));
  const auto whole = static_cast<std::int64_t>(parts) * range.multiple_of;
  if (range.unit.empty()) return whole;
  return fmt::format("{}{}", whole, range.unit);
}

double between(const SweepRange& range, double share) {
  if (!range.logarithmic) return range.from + share * (range.to - range.from);
  return range.from * std::pow(range.to / range.from, share);
}

std::vector<nlohmann::json> values_of_range(const SweepKey& key) {
  const SweepRange range = range_of(key, false);
  const int ways = (range.step ? 1 : 0) + (range.factor ? 1 : 0) + (range.count ? 1 : 0);
  if (ways != 1) {
    throw UserError(
        fmt::format("{}a range has one of 'step', 'factor' and 'count', which here are {}", key.place, ways));
  }
  if ((range.step && *range.step <= 0) || (range.factor && *range.factor <= 1)) {
    throw UserError(fmt::format(
        "{}{} is not allowed; give {}", key.place,
        range.step ? fmt::format("step = {}", *range.step) : fmt::format("factor = {}", *range.factor),
        range.step ? "one above 0" : "one above 1"));
  }
  const double slack = 1 + 1e-12;  // for 0.1 + 0.1 + …
  std::vector<nlohmann::json> values;
  const auto add = [&](double value) {
    nlohmann::json one = value_in(range, value);
    if (values.empty() || values.back() != one) values.push_back(std::move(one));
  };
  if (range.count) {
    const auto last = static_cast<double>(std::max<std::int64_t>(*range.count - 1, 1));
    for (std::int64_t i = 0; i < *range.count; ++i) add(between(range, static_cast<double>(i) / last));
    return values;
  }
  double value = range.from;
  for (std::int64_t i = 0; value <= range.to * slack || (range.to <= 0 && value <= range.to); ++i) {
    // Limits the steps, not the values: steps too small to change the value would never end.
    if (i == kMostValues)
      throw UserError(fmt::format("{}more than {} steps; give larger ones", key.place, kMostValues));
    add(value);
    const auto steps = static_cast<double>(i + 1);
    value = range.step ? range.from + steps * *range.step : range.from * std::pow(*range.factor, steps);
  }
  return values;
}

void collect_keys(const toml::table& table, const std::string& origin, const std::string& prefix,
                  std::vector<SweepKey>& keys) {
  for (auto&& [part, node] : table) {
    const std::string name = prefix + std::string(part.str());
    if (node.is_table() && !is_range(node)) {
      collect_keys(*node.as_table(), origin, name + '.', keys);
      continue;
    }
    keys.push_back({name, &node, fmt::format("{}:{}: {}: ", origin, node.source().begin.line, name)});
  }
}

}  // namespace

std::vector<SweepKey> sweep_keys(const toml::table& table, const std::string& origin,
                                 const std::vector<std::string>& passed_over) {
  std::vector<SweepKey> keys;
  collect_keys(table, origin, "", keys);
  std::erase_if(keys, [&](const SweepKey& key) {
    return std::find(passed_over.begin(), passed_over.end(), key.name) != passed_over.end();
  });
  std::stable_sort(keys.begin(), keys.end(), [](const SweepKey& a, const SweepKey& b) {
    const auto& first = a.node->source().begin;
    const auto& second = b.node->source().begin;
    return std::pair(first.line, first.column) < std::pair(second.line, second.column);
  });
  return keys;
}

nlohmann::json one_sweep_value(const SweepKey& key) {
  const toml::node& node = *key.node;
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* whole = node.as_integer()) return whole->get();
  if (const auto* truth = node.as_boolean()) return truth->get();
  if (const auto* real = node.as_floating_point(); real != nullptr && std::isfinite(real->get()))
    return real->get();
  throw UserError(key.place + "give a number, text in quotes, true or false");
}

std::vector<nlohmann::json> sweep_values(const SweepKey& key) {
  if (is_range(*key.node)) return values_of_range(key);
  const toml::array* array = key.node->as_array();
  if (array == nullptr) return {one_sweep_value(key)};
  std::vector<nlohmann::json> values;
  for (const toml::node& element : *array) values.push_back(one_sweep_value({key.name, &element, key.place}));
  if (values.empty()) throw UserError(key.place + "the list is empty; give at least one value");
  return values;
}

nlohmann::json sampled_sweep_value(const SweepKey& key, double share) {
  if (!is_range(*key.node)) {
    const std::vector<nlohmann::json> values = sweep_values(key);
    return values[static_cast<std::size_t>(share * static_cast<double>(values.size()))];
  }
  const SweepRange range = range_of(key, true);
  if (!range.whole || range.logarithmic) return value_in(range, between(range, share));
  // All multiples have equal probability, the outermost too.
  const auto multiple = static_cast<double>(range.multiple_of);
  const double first = std::ceil(range.from / multiple);
  const double last = std::floor(range.to / multiple);
  return value_in(range, (first + std::floor(share * (last - first + 1))) * multiple);
}

double uniform_share(std::mt19937_64& random) { return static_cast<double>(random() >> 11U) * 0x1p-53; }

std::vector<double> latin_shares(std::size_t count, std::mt19937_64& random) {
  std::vector<double> shares(count);
  for (std::size_t i = 0; i < count; ++i) {
    const double share = (static_cast<double>(i) + uniform_share(random)) / static_cast<double>(count);
    shares[i] = std::min(share, 1 - std::numeric_limits<double>::epsilon() / 2);
  }
  for (std::size_t i = count; i > 1; --i) {
    std::swap(shares[i - 1],
              shares[static_cast<std::size_t>(uniform_share(random) * static_cast<double>(i))]);
  }
  return shares;
}

}  // namespace tritax
