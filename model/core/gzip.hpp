// Files that are compressed as gzip does (RFC 1952), by zlib.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tritax {

// Whether a name asks for it: "trace.json.gz".
bool is_gzip_name(std::string_view path);

// Whether these bytes are such a file.
bool is_gzip(std::string_view bytes);

// Equal text gives equal bytes: neither name nor date stands in them.
std::string gzip(std::string_view text);

// The text again. Throws UserError ("…: reason") for damaged bytes, and for text of more than `largest`
// bytes, before it is held in memory.
std::string gunzip(std::string_view bytes, std::size_t largest);

}  // namespace tritax
