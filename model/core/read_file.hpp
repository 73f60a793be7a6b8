// Reading whole files that a user names.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tritax {

// The bytes of a text file. Throws UserError "path: cannot be read: REASON; give WANTED" for what is missing,
// a directory, unreadable, larger than `largest` bytes, or no text because it has a zero byte: a device or a
// data file given by mistake would fill memory, or never end. A named pipe is refused, since opening it waits
// for a writer; the pipe of a process substitution or of standard input has one. What such a pipe gave is
// kept, since it cannot be read again. Any thread may call it.
std::string read_file(const std::string& path, std::string_view wanted, std::size_t largest);

// Whether read_file has read the file of that name, under whatever name: no output may replace it.
bool was_read(const std::string& path);

// `text` without the byte order mark that some editors and spreadsheets put in front of UTF-8.
std::string_view without_byte_order_mark(std::string_view text);

// The first control character of `text` that is none of `allowed`, npos if there is none. Names and texts of
// files end on terminals, which would obey them.
std::size_t find_control(std::string_view text, std::string_view allowed = {});

}  // namespace tritax
