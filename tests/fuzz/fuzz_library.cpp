// Any bytes as a library's measurements, packed or not: rows or a UserError.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "model/core/error.hpp"
#include "model/core/gzip.hpp"
#include "sim/study/validate_library.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  constexpr std::size_t kLargest = 1 << 20;
  try {
    tritax::parse_library(tritax::is_gzip(bytes) ? tritax::gunzip(bytes, kLargest) : std::string(bytes),
                          "fuzz");
  } catch (const tritax::UserError&) {
  }
  return 0;
}
