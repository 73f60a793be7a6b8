// A shipped machine file as text that tests may damage in one place.
#pragma once

#include <gtest/gtest.h>
#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

#include "model/core/error.hpp"
#include "model/machine/machine.hpp"

namespace tritax {

inline std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

inline std::string shipped_path(const std::string& name) {
  return std::string(TRITAX_SOURCE_DIR) + "/model/machine/machines/" + name + ".toml";
}

inline std::string mi300x_text() { return read_text(shipped_path("mi300x-8")); }

// Replaces the first occurrence of `from`, which must exist.
inline std::string with(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

// Replaces the whole line that starts with `key = `, the first after `table`.
inline std::string with_line(std::string text, const std::string& table, const std::string& key,
                             const std::string& line) {
  const std::size_t section = text.find("[" + table + "]\n");
  EXPECT_NE(section, std::string::npos) << table;
  const std::size_t begin = text.find("\n" + key + " = ", section) + 1;
  const std::size_t end = text.find('\n', begin);
  EXPECT_NE(end, std::string::npos) << key;
  return text.replace(begin, end - begin, line);
}

// Same with a new value and unit; the provenance is that of an assumption.
inline std::string with_value(const std::string& text, const std::string& table, const std::string& key,
                              const std::string& value, const std::string& unit) {
  return with_line(
      text, table, key,
      key + " = { value = " + value + ", unit = \"" + unit + "\", source = \"a test\", how = \"assumed\" }");
}

// Line (from 1) on which `needle` first stands.
inline int line_of(const std::string& text, const std::string& needle) {
  const std::size_t at = text.find(needle);
  EXPECT_NE(at, std::string::npos) << needle;
  return 1 + static_cast<int>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
}

// The message with which reading fails; a test failure when it does not.
inline std::string failure_of(const std::string& text) {
  try {
    parse_machine(text, "mine.toml");
  } catch (const UserError& error) {
    return error.what();
  }
  ADD_FAILURE() << "the file was accepted";
  return "";
}

inline void expect_contains(const std::string& message, const std::string& part) {
  EXPECT_NE(message.find(part), std::string::npos) << "message: " << message << "\nmisses:  " << part;
}

}  // namespace tritax
