#include "model/core/toml.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>

#include "model/core/error.hpp"
#include "model/core/read_file.hpp"

namespace tritax {

namespace {

constexpr std::size_t kMaxTomlDepth = 16;  // of brackets, and of the parts of a key
constexpr std::size_t kNone = std::string_view::npos;

bool is_ascii(char c) { return static_cast<unsigned char>(c) < 0x80; }

// Position after the text that starts at `at` with a quote; kNone when it does not end. `stray` is set to a
// non-ASCII character that follows a backslash, which is no escape.
std::size_t end_of_text(std::string_view toml, std::size_t at, std::size_t& stray) {
  const char quote = toml[at];
  const std::string delimiter(toml.substr(at, 3) == std::string(3, quote) ? 3 : 1, quote);
  const bool many_lines = delimiter.size() == 3;
  for (std::size_t i = at + delimiter.size(); i < toml.size();) {
    if (quote == '"' && toml[i] == '\\') {
      std::size_t next = i + 1;
      if (many_lines) next = std::min(toml.find_first_not_of(" \t\r\n", next), toml.size());
      if (next < toml.size() && !is_ascii(toml[next])) {
        stray = next;
        return kNone;
      }
      i = next > i + 1 ? next : next + 1;
    } else if (toml.substr(i, delimiter.size()) == delimiter) {
      i += delimiter.size();
      // A text of many lines may end in up to two quotes of its own.
      for (int extra = 0; many_lines && extra < 2 && i < toml.size() && toml[i] == quote; ++extra) ++i;
      return i;
    } else if (!many_lines && toml[i] == '\n') {
      return kNone;
    } else {
      ++i;
    }
  }
  return kNone;
}

// The first byte that TOML forbids where it stands, as far as toml++ 3.3 has undefined behaviour there:
// non-ASCII characters outside of texts and comments, and quotes inside words.
std::size_t find_stray_byte(std::string_view toml) {
  constexpr std::string_view kBeforeText = " \t\r\n=,[{.";
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  const std::size_t begin = toml.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
  for (std::size_t i = begin; i < toml.size();) {
    const char c = toml[i];
    if (c == '#') {
      i = std::min(toml.find('\n', i), toml.size());
    } else if (c == '"' || c == '\'') {
      if (i > begin && kBeforeText.find(toml[i - 1]) == kNone) return i;
      std::size_t stray = kNone;
      i = end_of_text(toml, i, stray);
      if (i == kNone) return stray;  // toml++ reports a text without an end
    } else if (!is_ascii(c)) {
      return i;
    } else {
      ++i;
    }
  }
  return kNone;
}

// The line of the first key or value that is nested deeper than kMaxTomlDepth, 0 if there is none. toml++
// limits arrays and inline tables, but recurses once for every part of a dotted key or of a header, and the
// stack overflows after some ten thousand parts. Every open bracket and every part of a key counts.
std::int64_t line_nested_too_deep(std::string_view toml) {
  std::int64_t line = 1;
  std::size_t brackets = 0, dots = 0;
  for (std::size_t i = 0; i < toml.size();) {
    const char c = toml[i];
    std::size_t next = i + 1;
    if (c == '#') {
      next = std::min(toml.find('\n', i), toml.size());
    } else if (c == '"' || c == '\'') {
      std::size_t stray = kNone;
      next = std::min(end_of_text(toml, i, stray), toml.size());
    } else if (c == '.') {
      ++dots;
    } else if (c == '[' || c == '{') {
      ++brackets;
    } else if (c == ']' || c == '}') {
      brackets -= brackets > 0 ? 1 : 0;
    }
    if (c == '\n' || c == '=' || c == ',' || c == '{' || c == '[') dots = 0;
    if (std::max(brackets, dots) >= kMaxTomlDepth) return line;
    line += std::count(toml.begin() + static_cast<std::ptrdiff_t>(i),
                       toml.begin() + static_cast<std::ptrdiff_t>(next), '\n');
    i = next;
  }
  return 0;
}

// Escapes in texts can produce control characters.
void refuse_controls(const toml::node& node, const std::string& origin) {
  if (const auto* table = node.as_table()) {
    for (const auto& [key, value] : *table) refuse_controls(value, origin);
  } else if (const auto* array = node.as_array()) {
    for (const toml::node& value : *array) refuse_controls(value, origin);
  } else if (const auto* text = node.as_string()) {
    const std::size_t at = find_control(text->get(), "\t\n\r");
    if (at == std::string::npos) return;
    throw UserError(fmt::format("{}:{}: control character 0x{:02x} in a text; leave it out", origin,
                                node.source().begin.line, static_cast<unsigned char>(text->get()[at])));
  }
}

}  // namespace

toml::table parse_toml(std::string_view text, const std::string& origin) {
  const std::size_t stray = find_stray_byte(text);
  if (stray != kNone) {
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(stray), '\n');
    throw UserError(
        fmt::format("{}:{}: is not valid TOML: unexpected byte 0x{:02x}; only ASCII may stand outside of "
                    "texts and comments, and a quote only at the start and end of a text",
                    origin, line, static_cast<unsigned char>(text[stray])));
  }
  if (const std::int64_t line = line_nested_too_deep(text); line > 0) {
    throw UserError(fmt::format("{}:{}: is nested {} levels deep or more; files of Tritax need 5", origin,
                                line, kMaxTomlDepth));
  }
  try {
    toml::table table = toml::parse(text, origin);
    refuse_controls(table, origin);
    return table;
  } catch (const toml::parse_error& error) {
    const auto line = std::max<std::uint32_t>(error.source().begin.line, 1);
    throw UserError(fmt::format("{}:{}: is not valid TOML: {}", origin, line, error.description()));
  } catch (const TomlAssertion& error) {
    throw UserError(fmt::format("{}: is not valid TOML: {} does not hold", origin, error.what()));
  }
}

}  // namespace tritax
