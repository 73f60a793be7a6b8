// Compresses and decompresses gzip files (RFC 1952) with zlib.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tritax {

// Whether a file name asks for gzip: "trace.json.gz".
bool is_gzip_name(std::string_view path);

// Whether the bytes are a gzip file.
bool is_gzip(std::string_view bytes);

// Equal text gives equal bytes: the bytes contain neither name nor date.
std::string gzip(std::string_view text);

// Decompresses. Throws UserError ("…: reason") for damaged bytes, and for text of more than `largest` bytes
// before all of the text is in memory.
std::string gunzip(std::string_view bytes, std::size_t largest);

}  // namespace tritax
