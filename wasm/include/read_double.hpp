// A number of a text by strtod(), with the rules of std::from_chars: the C locale, no blanks, no plus sign in
// front, no hexadecimal. For standard libraries whose from_chars reads whole numbers alone.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <string>
#include <string_view>
#include <system_error>

namespace tritax {

struct DoubleRead {
  std::size_t length = 0;  // characters that belong to the number; 0: there is none
  std::errc error{};       // invalid_argument: no number; result_out_of_range: `value` is none
  double value = 0;
};

inline DoubleRead read_double(std::string_view text) {
  const std::string_view digits = text.substr(text.starts_with('-') ? 1 : 0);
  const bool spelt = !digits.empty() && std::string_view("iInN").find(digits[0]) != std::string_view::npos;
  const bool counted =
      !digits.empty() && std::string_view("0123456789.").find(digits[0]) != std::string_view::npos;
  if (!spelt && !counted) return {0, std::errc::invalid_argument};
  // Where a hexadecimal number would go on, and what strtod() must not run past.
  const std::size_t end = spelt ? std::string_view::npos : text.find_first_not_of("0123456789.eE+-");
  const std::string copy(text.substr(0, end));
  char* stop = nullptr;
  errno = 0;
  const double value = std::strtod(copy.c_str(), &stop);
  const auto length = static_cast<std::size_t>(stop - copy.c_str());
  if (length == 0) return {0, std::errc::invalid_argument};
  const bool too_large = std::isinf(value) && !spelt;
  const bool too_small = value == 0 && errno == ERANGE;
  if (too_large || too_small) return {length, std::errc::result_out_of_range};
  return {length, {}, value};
}

}  // namespace tritax
