// Reading whole files that a user names.
#pragma once

#include <limits>
#include <string>
#include <string_view>

namespace tritax {

// The bytes of a file. Throws UserError "path: cannot be read: REASON; give WANTED" for what is missing, a
// directory, unreadable, or larger than `largest` bytes (a device or data file given by mistake would fill
// memory).
std::string read_file(const std::string& path, std::string_view wanted,
                      std::size_t largest = std::numeric_limits<std::size_t>::max());

// `text` without the byte order mark that some editors and spreadsheets put in front of UTF-8.
std::string_view without_byte_order_mark(std::string_view text);

}  // namespace tritax
