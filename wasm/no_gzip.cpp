// In place of model/core/gzip.cpp: Debian has no zlib for WebAssembly.
#include "model/core/error.hpp"
#include "model/core/gzip.hpp"

namespace tritax {

bool is_gzip_name(std::string_view path) { return path.ends_with(".gz"); }

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

std::string gzip(std::string_view /*text*/) {
  throw UserError("this build has no gzip; give a name that does not end in .gz");
}

std::string gunzip(std::string_view /*bytes*/, std::size_t /*largest*/) {
  throw UserError("this build has no gzip; unpack it first");
}

}  // namespace tritax
