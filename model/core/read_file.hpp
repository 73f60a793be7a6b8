// Reads whole files that a user names.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tritax {

// The bytes of a text file. Throws UserError "path: cannot be read: REASON; give WANTED" for a path that is
// missing, a directory, unreadable, larger than `largest` bytes, or not text because it has a zero byte: a
// device or a data file given by mistake could fill memory or never end. A named pipe is refused, because
// opening the pipe waits for a writer; the pipe of a process substitution or of standard input has a writer.
// The text of such a pipe is kept, because a pipe cannot be read again. Any thread may call this function.
std::string read_file(const std::string& path, std::string_view wanted, std::size_t largest);

// Whether read_file has read this file, also under another name: no output may replace the file.
bool was_read(const std::string& path);

// `text` without the byte order mark that some editors and spreadsheets put in front of UTF-8.
std::string_view without_byte_order_mark(std::string_view text);

// Position of the first control character of `text` that is not in `allowed`, or npos. Names and texts of
// files are printed on terminals, which would execute control characters.
std::size_t find_control(std::string_view text, std::string_view allowed = {});

}  // namespace tritax
