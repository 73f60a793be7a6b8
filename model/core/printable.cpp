#include "model/core/printable.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/core/read_file.hpp"

namespace tritax {

namespace {

constexpr std::size_t kNowhere = std::string_view::npos;
constexpr std::string_view kEllipsis = "…";

// Bytes kept of a line that is cut in its middle. Lists of all keys of a machine's table have some 1,600
// bytes.
constexpr std::size_t kShownOfLineBegin = 3000, kShownOfLineEnd = 800;

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xc0U) == 0x80U; }

std::size_t character_begin(std::string_view text, std::size_t at) {
  while (at > 0 && at < text.size() && continues_character(text[at])) --at;
  return at;
}

// A quote opens a value only where no word ends, so that an apostrophe opens no value.
bool opens_value(std::string_view line, std::size_t at) {
  constexpr std::string_view kBefore = " (=[,:";
  return (line[at] == '\'' || line[at] == '"') && (at == 0 || kBefore.find(line[at - 1]) != kNowhere);
}

std::string with_short_values(std::string_view line) {
  std::string shown;
  std::size_t word = 0;                // bytes of the word so far
  std::size_t none_behind = kNowhere;  // from here on no quote of this kind follows: not searched again
  char none_of = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (opens_value(line, i) && !(none_of == line[i] && i >= none_behind)) {
      const std::size_t end = line.find(line[i], i + 1);
      if (end == kNowhere) {
        none_of = line[i];
        none_behind = i;
      } else if (end - i - 1 > kShownOfValue) {
        shown.append(1, line[i]).append(cut(line.substr(i + 1, end - i - 1))).append(1, line[i]);
        i = end;
        word = 0;
        continue;
      }
    }
    word = line[i] == ' ' ? 0 : word + 1;
    if (word > kShownOfValue) {
      if (continues_character(line[i])) {
        const std::size_t begin = character_begin(line, i);
        shown.resize(shown.size() - (i - begin));
      }
      shown.append(kEllipsis);
      i = std::min(line.find(' ', i), line.size()) - 1;
      word = 0;
      continue;
    }
    shown.append(1, line[i]);
  }
  return shown;
}

std::string short_line(std::string_view line) {
  std::string shown = with_short_values(line);
  if (shown.size() <= kShownOfLineBegin + kShownOfLineEnd) return shown;
  const std::string_view all = shown;
  const std::size_t behind = character_begin(all, all.size() - kShownOfLineEnd);
  return fmt::format("{} {}", cut(all, kShownOfLineBegin), all.substr(behind));
}

}  // namespace

std::string without_controls(std::string_view text, std::string_view allowed) {
  std::string shown;
  for (std::size_t at; (at = find_control(text, allowed)) != kNowhere;) {
    shown.append(text.substr(0, at)).append(fmt::format("\\x{:02x}", static_cast<unsigned char>(text[at])));
    text.remove_prefix(at + 1);
  }
  return shown.append(text);
}

std::string cut(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  return std::string(text.substr(0, character_begin(text, most))).append(kEllipsis);
}

std::string presentable_line(std::string_view message) { return without_controls(short_line(message)); }

std::string presentable(std::string_view message) {
  constexpr std::string_view kNextOfList = "\n  ";
  std::string shown;
  for (;;) {
    const std::size_t end = std::min(message.find(kNextOfList), message.size());
    // The value is cut before it is escaped, because escapes make a long value longer.
    shown.append(presentable_line(message.substr(0, end)));
    if (end == message.size()) return shown;
    shown.append(kNextOfList.substr(0, 1));
    message.remove_prefix(end + 1);
    // The blanks belong to the line.
  }
}

}  // namespace tritax
