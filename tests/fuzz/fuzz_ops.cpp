// Any bytes as a table of measured operations: rows or a UserError.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "model/core/error.hpp"
#include "model/timeline/op_table.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    tritax::parse_op_table({reinterpret_cast<const char*>(data), size}, "fuzz");
  } catch (const tritax::UserError&) {
  }
  return 0;
}
