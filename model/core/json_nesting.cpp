#include "model/core/json_nesting.hpp"

namespace tritax {

std::size_t find_json_deeper_than(std::string_view text, std::size_t depth) {
  std::size_t open = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      if (open++ == depth) return i;
    } else if (c == ']' || c == '}') {
      open -= open > 0 ? 1 : 0;
    }
  }
  return std::string_view::npos;
}

}  // namespace tritax
