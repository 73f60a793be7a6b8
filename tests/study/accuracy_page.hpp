// The sets of measurements and groups of published numbers that docs/accuracy.toml lists, with the bounds
// that predictions are held to: they stand there alone.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "model/core/read_file.hpp"
#include "model/core/toml.hpp"

namespace tritax {

// One table of the file: its texts and its numbers by key.
struct AccuracyEntry {
  std::map<std::string, std::string> texts;
  std::map<std::string, double> numbers;

  std::string text(const std::string& key, const std::string& usual = "") const {
    return texts.contains(key) ? texts.at(key) : usual;
  }
  // The name of its test.
  friend void PrintTo(const AccuracyEntry& entry, std::ostream* out) { *out << entry.text("file"); }
  // Calls `check` with a bound, where there is one, as a share of one.
  void bound(const std::string& key, const std::function<void(double)>& check) const {
    constexpr double kPercent = 100;
    if (numbers.contains(key)) check(numbers.at(key) / kPercent);
  }
};

inline std::vector<AccuracyEntry> accuracy_entries(const std::string& kind) {
  constexpr std::size_t kLargestBytes = std::size_t{1} << 20;
  const std::string path = std::string(TRITAX_SOURCE_DIR) + "/docs/accuracy.toml";
  const toml::table root = parse_toml(read_file(path, "a file of this repository", kLargestBytes), path);
  std::vector<AccuracyEntry> entries;
  for (const toml::node& node : *root.get_as<toml::array>(kind)) {
    AccuracyEntry& entry = entries.emplace_back();
    for (auto&& [key, value] : *node.as_table()) {
      if (const auto text = value.value_exact<std::string>()) entry.texts[std::string(key.str())] = *text;
      if (value.is_number()) entry.numbers[std::string(key.str())] = *value.value<double>();
    }
  }
  return entries;
}

}  // namespace tritax
