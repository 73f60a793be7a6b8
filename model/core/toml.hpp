// Makes toml++ safe for files that users write. Include this instead of <toml++/toml.h>, and from .cpp files
// only.
//
// toml++ 3.3 asserts on some malformed text (a table header such as `[=x]`). In a debug build the assertion
// would abort the program, and in a release build the compiler may assume that the assertion holds. Here the
// assertions of toml++ are enabled in every build type and throw, and `parse_toml` turns them into a
// UserError. toml++ also has undefined behaviour on non-ASCII characters outside of texts and comments; TOML
// forbids such characters, and `parse_toml` refuses them first. Keys of thousands of parts overflow the stack
// of toml++; `parse_toml` limits the depth. Fuzzing the readers found all of these (tests/fuzz).
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace tritax {

class TomlAssertion : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

constexpr void toml_assert(bool holds, const char* condition) {
  if (!holds) throw TomlAssertion(condition);
}

}  // namespace tritax

#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_HEADER_ONLY 1
#define TOML_ASSERT(expr) ::tritax::toml_assert(static_cast<bool>(expr), #expr)
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

namespace tritax {

// Parses `text`. Throws UserError "origin:line: …" for text that is not valid TOML.
toml::table parse_toml(std::string_view text, const std::string& origin);

}  // namespace tritax
