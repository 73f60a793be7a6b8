#include "model/schedule/findings.hpp"

#include "model/core/printable.hpp"

namespace tritax {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_'; }

// The text with 0 for every number that is not part of a name, as in "ready2" and "stage-2".
std::string without_numbers(std::string_view text) {
  std::string kept;
  bool in_name = false;
  bool in_number = false;
  for (const char c : text) {
    const bool digit = is_digit(c) && !in_name;
    if (digit && !in_number) kept += '0';
    if (!digit) kept += c;
    in_name = is_letter(c) || (in_name && (is_digit(c) || c == '-' || c == '.'));
    in_number = digit;
  }
  return kept;
}

}  // namespace

void Findings::add(Finding::Kind kind, const std::string& where, const std::string& message,
                   std::size_t count) {
  std::string cause = without_numbers(where);
  cause.append(1, '\0').append(without_numbers(message)).append(1, static_cast<char>(kind));
  const auto known = of_cause_.find(cause);
  if (known != of_cause_.end()) {
    list_[known->second].count += count;
  } else if (!full()) {
    of_cause_.emplace(std::move(cause), list_.size());
    list_.push_back({kind, presentable_line(where), presentable_line(message), count});
  }
}

std::string with_count(const std::string& message, std::size_t count) {
  if (count == 1) return message;
  return message + " (… and " + std::to_string(count - 1) + (count == 2 ? " more place" : " more places") +
         " with the same cause)";
}

}  // namespace tritax
