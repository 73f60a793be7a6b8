// Any bytes as a table of microbenchmarks: rows or a UserError.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "model/core/error.hpp"
#include "model/microbench/read_microbench.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    tritax::parse_microbench({reinterpret_cast<const char*>(data), size}, "fuzz", 4, 132);
  } catch (const tritax::UserError&) {
  }
  return 0;
}
