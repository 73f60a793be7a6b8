// What a user or a file gave, made fit for a message: control characters, which a terminal would obey, are
// escaped, and what is longer than anyone reads is cut.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tritax {

// The most of one value that a message repeats, in bytes.
inline constexpr std::size_t kShownOfValue = 200;

// `text` with every control character that is none of `allowed` as \xNN.
std::string without_controls(std::string_view text, std::string_view allowed = {});

// `text`, or its first `most` bytes and "…"; a character of several bytes stays whole.
std::string cut(std::string_view text, std::size_t most = kShownOfValue);

// A whole message. In it a value in quotes and a word without a blank are cut at `kShownOfValue` bytes, and a
// line in its middle at some thousands. Control characters are escaped but for the breaks in front of lines
// that begin with two blanks, as those of lists do.
std::string presentable(std::string_view message);

// Likewise, on one line whatever it is.
std::string presentable_line(std::string_view message);

}  // namespace tritax
