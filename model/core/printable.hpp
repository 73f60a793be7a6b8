// Makes text of a user or a file safe for a message: control characters, which a terminal would execute, are
// escaped, and long text is cut.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tritax {

// Largest number of bytes of one value that a message repeats.
inline constexpr std::size_t kShownOfValue = 200;

// `text` with every control character that is not in `allowed` written as \xNN.
std::string without_controls(std::string_view text, std::string_view allowed = {});

// `text`, or its first `most` bytes and "…"; a character of several bytes stays whole.
std::string cut(std::string_view text, std::size_t most = kShownOfValue);

// A whole message. A value in quotes and a word without a blank are cut at `kShownOfValue` bytes; a line is
// cut in its middle at some thousand bytes. Control characters are escaped, except line breaks before lines
// that begin with two blanks, as in lists.
std::string presentable(std::string_view message);

// The same, but every line break is escaped: the result is one line.
std::string presentable_line(std::string_view message);

}  // namespace tritax
