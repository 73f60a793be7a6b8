// Reads typed values from a TOML table, with messages that a user can act on. Internal: include it from .cpp
// files only, since it pulls in toml++.
//
// A reader looks up a key in a chain of tables and takes the first table that has the key: an entry's own
// table, then the defaults of the file. The reader remembers every requested key, so `finish` can refuse keys
// that were never requested and offer the nearest known key.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/core/toml.hpp"

namespace tritax {

// The text of a file. Throws UserError when it cannot be read.
std::string read_text_file(const std::string& path);

class TomlReader {
 public:
  // `chain` holds the tables, most specific first; null pointers are skipped. `what` names the entry in
  // messages ("scenario", "entry").
  TomlReader(std::vector<const toml::table*> chain, std::string origin, std::string what);

  const std::string& origin() const { return origin_; }

  // "origin:line" of a node, of a key, or of the table itself when the key is absent.
  std::string where(const toml::node& node) const;
  std::string where(std::string_view key) const;
  std::string where() const;

  bool has(std::string_view key);
  const toml::node* find(std::string_view key);  // null when absent

  // All throw UserError: wrong type, out of range, and, without a fallback, missing.
  std::string text(std::string_view key);
  std::string text_or(std::string_view key, std::string fallback);
  // `allowed` describes the allowed values in messages if they are not just `low` to `high`.
  std::int64_t integer(std::string_view key, std::int64_t low, std::int64_t high,
                       std::string_view allowed = {});
  std::int64_t integer_or(std::string_view key, std::int64_t low, std::int64_t high, std::int64_t fallback,
                          std::string_view allowed = {});
  std::optional<double> number(std::string_view key);  // finite; an integer counts as a number
  bool boolean_or(std::string_view key, bool fallback);
  std::vector<std::int64_t> integers(std::string_view key, std::size_t count, std::int64_t low,
                                     std::int64_t high, std::string_view allowed = {});
  std::vector<std::string> texts(std::string_view key);  // a text or an array of texts, at least one

  // Bytes, as an integer or as text with a binary unit: 1024, "64 MiB", "4 GiB".
  std::int64_t bytes(std::string_view key, std::int64_t low, std::int64_t high);

  // One of `names`; returns its index. With `fallback` >= 0 the key may be absent.
  template <typename Names>
  int choice(std::string_view key, const Names& names, int fallback = -1) {
    std::vector<std::string> list;
    for (const auto& name : names) list.emplace_back(name);
    return choice_of(key, list, fallback);
  }

  // The tables under `key`, in chain order.
  std::vector<const toml::table*> tables(std::string_view key);

  // Refuses every key of every table of the chain that was never requested.
  void finish() const;

 private:
  int choice_of(std::string_view key, const std::vector<std::string>& names, int fallback);
  std::string misspelt(std::string_view key) const;
  const toml::node& require(std::string_view key);
  [[noreturn]] void wrong_type(const toml::node& node, std::string_view key, std::string_view expected) const;

  std::vector<const toml::table*> chain_;
  std::string origin_;
  std::string what_;
  std::vector<std::string> asked_;
};

}  // namespace tritax
